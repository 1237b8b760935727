"""The options that several commands share, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import completion as c
from closecall.question.effort import Effort
from closecall.question.names import (
    CHANGE_NAMES,
    METHOD_NAMES,
    NORM_NAMES,
    OUTPUT_NAMES,
    PIXELS_NAMES,
    SOLVER_NAMES,
)

QUESTION, IMAGE, SEARCH, COSTS = "The question", "The image", "The search", "The paper's extra costs"


def read_amount(text: str | float) -> float:
    """A number, or a fraction such as 8/255."""
    above, slash, below = str(text).partition("/")
    try:
        return float(Fraction(above) / Fraction(below)) if slash else float(above)
    except ZeroDivisionError:
        raise typer.BadParameter(f"{text!r} divides by zero") from None
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is neither a number nor a fraction such as 8/255") from None


def _heed_quiet(wanted: bool) -> bool:
    from closecall.consoles import ask_for_quiet

    ask_for_quiet(wanted)
    return wanted


Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="An .onnx file, a folder that `closecall train` wrote, or zoo:NAME.",
        autocompletion=c.complete_model,
    ),
]
InputShape = Annotated[
    str | None,
    typer.Option(
        "--input-shape", help="Of one image, such as 3,32,32, for an .onnx file that leaves its sizes open."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Show no progress, only the answer and errors.", callback=_heed_quiet),
]


DatasetName = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="digits, mnist, fashion, cifar10, or a path.",
        rich_help_panel=IMAGE,
        autocompletion=c.complete_dataset,
    ),
]
SplitName = Annotated[
    str,
    typer.Option("--split", help="test or train.", rich_help_panel=IMAGE, autocompletion=c.one_of(*c.SPLITS)),
]


@dataclass(frozen=True)
class ImageOptions:
    """Where the image comes from."""

    dataset: DatasetName = None
    index: Annotated[
        int | None, typer.Option("--index", help="Which image, counted from 0.", rich_help_panel=IMAGE)
    ] = None
    split: SplitName = "test"
    image: Annotated[
        Path | None,
        typer.Option(
            "--image", help="A .png, .jpg or .npy file instead of a data set.", rich_help_panel=IMAGE
        ),
    ] = None
    label: Annotated[
        int | None,
        typer.Option(
            "--label",
            help="The true class of --image; by default what the model says.",
            rich_help_panel=IMAGE,
        ),
    ] = None


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked about it."""

    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="paper: L1, target paper, ratio 1.2, relu outputs, cap 0.2; options given beside it win.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of(*c.PRESETS),
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="any other class (the default), the number of a class, several such as 3,8 of which any "
            "will do, or paper for (label + 5) mod 10.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of(*c.TARGETS),
        ),
    ] = None
    norm: Annotated[
        str | None,
        typer.Option(
            "--norm",
            help="l1, l2, linf or l0.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of(*NORM_NAMES),
        ),
    ] = None
    cap: Annotated[
        float | None,
        typer.Option(
            "--cap",
            help="The most that any pixel may change, such as 0.2 or 51/255.",
            rich_help_panel=QUESTION,
            parser=read_amount,
            metavar="NUMBER",
        ),
    ] = None
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            help="By how much the new class must lead; 0.001 by default.",
            rich_help_panel=QUESTION,
            parser=read_amount,
            metavar="NUMBER",
        ),
    ] = None
    ratio: Annotated[
        float | None,
        typer.Option(
            "--ratio",
            help="Instead of a margin: how many times as likely the new class must be (relu outputs: as "
            "large).",
            rich_help_panel=QUESTION,
        ),
    ] = None
    confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence",
            help="Instead of a margin: the softmax probability that the new class must have, such as 0.9.",
            rich_help_panel=QUESTION,
            parser=read_amount,
            metavar="NUMBER",
        ),
    ] = None
    out_of_top: Annotated[
        int | None,
        typer.Option(
            "--out-of-top",
            help="Instead of a target: let the label drop out of so many of the highest scores.",
            rich_help_panel=QUESTION,
        ),
    ] = None
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            help="The pixels that may change: white in a picture, or not zero in an .npy file.",
            rich_help_panel=QUESTION,
        ),
    ] = None
    also: Annotated[
        str | None,
        typer.Option(
            "--also",
            help="A budget in a second norm, such as linf:0.3, l1:5 or l0:20.",
            rich_help_panel=QUESTION,
        ),
    ] = None
    patch: Annotated[
        int | None,
        typer.Option(
            "--patch",
            help="Change only a square of so many pixels a side, wherever it does the most.",
            rich_help_panel=QUESTION,
        ),
    ] = None
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            help="Change the whole image alike: brightness, contrast or brightness+contrast.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of(*CHANGE_NAMES),
        ),
    ] = None
    pixels: Annotated[
        str | None,
        typer.Option(
            "--pixels",
            help="8bit: only images that a picture file can hold, each pixel one of 256 values.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of(*PIXELS_NAMES),
        ),
    ] = None
    outputs: Annotated[
        str | None,
        typer.Option(
            "--outputs",
            help="logits, or relu for a ReLU on the class scores.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of(*OUTPUT_NAMES),
        ),
    ] = None
    radius: Annotated[
        float | None,
        typer.Option(
            "--radius",
            help="Look only within this distance, such as 8/255.",
            rich_help_panel=QUESTION,
            parser=read_amount,
            metavar="NUMBER",
        ),
    ] = None


@dataclass(frozen=True)
class CostOptions:
    """The paper's extra costs."""

    unit_cost: Annotated[
        float, typer.Option("--unit-cost", help="For the value of each unit.", rich_help_panel=COSTS)
    ] = 0.0
    inactive_penalty: Annotated[
        float, typer.Option("--inactive-penalty", help="For each inactive unit.", rich_help_panel=COSTS)
    ] = 0.0
    class_cost: Annotated[
        float,
        typer.Option("--class-cost", help="Reward for the wanted class's score.", rich_help_panel=COSTS),
    ] = 0.0


@dataclass(frozen=True)
class EffortOptions:
    """How hard to try."""

    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="auto, milp, milp-improved or milp-basic.",
            rich_help_panel=SEARCH,
            autocompletion=c.one_of(*METHOD_NAMES),
        ),
    ] = Effort.method
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            help="highs, scip, gurobi or cplex.",
            rich_help_panel=SEARCH,
            autocompletion=c.one_of(*SOLVER_NAMES),
        ),
    ] = Effort.solver
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Seconds for the whole search.", rich_help_panel=SEARCH)
    ] = Effort.time_limit
    threads: Annotated[
        int, typer.Option("--threads", help="Threads of the search.", rich_help_panel=SEARCH)
    ] = Effort.threads
    gap: Annotated[
        float,
        typer.Option(
            "--gap", help="Stop when the interval is this narrow, relatively.", rich_help_panel=SEARCH
        ),
    ] = Effort.gap


@dataclass(frozen=True)
class OutputOptions:
    """Where the answer goes."""

    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the answer, its images and a picture.")
    ] = None
    proof: Annotated[
        Path | None,
        typer.Option(help="A file for a proof of the lower bound, which closecall check checks."),
    ] = None
    deployed: Annotated[
        bool,
        typer.Option("--deployed", help="Prove it for the model in float32, with sums in any order."),
    ] = False
    as_json: AsJson = False
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Say on stderr what answered, why it was asked, and how exact it is."),
    ] = False
    _quiet: Quiet = False
