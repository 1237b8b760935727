"""The options of `closecall train`: the architecture, the training, and what makes a model easy to prove."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from closecall.cli import completion
from closecall.cli import options as o
from closecall.errors import InputError

_BLOCKS_HELP = (
    "The blocks of a cnn, separated by commas. 8x5 is 8 kernels of 5×5 and a 2×2 pooling; 8x6s2p1/3s2 has "
    "stride 2, padding 1 and a 3×3 pooling of stride 2; /0 leaves the pooling out. Unless given, one "
    "convolution that suits the images: 16x8s4/0 for 28×28 and 32×32, 16x4s2/0 for 8×8."
)
_SHORT_NAMES = {"caps": "capsnet"}
_ARCHITECTURE, _LEARNING, _PROVING = "The model", "The training", "Made to be proven"


@dataclass(frozen=True)
class ArchitectureOptions:
    """Which model; whatever is left out is as the model itself has it."""

    model: Annotated[
        str,
        typer.Option(
            help="dnn, cnn, cnn-baseline or capsnet (caps for short).",
            rich_help_panel=_ARCHITECTURE,
            autocompletion=completion.one_of(*completion.MODELS),
        ),
    ] = "dnn"
    sizes: Annotated[
        str | None,
        typer.Option(
            help="The hidden layers of a dnn, such as 20,20,10; 50,50 unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None
    blocks: Annotated[str | None, typer.Option(help=_BLOCKS_HELP, rich_help_panel=_ARCHITECTURE)] = None
    kernels: Annotated[
        str | None,
        typer.Option(
            help="The kernels of a cnn-baseline's convolutions; 256,256,128 unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None
    hidden: Annotated[
        str | None,
        typer.Option(
            help='The dense layers after the convolutions, "" for none; unless given, 32 for a cnn, 328,192 '
            "for a cnn-baseline.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None
    convolution: Annotated[
        str | None,
        typer.Option(
            help="standard or paper, for a cnn; standard unless given.", rich_help_panel=_ARCHITECTURE
        ),
    ] = None
    bias: Annotated[
        bool | None,
        typer.Option(
            "--bias/--no-bias", help="Biases, unless told otherwise.", rich_help_panel=_ARCHITECTURE
        ),
    ] = None
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Whether a cnn's windows must fit a whole number of times; those given in --blocks must.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None
    outputs: Annotated[
        str | None,
        typer.Option(
            help="logits (unless given), or relu for a ReLU on the outputs.", rich_help_panel=_ARCHITECTURE
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(
            help="paper, small, efficient or matrix, for a capsnet; small unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None
    routing: Annotated[
        str | None,
        typer.Option(
            help="dynamic, attention or em, for a capsnet; the preset's unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None
    iterations: Annotated[
        int | None,
        typer.Option(help="Routing iterations of a capsnet; 3 unless given.", rich_help_panel=_ARCHITECTURE),
    ] = None

    @property
    def kind(self) -> str:
        return _SHORT_NAMES.get(self.model, self.model)

    def config(self) -> dict[str, Any]:
        """The options of the architecture that were given."""
        given = {name: value for name, value in asdict(self).items() if name != "model" and value is not None}
        for name in ("sizes", "kernels", "hidden"):
            if name in given:
                given[name] = numbers_in(given[name], f"--{name}")
        if "blocks" in given:
            given["blocks"] = given["blocks"].split(",")
        return given


@dataclass(frozen=True)
class LearningOptions:
    """On which images, and how."""

    dataset: Annotated[
        str,
        typer.Option(
            help="digits, mnist, fashion, cifar10, multimnist, mnist-affine, or a path.",
            rich_help_panel=_LEARNING,
            autocompletion=completion.complete_dataset,
        ),
    ] = "digits"
    epochs: Annotated[int, typer.Option(help="Passes over the images.", rich_help_panel=_LEARNING)] = 10
    batch: Annotated[
        str, typer.Option(help="Images per step; full takes all at once.", rich_help_panel=_LEARNING)
    ] = "128"
    optimizer: Annotated[str, typer.Option(help="adam or sgd.", rich_help_panel=_LEARNING)] = "adam"
    loss: Annotated[
        str | None,
        typer.Option(
            help="cross-entropy or mse; unless given, the model's own, else cross-entropy.",
            rich_help_panel=_LEARNING,
        ),
    ] = None
    learning_rate: Annotated[
        float | None, typer.Option(help="By default 0.001 for adam, 0.1 for sgd.", rich_help_panel=_LEARNING)
    ] = None
    schedule: Annotated[
        str,
        typer.Option(
            help="The learning rate stays constant or falls as a cosine.", rich_help_panel=_LEARNING
        ),
    ] = "constant"
    weight_decay: Annotated[float, typer.Option(help="Pulls weights to zero.", rich_help_panel=_LEARNING)] = (
        0.0
    )
    shift: Annotated[
        int, typer.Option(help="Move images at random by up to so many pixels.", rich_help_panel=_LEARNING)
    ] = 0
    validation: Annotated[
        int | None,
        typer.Option(
            help="Images held out to choose the best epoch; 1 in 12 by default.", rich_help_panel=_LEARNING
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Decides weights and order.", rich_help_panel=_LEARNING)] = 0
    threads: Annotated[
        int | None, typer.Option(help="By default the fastest number, measured.", rich_help_panel=_LEARNING)
    ] = None
    stable: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Weighs a penalty on ReLUs without a fixed sign near an image; tiny weights are dropped.",
            rich_help_panel=_PROVING,
        ),
    ] = None
    stable_radius: Annotated[
        float | None,
        typer.Option(
            help="How near, in L∞, such as 8/255; by default 0.05.",
            rich_help_panel=_PROVING,
            parser=o.read_amount,
            metavar="NUMBER",
        ),
    ] = None
    l1: Annotated[
        float | None,
        typer.Option(
            "--l1", help="Weighs the sum of all weights' sizes; by default 1e-5.", rich_help_panel=_PROVING
        ),
    ] = None
    adversarial: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="Trains on images moved against the model within this radius in L∞, such as 0.1 or 8/255.",
            rich_help_panel=_PROVING,
            parser=o.read_amount,
        ),
    ] = None
    adversarial_ramp: Annotated[
        float | None,
        typer.Option(
            help="The share of the training over which that radius grows from 0; by default 0.5.",
            rich_help_panel=_PROVING,
        ),
    ] = None
    certified: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="Trains for proofs within this radius in L∞, such as 0.1 or 2/255, by intervals that grow.",
            rich_help_panel=_PROVING,
            parser=o.read_amount,
        ),
    ] = None
    certified_reach: Annotated[
        float | None,
        typer.Option(help="Trains at so many times that radius; by default 1.1.", rich_help_panel=_PROVING),
    ] = None
    certified_weight: Annotated[
        float | None,
        typer.Option(
            help="The share of the loss that the worst scores in the ball have at last; by default 0.5.",
            rich_help_panel=_PROVING,
        ),
    ] = None
    certified_ramp: Annotated[
        float | None,
        typer.Option(
            help="The share of the training over which radius and weight grow from 0; by default 0.5.",
            rich_help_panel=_PROVING,
        ),
    ] = None

    def plan(self) -> dict[str, Any]:
        """The fields of a training plan."""
        batch = 0 if self.batch == "full" else numbers_in(self.batch, "--batch", count=1)[0]
        plan = {**asdict(self), "batch": batch}
        del plan["dataset"]
        return plan


def numbers_in(text: str, option: str, *, count: int | None = None) -> list[int]:
    """Read whole numbers separated by commas."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() for part in parts) or count not in (None, len(parts)):
        wanted = "a whole number" if count == 1 else "whole numbers separated by commas, such as 20,10"
        raise InputError(f"{option} takes {wanted}, not {text!r}.")
    return [int(part) for part in parts]
