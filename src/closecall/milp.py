"""A mixed integer linear program as plain arrays: what every solver is given.

minimise   objective · v + Σ quadratic · v²
subject to row_lower ≤ matrix · v ≤ row_upper
           lower ≤ v ≤ upper,  v integer where `integer`
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.errors import InputError

Vector = NDArray[np.float64]
Status = Literal["optimal", "infeasible", "unbounded", "limit", "interrupted"]


@dataclass(frozen=True)
class Milp:
    """A minimisation problem; `quadratic` (if given) is a non-negative diagonal."""

    objective: Vector
    matrix: csr_array
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integer: NDArray[np.bool_]
    quadratic: Vector | None = None
    column_names: tuple[str, ...] = field(default=(), repr=False)

    @property
    def columns(self) -> int:
        return len(self.objective)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    @property
    def binaries(self) -> int:
        return int(self.integer.sum())


@dataclass(frozen=True)
class Limits:
    """When a solver must stop."""

    seconds: float = 60.0
    threads: int = 1
    relative_gap: float = 1e-6
    absolute_gap: float = 1e-9


@dataclass(frozen=True)
class Solution:
    """What a solver says; nothing in it is trusted before it is replayed.

    `bound` is the solver's proven lower bound on the objective, −inf when it has none;
    `values` is the best feasible point, None when it has none.
    """

    status: Status
    values: Vector | None
    objective: float
    bound: float
    nodes: int
    seconds: float


def objective_at(milp: Milp, values: Vector) -> float:
    """The objective of a point, feasible or not."""
    linear = float(milp.objective @ values)
    return linear if milp.quadratic is None else linear + float(milp.quadratic @ values**2)


def violation(milp: Milp, values: Vector) -> float:
    """By how much a point breaks the worst of its rows, bounds and integrality; 0 when it breaks none."""
    activity = milp.matrix @ values
    whole = values[milp.integer]
    excesses = (
        milp.row_lower - activity,
        activity - milp.row_upper,
        milp.lower - values,
        values - milp.upper,
        np.abs(whole - np.round(whole)),
    )
    return max(float(excess.max(initial=0.0)) for excess in excesses)


class OnProgress(Protocol):
    """Called now and then with the proven lower bound, the best objective, the nodes and the seconds."""

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None: ...


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
