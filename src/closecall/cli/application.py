"""The application that commands are added to, and which module has which command."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from closecall._version import __version__
from closecall.cli.ending import INTERRUPTED, say

# Where each command is, in the order in which `closecall --help` lists them.
HOMES = {
    "bench": "bench",
    "compare": "compare",
    "demo": "demo",
    "serve": "serve",
    "predict": "predict",
    "nearest": "nearest",
    "certify": "nearest",
    "curve": "curve",
    "batch": "batch_stores",
    "report": "batch_stores",
    "ideal": "ideal",
    "universal": "universal",
    "replay": "saved",
    "check": "proofs",
    "export-milp": "saved",
    "train": "train",
    "vnncomp": "vnncomp",
    "zoo": "zoo",
    "capsules": "capsules",
}


class Commands(TyperGroup):
    """All commands; one that does not say itself what Ctrl-C left behind says at least that it came."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted before it was done.")
            raise typer.Exit(INTERRUPTED) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands that are loaded, in the order in which `closecall --help` lists them."""
        return sorted(super().list_commands(ctx), key=list(HOMES).index)


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


def load_commands(given: Sequence[str]) -> None:
    """Import the command that the arguments name, or all where they name none, as for --help.

    Each module adds its commands to the application when it is imported, which takes a moment for each.
    """
    named = next((word for word in given if not word.startswith("-")), "")
    for home in [HOMES[named]] if named in HOMES else dict.fromkeys(HOMES.values()):
        importlib.import_module(f"closecall.cli.{home}")
