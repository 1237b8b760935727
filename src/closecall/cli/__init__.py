"""The command line: thin commands over the package's functions, one file per group."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from closecall._version import __version__
from closecall.errors import ClosecallError, InputError

app = typer.Typer(
    name="closecall",
    help="How close is the call? The provably nearest image that changes a classifier's mind.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
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
    try:
        app()
    except ClosecallError as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"closecall: {error}", err=True)
        sys.exit(2 if isinstance(error, InputError) else 1)


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
