"""The four ways to measure how far an image has moved, each with all its readings.

For rooms down, up ≥ 0 (how far each pixel may go) and a row a, the furthest shift over box ∩ ball(r) is
argmax { a·d : −down ≤ d ≤ up, ‖d‖ ≤ r }, computed exactly for each norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Indices, Vector
from closecall.errors import QueryError
from closecall.milp.builder import Expression, ProgramBuilder, coefficients
from closecall.question.names import NormName

# A solver's shift that is smaller than this is meant to be none; every change counts in L0.
CHANGED = 1e-6

# In L1, so many of a row's largest gains are sorted at first, most radii take fewer. By trial.
FIRST_SORTED = 32


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

    name: NormName

    def distance(self, shifts: Vector) -> Vector:
        """The length of each row of shifts."""

    def furthest(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """The shift d in the box and the ball with the largest a·d, for each row a."""

    def most(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """An upper bound on the largest a·d, for each row a: exact but for the rounding of its own sum."""

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        """Add the columns of the shifts and the rows that tie them to the distance."""


class L1:
    """Σ |d|: the paper's norm. Shifts enter as increase/decrease pairs d = p − m."""

    name: NormName = "l1"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray(np.abs(shifts).sum(axis=-1))

    def furthest(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """A fractional knapsack: spend the radius on the pixels of largest |a| first."""
        rooms = np.where(rows > 0, up, down)
        if not np.isfinite(radius):
            return np.asarray(np.sign(rows) * rooms)
        useful, count = np.where(rooms > 0, -np.abs(rows), 0.0), FIRST_SORTED
        while True:  # sorted are only as many gains as it takes
            order = first_in_order(useful, count)
            taken = np.take_along_axis(rooms, order, axis=1)
            spent = np.cumsum(taken, axis=1)
            if count >= rows.shape[1] or self._enough(useful, order, spent, radius):
                break
            count *= 4
        shifts = np.zeros_like(rooms)
        np.put_along_axis(shifts, order, np.clip(radius - (spent - taken), 0.0, taken), axis=1)
        return np.asarray(np.sign(rows) * shifts)

    def _enough(self, useful: Vector, order: Indices, spent: Vector, radius: float) -> bool:
        """Whether nothing is left of the radius, or nothing to gain, after the pixels in order."""
        last = np.take_along_axis(useful, order[:, -1:], axis=1)
        return bool(((spent[:, -1:] >= radius) | (last == 0)).all())

    def most(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        return value_at(self.furthest(rows, down, up, radius), rows)

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

    name: NormName = "l2"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray(np.sqrt((shifts**2).sum(axis=-1)))

    def furthest(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        """d = min(room, t·|a|) with the t that uses up the radius."""
        gains, rooms = gains_and_rooms(rows, down, up)
        steps = steps_within(gains, rooms, radius)[:, None]
        reached = np.multiply(steps, gains, out=np.zeros_like(gains), where=gains > 0)
        return np.asarray(np.sign(rows) * np.minimum(rooms, reached))

    def most(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        if np.isinf(radius):
            gains, rooms = gains_and_rooms(rows, down, up)
            return np.asarray((gains * rooms).sum(axis=1))
        heights, slopes = self.tangents(rows, down, up, radius)
        return np.asarray(heights + radius * slopes)

    def tangents(self, rows: Vector, down: Vector, up: Vector, radius: float) -> tuple[Vector, Vector]:
        """Heights and slopes: a·d ≤ height + slope·‖d‖ in the whole box, and equal at the furthest shift.

        a·d ≤ Σ (|a| − q)·room + ‖q‖·‖d‖ for any 0 ≤ q ≤ |a|, and equal for q = min(|a|, room / t). The value
        at the furthest shift itself would not do for a bound: where the radius ends just at the end of some
        room, a rounding of 10⁻¹⁶ in the radius that is left is one of 10⁻⁸ in t.
        """
        gains, rooms = gains_and_rooms(rows, down, up)
        steps = steps_within(gains, rooms, radius)[:, None]
        shares = np.divide(rooms, steps, out=np.full_like(rooms, np.inf), where=steps > 0)
        by_ball = np.minimum(gains, shares)
        heights = ((gains - by_ball) * rooms).sum(axis=1)
        return np.asarray(heights), np.asarray(np.sqrt((by_ball**2).sum(axis=1)))

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        shifts = builder.add_columns("shift", -down, up)
        return Movement(shifts, None, shifts.matrix.indices.astype(np.int64))


class Linf:
    """max |d|: one column for the largest shift, two rows for each pixel."""

    name: NormName = "linf"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray(np.abs(shifts).max(axis=-1))

    def furthest(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        return np.asarray(np.sign(rows) * np.minimum(np.where(rows > 0, up, down), radius))

    def most(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        return value_at(self.furthest(rows, down, up, radius), rows)

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        shifts = builder.add_columns("shift", -down, up)
        largest = builder.add_columns("largest", np.zeros(1), np.array([max(down.max(), up.max())]))
        each = largest.taken(np.zeros(len(up), dtype=np.int64))
        builder.add_rows(each - shifts, 0.0, np.inf)
        builder.add_rows(each + shifts, 0.0, np.inf)
        return Movement(shifts, largest, np.zeros(0, dtype=np.int64))


class L0:
    """The number of pixels that change: one binary for each pixel."""

    name: NormName = "l0"

    def distance(self, shifts: Vector) -> Vector:
        return np.asarray((shifts != 0).sum(axis=-1), dtype=np.float64)

    def furthest(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        rooms = np.where(rows > 0, up, down)
        count = int(min(radius + CHANGED, rows.shape[1]))
        order = np.argsort(-np.abs(rows) * rooms, axis=1)
        np.put_along_axis(rooms, order[:, count:], 0.0, axis=1)
        return np.asarray(np.sign(rows) * rooms)

    def most(self, rows: Vector, down: Vector, up: Vector, radius: float) -> Vector:
        return value_at(self.furthest(rows, down, up, radius), rows)

    def encode(self, builder: ProgramBuilder, down: Vector, up: Vector) -> Movement:
        shifts = builder.add_columns("shift", -down, up)
        changed = builder.add_columns("changed", np.zeros(len(up)), np.ones(len(up)), integer=True)
        builder.add_rows(shifts - changed.scaled(coefficients(up)), -np.inf, 0.0)
        builder.add_rows(shifts + changed.scaled(coefficients(down)), 0.0, np.inf)
        return Movement(shifts, total(changed), np.zeros(0, dtype=np.int64))


def first_in_order(values: Vector, count: int) -> Indices:
    """The places of the smallest values of each row, in order."""
    if count >= values.shape[1]:
        return np.asarray(np.argsort(values, axis=1))
    some = np.argpartition(values, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(values, some, axis=1), axis=1)
    return np.asarray(np.take_along_axis(some, order, axis=1))


def value_at(shifts: Vector, rows: Vector) -> Vector:
    """a·d row by row: a bound where the furthest shift is one that rounding cannot miss by much."""
    return np.asarray((rows * shifts).sum(axis=1))


def gains_and_rooms(rows: Vector, down: Vector, up: Vector) -> tuple[Vector, Vector]:
    """|a|, and how far each pixel may go in the direction in which it gains; 0 where it gains nothing."""
    return np.abs(rows), np.where(rows != 0, np.where(rows > 0, up, down), 0.0)


def steps_within(gains: Vector, rooms: Vector, radius: float) -> Vector:
    """The t for which min(room, t·gain) has length `radius`, found among sorted break points; or infinity."""
    if np.isinf(radius):
        return np.full(len(gains), np.inf)
    stops = np.divide(rooms, gains, out=np.full_like(rooms, np.inf), where=gains > 0)  # t at each room's end
    order = np.argsort(stops, axis=1)
    sorted_stops, sorted_gains, sorted_rooms = (
        np.take_along_axis(array, order, axis=1) for array in (stops, gains, rooms)
    )
    spent = np.cumsum(sorted_rooms**2, axis=1) - sorted_rooms**2  # by the pixels that stopped before
    growing = np.cumsum((sorted_gains**2)[:, ::-1], axis=1)[:, ::-1]
    left = np.maximum(radius**2 - spent, 0.0)
    t = np.sqrt(np.divide(left, growing, out=np.full_like(left, np.inf), where=growing > 0))
    steps = t[np.arange(len(gains)), np.argmax(t <= sorted_stops, axis=1)]
    steps[(rooms**2).sum(axis=1) <= radius**2] = np.inf
    return np.asarray(steps)


NORMS: dict[str, Norm] = {norm.name: norm for norm in (L1(), L2(), Linf(), L0())}


# Other ways to write the names, in small letters.
ALIASES = {
    **dict.fromkeys(("1", "l_1"), "l1"),
    **dict.fromkeys(("2", "l_2"), "l2"),
    **dict.fromkeys(("0", "l_0"), "l0"),
    **dict.fromkeys(("inf", "l_inf", "l-inf", "l∞", "l_∞", "∞", "infinity"), "linf"),
}


def norm_named(name: object) -> Norm:
    """The norm of a name such as l1, L1, linf, L∞, inf or 2; numbers are taken, too."""
    numeric = isinstance(name, Real) and not isinstance(name, bool)
    written = f"{name:g}" if numeric else str(name).strip().lower()
    known = ALIASES.get(written, written)
    if known not in NORMS:
        raise QueryError(f"unknown norm {name!r}: choose one of {', '.join(NORMS)}.")
    return NORMS[known]


def total(expressions: Expression) -> Expression:
    """One expression: the sum of many."""
    ones = csr_array(np.ones((1, len(expressions))))
    return expressions.mapped(ones)
