"""What a command prints: one JSON object and nothing else, or lines for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def print_json(record: Mapping[str, Any]) -> None:
    """One object on one line, in plain ASCII, which every terminal and every reader of JSON takes."""
    typer.echo(json.dumps(record, allow_nan=False))


def lines_console(as_json: bool) -> Console:
    """For the lines that a long command leaves behind: stdout is the object's alone when there is one."""
    from rich.console import Console

    from closecall.consoles import quiet, shows_progress, stderr_console

    if not as_json:
        return Console(highlight=False, soft_wrap=True, markup=False, quiet=quiet())
    console = stderr_console()
    return console if shows_progress(console) else Console(quiet=True)
