"""Programs as MPS files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from closecall.errors import InputError
from closecall.milp.program import Milp


def write_mps(milp: Milp, path: str | os.PathLike[str]) -> None:
    """Write the model as free-format MPS, whole or not at all.

    Rows are named r0, r1, …; columns by `column_names`, or c0, c1, … without. A quadratic objective becomes a
    QUADOBJ section, read as ½ vᵀQv. Numbers have 17 digits, so that reading gives back the same floats.
    """
    names = column_names(milp)
    if len(set(names)) != milp.columns or any(len(name.split()) != 1 for name in names):
        raise InputError(
            f"An MPS file needs {milp.columns} different column names without spaces; "
            "rename the columns or leave the names out."
        )
    write_lines(Path(path), _mps_lines(milp, names))


def column_names(milp: Milp) -> tuple[str, ...]:
    return milp.column_names or tuple(f"c{j}" for j in range(milp.columns))


def write_lines(path: Path, lines: Iterator[str]) -> None:
    """Write a file line by line, whole or not at all; one whose name ends in .gz is compressed."""
    part = path.with_name(f"{path.name}.part")
    compress = path.suffix.lower() == ".gz"
    try:
        with (
            gzip.open(part, "wt", encoding="utf-8") if compress else part.open("w", encoding="utf-8") as file
        ):
            file.writelines(f"{line}\n" for line in lines)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _mps_lines(milp: Milp, names: tuple[str, ...]) -> Iterator[str]:
    yield "NAME closecall"
    yield "ROWS"
    yield " N cost"
    senses = _mps_senses(milp)
    yield from (f" {sense} r{i}" for i, sense in enumerate(senses) if sense)
    yield from _mps_columns(milp, names, senses)
    yield "RHS"
    sides = np.where(np.isfinite(milp.row_lower), milp.row_lower, milp.row_upper).tolist()
    yield from (f" RHS r{i} {side!r}" for i, side in enumerate(sides) if senses[i] and side != 0)
    yield "RANGES"
    widths = (milp.row_upper - milp.row_lower).tolist()
    ranged = np.isfinite(milp.row_lower) & np.isfinite(milp.row_upper) & (milp.row_lower < milp.row_upper)
    yield from (f" RANGE r{i} {widths[i]!r}" for i in np.flatnonzero(ranged).tolist())
    yield "BOUNDS"
    for name, lower, upper in zip(names, milp.lower.tolist(), milp.upper.tolist(), strict=True):
        yield f" MI BOUND {name}" if lower == -np.inf else f" LO BOUND {name} {lower!r}"
        yield f" PL BOUND {name}" if upper == np.inf else f" UP BOUND {name} {upper!r}"
    if milp.quadratic is not None and milp.quadratic.any():
        yield "QUADOBJ"
        squares = (2.0 * milp.quadratic).tolist()
        yield from (f" {names[j]} {names[j]} {squares[j]!r}" for j in np.flatnonzero(squares).tolist())
    yield "ENDATA"


def _mps_senses(milp: Milp) -> list[str]:
    """E, G or L for each row, nothing for a row without sides; a row with two sides is a G with a range."""
    return [
        "E" if lower == upper else "G" if np.isfinite(lower) else "L" if np.isfinite(upper) else ""
        for lower, upper in zip(milp.row_lower.tolist(), milp.row_upper.tolist(), strict=True)
    ]


def _mps_columns(milp: Milp, names: tuple[str, ...], senses: list[str]) -> Iterator[str]:
    yield "COLUMNS"
    by_column = milp.matrix.tocsc()
    by_column.sum_duplicates()
    starts, rows, entries = by_column.indptr.tolist(), by_column.indices.tolist(), by_column.data.tolist()
    costs, integer = milp.objective.tolist(), milp.integer.tolist()
    inside = False
    for j, name in enumerate(names):
        if integer[j] != inside:
            inside = integer[j]
            yield f" M{j} 'MARKER' '{'INTORG' if inside else 'INTEND'}'"
        yield f" {name} cost {costs[j]!r}"
        for k in range(starts[j], starts[j + 1]):
            if senses[rows[k]]:
                yield f" {name} r{rows[k]} {entries[k]!r}"
    if inside:
        yield f" M{milp.columns} 'MARKER' 'INTEND'"
