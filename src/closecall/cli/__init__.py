"""The command line: thin commands over the package's functions, one file per group."""

from __future__ import annotations

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
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = {"debug": debug}


def main() -> None:
    """Run the command line; a deliberate error becomes one sentence and an exit code."""
    show_every_letter()
    sys.exit(run(app, debug="--debug" in sys.argv))


from closecall.cli import bench as _bench  # noqa: E402, F401
from closecall.cli import capsules as _capsules  # noqa: E402, F401
from closecall.cli import compare as _compare  # noqa: E402, F401
from closecall.cli import demo as _demo  # noqa: E402, F401
from closecall.cli import predict as _predict  # noqa: E402, F401
from closecall.cli import query as _query  # noqa: E402, F401
from closecall.cli import saved as _saved  # noqa: E402, F401
from closecall.cli import train as _train  # noqa: E402, F401
from closecall.cli import vnncomp as _vnncomp  # noqa: E402, F401
from closecall.cli import zoo as _zoo  # noqa: E402, F401
