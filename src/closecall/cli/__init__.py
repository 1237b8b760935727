"""The command line: thin commands over the package's functions, one file per group."""

from __future__ import annotations

import sys
from typing import Any

from closecall.cli import application
from closecall.cli.ending import run, show_every_letter


def main() -> None:
    """Run the command line; a deliberate error becomes one sentence and an exit code."""
    show_every_letter()
    application.load_commands(sys.argv[1:])
    sys.exit(run(application.app, debug="--debug" in sys.argv))


def __getattr__(name: str) -> Any:
    """`app`, with all of its commands."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    application.load_commands(())
    return application.app
