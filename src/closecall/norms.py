"""The four ways to measure how far an image has moved, each with all its readings.

For a centre c and rooms down, up ≥ 0 (how far each pixel may go), the support of a row a over
box ∩ ball(r) is max { a·d : −down ≤ d ≤ up, ‖d‖ ≤ r }, computed exactly for each norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.errors import QueryError
from closecall.program import Expression, Indices, ProgramBuilder

Vector = NDArray[np.float64]

# A pixel counts as changed (for L0) when it moved by more than float32 can round.
CHANGED = 1e-6


@dataclass(frozen=True)
class Movement:
    """The pixels of a MILP: their shifts as expressions, and the distance they stand for.

    Either `distance` is a linear expression (one row), or the distance is √Σ v² over `squared`.
    """

    shifts: Expression
    distance: Expression | None
    squared: Indices


class Norm(Protocol):
    """What each norm must be able to say about itself."""

    name: str

    def distance(self, shifts: Vector) -> Vector:
        """The length of each row of shifts."""

    def support(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """max a·d over the box and the ball, for each row a."""

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        """Add the columns of the shifts and the rows that tie them to the distance."""


class L1:
    """Σ |d|: the paper's norm. Shifts enter as increase/decrease pairs d = p − m."""

    name = "l1"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray(np.abs(shifts).sum(axis=-1))

    def support(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """A fractional knapsack: spend the radius on the pixels of largest |a| first."""
        gains = np.abs(rows)
        rooms = np.where(rows > 0, up, down)
        if not np.isfinite(radius):
            return np.asarray((gains * rooms).sum(axis=1))
        order = np.argsort(-gains, axis=1)
        rooms = np.take_along_axis(rooms, order, axis=1)
        left = radius - (np.cumsum(rooms, axis=1) - rooms)
        return np.asarray((np.take_along_axis(gains, order, axis=1) * np.clip(left, 0.0, rooms)).sum(axis=1))

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        pixels = len(up)
        can_rise, can_fall = np.flatnonzero(up > 0), np.flatnonzero(down > 0)
        rise = builder.add_columns("rise", np.zeros(len(can_rise)), up[can_rise])
        fall = builder.add_columns("fall", np.zeros(len(can_fall)), down[can_fall])
        fallen = fall.scaled(-np.ones(len(fall)))
        shifts = Expression.scattered(pixels, [(can_rise, rise), (can_fall, fallen)])
        return Movement(shifts, total(rise) + total(fall), np.zeros(0, dtype=np.int64))


class L2:
    """√Σ d²: minimised as Σ d², a convex quadratic objective."""

    name = "l2"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray(np.sqrt((shifts**2).sum(axis=-1)))

    def support(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """d = min(room, t·|a|) with the t that uses up the radius, found among sorted break points."""
        gains = np.abs(rows)
        rooms = np.where(rows > 0, up, down)
        full = (gains * rooms).sum(axis=1)
        if not np.isfinite(radius):
            return np.asarray(full)
        free = (rooms**2).sum(axis=1) <= radius**2
        with np.errstate(divide="ignore", invalid="ignore"):
            stops = np.where(gains > 0, rooms / gains, np.inf)  # t at which each pixel reaches its room
        order = np.argsort(stops, axis=1)
        stops, gains, rooms = (np.take_along_axis(array, order, axis=1) for array in (stops, gains, rooms))
        rooms = np.where(np.isfinite(stops), rooms, 0.0)
        spent = np.cumsum(rooms**2, axis=1) - rooms**2  # by pixels that stopped before this one
        growing = np.cumsum((gains**2)[:, ::-1], axis=1)[:, ::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.sqrt(np.maximum(radius**2 - spent, 0.0) / growing)
        t = np.where(growing > 0, t, np.inf)
        first = np.argmax(t <= stops, axis=1)
        step = t[np.arange(len(rows)), first][:, None]
        with np.errstate(invalid="ignore"):
            reach = np.where(gains > 0, np.minimum(rooms, step * gains), 0.0)
        return np.asarray(np.where(free, full, (gains * reach).sum(axis=1)))

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        shifts = builder.add_columns("shift", -down, up)
        return Movement(shifts, None, shifts.matrix.indices.astype(np.int64))


class Linf:
    """max |d|: one column for the largest shift, two rows for each pixel."""

    name = "linf"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray(np.abs(shifts).max(axis=-1))

    def support(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        up, down = np.minimum(up, radius), np.minimum(down, radius)
        return np.asarray(np.maximum(rows, 0.0) @ up - np.minimum(rows, 0.0) @ down)

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        shifts = builder.add_columns("shift", -down, up)
        largest = builder.add_columns("largest", np.zeros(1), np.array([max(down.max(), up.max())]))
        each = largest.taken(np.zeros(len(up), dtype=np.int64))
        builder.add_rows(each - shifts, 0.0, np.inf)
        builder.add_rows(each + shifts, 0.0, np.inf)
        return Movement(shifts, largest, np.zeros(0, dtype=np.int64))


class L0:
    """The number of pixels that change: one binary for each pixel."""

    name = "l0"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray((np.abs(shifts) > CHANGED).sum(axis=-1), dtype=np.float64)

    def support(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        worths = np.abs(rows) * np.where(rows > 0, up, down)
        count = rows.shape[1] if not np.isfinite(radius) else min(int(radius + CHANGED), rows.shape[1])
        if count == 0:
            return np.zeros(len(rows))
        return np.asarray(-np.partition(-worths, count - 1, axis=1)[:, :count].sum(axis=1))

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        shifts = builder.add_columns("shift", -down, up)
        changed = builder.add_columns("changed", np.zeros(len(up)), np.ones(len(up)), integer=True)
        builder.add_rows(shifts - changed.scaled(up), -np.inf, 0.0)
        builder.add_rows(shifts + changed.scaled(down), 0.0, np.inf)
        return Movement(shifts, total(changed), np.zeros(0, dtype=np.int64))


NORMS: dict[str, Norm] = {norm.name: norm for norm in (L1(), L2(), Linf(), L0())}


def norm_named(name: str) -> Norm:
    if name not in NORMS:
        raise QueryError(f"unknown norm {name!r}: choose one of {', '.join(NORMS)}.")
    return NORMS[name]


def total(expressions: Expression) -> Expression:
    """One expression: the sum of many."""
    ones = csr_array(np.ones((1, len(expressions))))
    return expressions.mapped(ones)
