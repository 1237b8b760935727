"""How a command that asked a question prints, saves and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from closecall.cli.ending import INTERRUPTED, say
from closecall.cli.options import OutputOptions
from closecall.cli.output import print_json

UNRESOLVED = 3


@contextmanager
def ending_early() -> Iterator[None]:
    """End with a sentence if Ctrl-C comes before anything is known."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted before anything was proven.")
        raise typer.Exit(INTERRUPTED) from None


def save_and_show(
    save: Callable[[Path], None], record: Mapping[str, Any], summary: str, output: OutputOptions
) -> None:
    """Print the answer whatever becomes of its files: hours may have gone into it."""
    from closecall.cli.progress import waiting

    saved = None
    try:
        if output.out is not None:
            with waiting(f"saving in {output.out}"):
                save(output.out)
            saved = str(output.out)
    finally:
        show({**record, "saved": saved}, summary, output)


def show(record: Mapping[str, Any], summary: str, output: OutputOptions) -> None:
    if output.as_json:
        print_json(record)
        return
    typer.echo(summary)
    for note in record["notes"]:
        typer.echo(f"Note: {note}.")
    plural = "" if record["nodes"] == 1 else "s"
    spent = f"{record['seconds']:.1f} s, {record['nodes']:,} node{plural}"
    typer.echo(spent if record["saved"] is None else f"{spent}; saved in {record['saved']}")


def end_by(outcome: str) -> None:
    if outcome == "unresolved":
        raise typer.Exit(UNRESOLVED)
