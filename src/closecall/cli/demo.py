"""`closecall demo`: the main job on the embedded digits, ending in a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.ending import INTERRUPTED, say
from closecall.cli.output import lines_console, print_json

if TYPE_CHECKING:
    from closecall.milp import OnProgress


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the models, the answers and the page.")] = Path(
        "runs/demo"
    ),
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Train a DNN and a CNN on the embedded digits and show how close their calls are.

    Needs no network; takes about a minute. What an earlier demo left in the folder is replaced.
    """
    from closecall.cli.progress import waiting
    from closecall.files import prepare_folder

    prepare_folder(out)
    with waiting("starting"):
        from closecall.demo.run import run_demo
    try:
        page = run_demo(out, lines_console(as_json), showing_a_question, waiting)
    except KeyboardInterrupt:
        say(f"interrupted; what was found is in {out}, the page is not.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"page": str(page), "folder": str(out)})
    else:
        typer.echo(f"The page is {page}")


@contextmanager
def showing_a_question() -> Iterator[OnProgress]:
    """Show the interval of one question; Ctrl-C ends the demo, not only the question."""
    from closecall.bench.measure import raising_every_interrupt
    from closecall.cli.progress import showing_interval

    with raising_every_interrupt(), showing_interval() as report:
        yield report
