"""The command line: thin commands over the package's functions, one file per group."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from closecall._version import __version__
from closecall.cli.ending import INTERRUPTED, run, say, show_every_letter


class Commands(TyperGroup):
    """All commands; one that does not say itself what Ctrl-C left behind says at least that it came."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted before it was done.")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="closecall",
    cls=Commands,
    help="How close is the call? The provably nearest image that changes a classifier's mind.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"closecall {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """What every command takes; `main` itself looks for --debug, which must also work when parsing fails."""


def main() -> None:
    """Run the command line; a deliberate error becomes one sentence and an exit code."""
    show_every_letter()
    sys.exit(run(app, debug="--debug" in sys.argv))


# Each module adds its commands when it is imported, in the order in which `closecall --help` lists them.
for _name in (
    "bench", "compare", "demo", "predict", "nearest", "ideal", "saved", "train", "vnncomp", "zoo", "capsules",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_name}")
