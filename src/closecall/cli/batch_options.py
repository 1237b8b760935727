"""The options of `closecall batch`: which images, where answers are kept, and who is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from closecall.cli import completion as c
from closecall.cli.options import IMAGE, QUESTION, DatasetName, SplitName
from closecall.errors import InputError

KEEPING, WORKERS = "The store", "Who is asked"


@dataclass(frozen=True)
class BatchOptions:
    """What a batch takes beside the question and the effort."""

    dataset: DatasetName = None
    indices: Annotated[
        str | None,
        typer.Option(
            "--indices",
            help="Which images, counted from 0: 0:1000, 5, or several such as 0:10,20; all by default.",
            rich_help_panel=IMAGE,
        ),
    ] = None
    split: SplitName = "test"
    task: Annotated[
        str,
        typer.Option(
            "--task",
            help="nearest, or certify within --radius.",
            rich_help_panel=QUESTION,
            autocompletion=c.one_of("nearest", "certify"),
        ),
    ] = "nearest"
    store: Annotated[
        Path | None,
        typer.Option("--store", help="The file that keeps the answers.", rich_help_panel=KEEPING),
    ] = None
    rerun: Annotated[
        str,
        typer.Option(
            "--rerun",
            help="Of what the store has, ask again: never, what is unresolved, or all.",
            rich_help_panel=KEEPING,
            autocompletion=c.one_of("never", "unresolved", "all"),
        ),
    ] = "never"
    shard: Annotated[
        str,
        typer.Option(
            "--shard", help="One part of the questions, such as 2/8; `merge` joins.", rich_help_panel=KEEPING
        ),
    ] = "1/1"
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            help="Processes on this machine, by default one for each core; 0: this one alone.",
            rich_help_panel=WORKERS,
        ),
    ] = None
    memory_limit: Annotated[
        str,
        typer.Option(
            "--memory-limit",
            help="Of each process, such as 4GB; by default its share of the machine's.",
            rich_help_panel=WORKERS,
        ),
    ] = "auto"
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", help="A Dask cluster, such as tcp://10.0.0.1:8786.", rich_help_panel=WORKERS
        ),
    ] = None
    scheduler_file: Annotated[
        Path | None,
        typer.Option("--scheduler-file", help="The same by the file that it wrote.", rich_help_panel=WORKERS),
    ] = None


MOST_INDEX = 10**8  # more images than any data set has, and no more numbers than fit into memory


def read_indices(text: str | None) -> list[int] | None:
    """Numbers and ranges separated by commas, such as 0:100,205,300:400:10."""
    if text is None:
        return None
    chosen: list[int] = []
    for part in text.split(","):
        numbers = [piece.strip() for piece in part.split(":")]
        if len(numbers) > 3 or not all(piece.isascii() and piece.isdigit() for piece in numbers):
            raise InputError(f"--indices takes numbers and ranges such as 0:1000 or 3,7,20:30, not {text!r}.")
        ends = [int(piece) for piece in numbers]
        if len(ends) == 3 and ends[2] == 0:
            raise InputError(f"--indices cannot step by 0, as in {text!r}.")
        if max(ends) > MOST_INDEX:
            raise InputError(f"--indices counts up to {MOST_INDEX:,}, not to {max(ends):,}.")
        chosen += ends if len(ends) == 1 else [*range(*ends)]
    return chosen


def read_shard(text: str) -> tuple[int, int]:
    """A part and how many there are, such as 2/8."""
    part, _, parts = text.partition("/")
    if not (part.isascii() and part.isdigit() and parts.isascii() and parts.isdigit()):
        raise InputError(f"--shard takes a part such as 2/8, not {text!r}.")
    return int(part), int(parts)
