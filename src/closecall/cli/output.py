"""What a command prints: one JSON object and nothing else, or lines for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def print_json(record: Mapping[str, Any]) -> None:
    """One object on one line, in plain ASCII, which every terminal and every reader of JSON takes."""
    typer.echo(json.dumps(record, allow_nan=False))


def print_line(line: str, as_json: bool) -> None:
    """One line of a long command, also while something live is shown below it."""
    from closecall.consoles import quiet, shows_progress, stderr_console

    if not quiet() and (not as_json or shows_progress(stderr_console())):
        stream = sys.stderr if as_json else sys.stdout  # not typer.echo, which writes past what is live
        stream.write(f"{line}\n")
        stream.flush()


def lines_console(as_json: bool) -> Console:
    """For the lines that a long command leaves behind: stdout is the object's alone when there is one."""
    from rich.console import Console

    from closecall.consoles import quiet, shows_progress, stderr_console

    if not as_json:
        return Console(highlight=False, soft_wrap=True, markup=False, quiet=quiet())
    console = stderr_console()
    return console if shows_progress(console) else Console(quiet=True)
