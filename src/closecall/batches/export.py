"""A store as a file for other programs: CSV, JSON Lines or Parquet."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from collections.abc import Iterable
from pathlib import Path

from closecall.batches.tables import COLUMNS, Row
from closecall.errors import InputError, MissingExtraError
from closecall.files import explaining_failed_writes, write_whole

SUFFIXES = (".csv", ".jsonl", ".parquet")


def check_export(path: Path) -> None:
    """Refuse a kind of file that cannot be written, before anything is read."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"An export is a file {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, not {path}.")
    if path.suffix.lower() == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("An export to Parquet", "parquet")


def export(rows: Iterable[Row], path: Path) -> int:
    """Write one line, or row, for each question and give how many there are."""
    check_export(path)
    listed = [*rows]
    write = {".csv": as_csv, ".jsonl": as_json_lines, ".parquet": as_parquet}[path.suffix.lower()]
    with explaining_failed_writes(str(path)):
        write_whole(path, write(listed))
    return len(listed)


def as_csv(rows: list[Row]) -> bytes:
    """Lists, as the pixel range is one, and what has names in JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v) if isinstance(v, (list, dict)) else v for k, v in row.items()})
    return text.getvalue().encode()


def as_json_lines(rows: list[Row]) -> bytes:
    return "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows).encode()


def as_parquet(rows: list[Row]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    content = io.BytesIO()
    # One type for each column, whatever its first row has: a target may be any (a word) or a number.
    plain = [{**row, "target": None if row["target"] is None else str(row["target"])} for row in rows]
    columns = {name: [as_number(row[name]) for row in plain] for name in COLUMNS}
    parquet.write_table(pyarrow.table(columns), content)
    return content.getvalue()


def as_number(value: object) -> object:
    return float(value) if type(value) is int else value
