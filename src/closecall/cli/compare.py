"""`closecall compare`: models on the same images, measured and shown on one page."""

from __future__ import annotations

import importlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import completion
from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.ending import INTERRUPTED, say
from closecall.cli.grouping import grouped
from closecall.cli.output import lines_console, print_json
from closecall.question.names import NORM_NAMES

_MODELS, _AMOUNT = "The models", "How much"


@dataclass(frozen=True)
class ContenderOptions:
    """Who is compared."""

    models: Annotated[
        str,
        typer.Option(
            help="Any of dnn, cnn, cnn-baseline and capsnet, separated by commas.", rich_help_panel=_MODELS
        ),
    ] = "dnn,cnn,cnn-baseline,capsnet"
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="A trained model instead of one trained here: a folder, an .onnx file or zoo:NAME.",
            rich_help_panel=_MODELS,
        ),
    ] = None


@dataclass(frozen=True)
class AmountOptions:
    """How much is trained and measured."""

    preset: Annotated[
        str,
        typer.Option(
            help="quick: a minute on small images; full: an hour on MNIST.", rich_help_panel=_AMOUNT
        ),
    ] = "quick"
    seeds: Annotated[
        int | None,
        typer.Option(
            help="How often each model is trained; unless given, 2 (quick) or 3 (full).",
            rich_help_panel=_AMOUNT,
        ),
    ] = None
    images: Annotated[
        int | None,
        typer.Option(help="Test images whose distances are asked for.", rich_help_panel=_AMOUNT),
    ] = None
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for each of these distances.", rich_help_panel=_AMOUNT)
    ] = None
    norm: Annotated[
        str,
        typer.Option(
            help="linf, l1, l2 or l0.",
            rich_help_panel=_AMOUNT,
            autocompletion=completion.one_of(*NORM_NAMES),
        ),
    ] = "linf"
    threads: Annotated[int, typer.Option(help="Threads for everything.", rich_help_panel=_AMOUNT)] = 1


@app.command()
@grouped()
def compare(
    *,
    dataset: Annotated[
        str,
        typer.Option(
            help="digits, mnist, fashion, cifar10, or a path.", autocompletion=completion.complete_dataset
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for the page, the numbers and the trained models.")],
    contenders: ContenderOptions,
    amount: AmountOptions,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Train or take models, measure them on the same images, and write one page that shows it all.

    The folder gets report.html, results.json, csv and figures. What was measured is kept there: the same
    command after an interruption goes on where it stopped.
    """
    # Before anything imports numpy: a library that was loaded with more threads keeps them.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(max(1, amount.threads))

    from closecall.cli.progress import showing_interval, waiting

    with waiting("starting"):
        from closecall.compare.contenders import parse_given
        from closecall.compare.page import write_report
        from closecall.compare.progress import Progress
        from closecall.compare.results import FILE
        from closecall.compare.run import Wishes
        from closecall.compare.run import compare as run_comparison

        # Now, not when the first model is read: Ctrl-C while ONNX Runtime is loaded becomes an ImportError.
        importlib.import_module("closecall.readers.engines")

    console = lines_console(as_json)
    names = [name.strip() for name in contenders.models.split(",") if name.strip()]
    wishes = Wishes(dataset, names, parse_given(contenders.model or []), **asdict(amount))
    try:
        results = run_comparison(wishes, out, Progress(console, showing_interval))
        console.print("— the page and its figures")
        page = write_report(results, out)
    except KeyboardInterrupt:
        say("interrupted; what was measured is kept: run the same command again to go on.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"page": str(page), "results": str(out / FILE)})
    else:
        typer.echo(f"The page is {page}")
