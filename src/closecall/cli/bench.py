"""`closecall bench`: how fast, beside the solvers themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.completion import YARDSTICKS, one_of
from closecall.cli.ending import FAILED, INTERRUPTED, say
from closecall.cli.output import print_json, print_line

if TYPE_CHECKING:
    from closecall.bench.yardsticks import Folders

SOUNDNESS = "soundness"


@app.command()
def bench(
    yardsticks: Annotated[
        list[str] | None,
        typer.Argument(
            help="Any of paper, gurobi, highs, norms, cnn, robust, wide, oval21, pixels and growth, all by "
            "default; or soundness alone.",
            autocompletion=one_of(*YARDSTICKS, SOUNDNESS),
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All images and long limits, for hours; or a few of each.")
    ] = False,
    mnistfc: Annotated[
        Path | None,
        typer.Option(
            envvar="CLOSECALL_MNISTFC",
            help="A folder with *instances.csv, .onnx and .vnnlib files for wide; expected.csv is compared.",
        ),
    ] = None,
    oval21: Annotated[
        Path | None,
        typer.Option(envvar="CLOSECALL_OVAL21", help="A folder like that for mnistfc, for oval21."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for PERFORMANCE.md and its pictures.")] = Path("docs"),
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Measure how fast `auto` is beside other methods and solvers, and write PERFORMANCE.md.

    Every finished measurement is kept in performance.jsonl in the same folder, and a rerun goes on where the
    last one stopped; delete that file to measure anew. Exit code 1: some answer is wrong.

    `soundness` asks all methods about networks of known answer in disguise, 300 or (--full) 10,000, on every
    core; its record is soundness.jsonl.
    """
    # Before anything imports numpy: a library that was loaded with more threads keeps them.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"

    if yardsticks == [SOUNDNESS]:
        hear_liars("full" if full else "quick", out, as_json)
    else:
        measure_speed(yardsticks or [], full, {"mnistfc": mnistfc, "oval21": oval21}, out, as_json)


def measure_speed(yardsticks: list[str], full: bool, folders: Folders, out: Path, as_json: bool) -> None:
    """How fast, beside other methods and solvers."""
    from closecall.cli.progress import waiting

    with waiting("starting"):
        from closecall.bench import PAGE, measure_all
        from closecall.bench.yardsticks import yardsticks_named

    chosen = yardsticks_named(yardsticks)
    try:
        with waiting("measuring"):
            wrong = measure_all(
                chosen,
                "full" if full else "quick",
                out,
                folders,
                lambda line: print_line(line, as_json),
            )
    except KeyboardInterrupt:
        say("interrupted; run the same command again to go on.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        names = [yardstick.name for yardstick in chosen]
        print_json({"page": str(out / PAGE), "yardsticks": names, "wrong": [*wrong]})
    else:
        typer.echo(f"The page is {out / PAGE}")
    end_with(wrong)


def hear_liars(size: str, out: Path, as_json: bool) -> None:
    """Whether anybody is taken in by networks whose answers are known."""
    from closecall.cli.progress import waiting

    with waiting("starting"):
        from closecall.bench.soundness import LIARS, RECORD, hear_all, sentence
    try:
        with waiting("asking"):
            heard = hear_all(LIARS[size], out, lambda line: print_line(line, as_json))
    except KeyboardInterrupt:
        say("interrupted; run the same command again to go on.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"record": str(out / RECORD), **asdict(heard)})
    else:
        typer.echo(f"{heard.liars:,} liars, {heard.planted:,} with a planted adversarial: {sentence(heard)}")
    end_with(heard.lies)


def end_with(wrong: Sequence[str]) -> None:
    for found in wrong:
        say(f"WRONG ANSWER: {found}")
    if wrong:
        raise typer.Exit(FAILED)
