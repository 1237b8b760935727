"""The numbers of a comparison as CSV files, one for each kind of row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from closecall.compare.results import Results
from closecall.files import prepare_folder, write_whole

FOLDER = "csv"
PICTURES = ("original", "nearest", "shots", "answers")


def write_tables(results: Results, out: Path) -> list[Path]:
    """Write every table that has rows; lists have their entries separated by spaces."""
    folder = out / FOLDER
    prepare_folder(folder)
    written = []
    for name, rows in tables(results).items():
        path = folder / f"{name}.csv"
        if rows:
            write_whole(path, table(rows).encode())
            written.append(path)
        else:
            path.unlink(missing_ok=True)
    return written


def tables(results: Results) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file, without pictures."""
    return {
        "models": plain(results.models),
        "distances": plain(results.distances),
        "moved": plain(results.transformed),
        "few": plain(results.few),
        "overlapping": plain(results.overlapping),
        "encodings": plain(results.encodings),
        "milps": [
            {"model": row.model, "pairing": row.pairing, **asdict(answer)}
            for row in results.encodings
            for answer in row.answers
        ],
    }


def plain(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in asdict(row).items() if name not in PICTURES} for row in rows]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def cell(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value
