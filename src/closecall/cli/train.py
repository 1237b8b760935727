"""`closecall train`: train a model on a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from closecall.cli import app, completion
from closecall.cli import options as o
from closecall.cli.ending import INTERRUPTED, say
from closecall.cli.output import lines_console, print_json
from closecall.errors import InputError

_BLOCKS_HELP = (
    "The blocks of a cnn, separated by commas. 8x5 is 8 kernels of 5×5 and a 2×2 pooling; 8x6s2p1/3s2 has "
    "stride 2, padding 1 and a 3×3 pooling of stride 2; /0 leaves the pooling out. Unless given, one "
    "convolution that suits the images: 16x8s4/0 for 28×28 and 32×32, 16x4s2/0 for 8×8."
)
_SHORT_NAMES = {"caps": "capsnet"}
_ARCHITECTURE, _LEARNING, _PROVING = "The model", "The training", "Made to be proven"


@app.command()
def train(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The folder to write the model and its curves into.")],
    model: Annotated[
        str,
        typer.Option(
            help="dnn, cnn, cnn-baseline or capsnet (caps for short).",
            rich_help_panel=_ARCHITECTURE,
            autocompletion=completion.one_of(*completion.MODELS),
        ),
    ] = "dnn",
    sizes: Annotated[
        str | None,
        typer.Option(
            help="The hidden layers of a dnn, such as 20,20,10; 50,50 unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None,
    blocks: Annotated[str | None, typer.Option(help=_BLOCKS_HELP, rich_help_panel=_ARCHITECTURE)] = None,
    kernels: Annotated[
        str | None,
        typer.Option(
            help="The kernels of a cnn-baseline's convolutions; 256,256,128 unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help='The dense layers after the convolutions, "" for none; unless given, 32 for a cnn, 328,192 '
            "for a cnn-baseline.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None,
    convolution: Annotated[
        str | None,
        typer.Option(
            help="standard or paper, for a cnn; standard unless given.", rich_help_panel=_ARCHITECTURE
        ),
    ] = None,
    bias: Annotated[
        bool | None,
        typer.Option(
            "--bias/--no-bias", help="Biases, unless told otherwise.", rich_help_panel=_ARCHITECTURE
        ),
    ] = None,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Whether a cnn's windows must fit a whole number of times; those given in --blocks must.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None,
    outputs: Annotated[
        str | None,
        typer.Option(
            help="logits (unless given), or relu for a ReLU on the outputs.", rich_help_panel=_ARCHITECTURE
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="paper, small, efficient or matrix, for a capsnet; small unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None,
    routing: Annotated[
        str | None,
        typer.Option(
            help="dynamic, attention or em, for a capsnet; the preset's unless given.",
            rich_help_panel=_ARCHITECTURE,
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(help="Routing iterations of a capsnet; 3 unless given.", rich_help_panel=_ARCHITECTURE),
    ] = None,
    dataset: Annotated[
        str,
        typer.Option(
            help="digits, mnist, fashion, cifar10, multimnist, mnist-affine, or a path.",
            rich_help_panel=_LEARNING,
            autocompletion=completion.complete_dataset,
        ),
    ] = "digits",
    epochs: Annotated[int, typer.Option(help="Passes over the images.", rich_help_panel=_LEARNING)] = 10,
    batch: Annotated[
        str, typer.Option(help="Images per step; full takes all at once.", rich_help_panel=_LEARNING)
    ] = "128",
    optimizer: Annotated[str, typer.Option(help="adam or sgd.", rich_help_panel=_LEARNING)] = "adam",
    loss: Annotated[
        str | None,
        typer.Option(
            help="cross-entropy or mse; unless given, the model's own, else cross-entropy.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="By default 0.001 for adam, 0.1 for sgd.", rich_help_panel=_LEARNING)
    ] = None,
    schedule: Annotated[
        str,
        typer.Option(
            help="The learning rate stays constant or falls as a cosine.", rich_help_panel=_LEARNING
        ),
    ] = "constant",
    weight_decay: Annotated[
        float, typer.Option(help="Pulls weights to zero.", rich_help_panel=_LEARNING)
    ] = 0.0,
    shift: Annotated[
        int, typer.Option(help="Move images at random by up to so many pixels.", rich_help_panel=_LEARNING)
    ] = 0,
    validation: Annotated[
        int | None,
        typer.Option(
            help="Images held out to choose the best epoch; 1 in 12 by default.", rich_help_panel=_LEARNING
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides weights and order.", rich_help_panel=_LEARNING)] = 0,
    threads: Annotated[
        int | None, typer.Option(help="By default the fastest number, measured.", rich_help_panel=_LEARNING)
    ] = None,
    stable: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Weighs a penalty on ReLUs without a fixed sign near an image; tiny weights are dropped.",
            rich_help_panel=_PROVING,
        ),
    ] = None,
    stable_radius: Annotated[
        float | None,
        typer.Option(
            help="How near, in L∞, such as 8/255; by default 0.05.",
            rich_help_panel=_PROVING,
            parser=o.read_amount,
            metavar="NUMBER",
        ),
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option(
            "--l1", help="Weighs the sum of all weights' sizes; by default 1e-5.", rich_help_panel=_PROVING
        ),
    ] = None,
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
        from closecall.train.started import go_on

    model = _SHORT_NAMES.get(model, model)
    architecture: dict[str, Any] = {
        "sizes": None if sizes is None else _numbers(sizes, "--sizes"),
        "blocks": None if blocks is None else blocks.split(","),
        "kernels": None if kernels is None else _numbers(kernels, "--kernels"),
        "hidden": None if hidden is None else _numbers(hidden, "--hidden"),
        "convolution": convolution,
        "bias": bias,
        "strict": strict,
        "outputs": outputs,
        "preset": preset,
        "routing": routing,
        "iterations": iterations,
    }
    config = {name: value for name, value in architecture.items() if value is not None}
    learning: dict[str, Any] = {
        "epochs": epochs,
        "batch": 0 if batch == "full" else _numbers(batch, "--batch", count=1)[0],
        "optimizer": optimizer,
        "loss": loss,
        "learning_rate": learning_rate,
        "schedule": schedule,
        "weight_decay": weight_decay,
        "shift": shift,
        "validation": validation,
        "seed": seed,
        "threads": threads,
        "stable": stable,
        "stable_radius": stable_radius,
        "l1": l1,
    }
    if resume:
        options = {"model": model, "dataset": dataset, **config, **learning}
        started = go_on(out / CHECKPOINT, _typed(context, options))
        model, config, dataset, plan = started.kind, started.config, started.dataset, started.plan
    else:
        plan = TrainingPlan(**learning)
    console = lines_console(as_json)
    try:
        described = train_into(
            out, model, config, dataset, plan, resume=resume, overwrite=overwrite, console=console
        )
    except KeyboardInterrupt:
        saved = f"the state is saved in {out}: give the same command with --resume to go on"
        say(f"interrupted; {saved if (out / CHECKPOINT).exists() else 'nothing was trained yet'}.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"folder": str(out), "model": model, **described})
        return
    typer.echo(
        f"{described['accuracy']:.2%} of the test images are classified correctly after "
        f"{described['seconds']:.1f} s on {described['recipe']['threads']} thread(s); the model is in {out}"
    )


def _typed(context: typer.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that stand on the command line, without those that have their defaults."""
    sources = {name: context.get_parameter_source(name) for name in options}
    typed = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    return {name: options[name] for name in typed}


def _numbers(text: str, option: str, *, count: int | None = None) -> list[int]:
    """Read whole numbers separated by commas."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() for part in parts) or count not in (None, len(parts)):
        wanted = "a whole number" if count == 1 else "whole numbers separated by commas, such as 20,10"
        raise InputError(f"{option} takes {wanted}, not {text!r}.")
    return [int(part) for part in parts]
