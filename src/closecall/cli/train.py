"""`closecall train`: train a model on a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.ending import INTERRUPTED, say
from closecall.cli.grouping import grouped
from closecall.cli.output import lines_console, print_json
from closecall.cli.train_options import ArchitectureOptions, LearningOptions


@app.command()
@grouped()
def train(
    *,
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The folder to write the model and its curves into.")],
    architecture: ArchitectureOptions,
    learning: LearningOptions,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the training in --out, with the options it was started with."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start again in a folder already used.")
    ] = False,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Train a model and write model.safetensors, model.json, model.onnx, curves.csv and curves.png.

    The best epoch is chosen on images held out of training; the test images are looked at once, at the end.
    The same seed and the same number of threads give the same weights on the same machine.
    """
    from closecall.cli.progress import waiting

    with waiting("starting"):
        from closecall.train import TrainingPlan, train_into
        from closecall.train.folder import CHECKPOINT
        from closecall.train.started import Started, go_on

    kind, config, plan = architecture.kind, architecture.config(), learning.plan()
    if resume:
        options = {"model": kind, "dataset": learning.dataset, **config, **plan}
        started = go_on(out / CHECKPOINT, _typed(context, options))
    else:
        started = Started(kind, config, learning.dataset, TrainingPlan(**plan))
    try:
        described = train_into(
            out, started.kind, started.config, started.dataset, started.plan,
            resume=resume, overwrite=overwrite, console=lines_console(as_json),
        )  # fmt: skip
    except KeyboardInterrupt:
        saved = f"the state is saved in {out}: give the same command with --resume to go on"
        say(f"interrupted; {saved if (out / CHECKPOINT).exists() else 'nothing was trained yet'}.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"folder": str(out), "model": started.kind, **described})
    else:
        tell(described, out)


def tell(described: Mapping[str, Any], out: Path) -> None:
    if "proven" in described:
        from closecall.models.zoo import radius_proven

        radius = radius_proven(described["recipe"])
        typer.echo(
            f"{described['proven']:.2%} of the test images are proven within {radius:g} by intervals alone."
        )
    typer.echo(
        f"{described['accuracy']:.2%} of the test images are classified correctly after "
        f"{described['seconds']:.1f} s on {described['recipe']['threads']} thread(s); the model is in {out}"
    )


def _typed(context: typer.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that stand on the command line, without those that have their defaults."""
    sources = {name: context.get_parameter_source(name) for name in options}
    typed = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    return {name: options[name] for name in typed}
