"""The rectifier x = max(0, a)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from closecall.arrays import Indices, Matrix, Vector
from closecall.milp.builder import Entries, Expression, ProgramBuilder, coefficients
from closecall.network.layers.layer import by_sign, is_dust
from closecall.network.layers.planes import Lead, Planes, bound_positive_part


@dataclass(frozen=True, eq=False)
class Relu:
    """x = max(0, a) for each of `size` units."""

    size: int

    def forward(self, *inputs: Vector) -> Vector:
        return np.maximum(inputs[0], 0.0)

    def gradient(self, slopes: Vector, *inputs: Vector) -> list[Vector]:
        return [slopes * (inputs[0] > 0)]

    def interval(self, lower: list[Vector], upper: list[Vector]) -> tuple[Vector, Vector]:
        return np.maximum(lower[0], 0.0), np.maximum(upper[0], 0.0)

    def bound_above(
        self, rows: Matrix, lower: list[Vector], upper: list[Vector]
    ) -> tuple[list[Matrix], Vector]:
        """x ≤ u(a − l)/(u − l) where a row's entry is positive, x ≥ slope·a where it is negative.

        The lower slope is 1 when u > −l and 0 otherwise: the smaller of the two triangles.
        """
        low, high = lower[0], upper[0]
        chord, height = chord_above(low, high)
        slope = np.where(low >= 0, 1.0, np.where(high > -low, 1.0, 0.0))
        slope[high <= 0] = 0.0
        positive, negative = by_sign(rows)
        if issparse(rows):
            scaled = rows.copy()
            scaled.data = rows.data * np.where(rows.data > 0, chord[rows.indices], slope[rows.indices])
            return [scaled], np.asarray(positive @ height)
        return [positive * chord + negative * slope], positive @ height

    def lead(self, planes: Planes, radius: float, lower: Vector, upper: Vector) -> Lead:
        """The phase at the original leads, unless the bounds decide; the other may overtake it."""
        on = (lower >= 0) | ((upper > 0) & (planes.low + planes.high >= 0))
        offset, rise = np.zeros(self.size), np.zeros_like(planes.above)
        fall_off, come_on = on & (lower < 0), ~on & (upper > 0)
        offset[fall_off], rise[fall_off] = bound_positive_part(
            -planes.low[fall_off], -planes.below[fall_off], radius
        )
        offset[come_on], rise[come_on] = bound_positive_part(
            planes.high[come_on], planes.above[come_on], radius
        )
        return Lead(np.where(on, np.arange(self.size), -1), offset, rise)

    def encode_tight(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """x ≥ a, x ≤ a − l(1 − z), x ≤ u·z, x ≥ 0, z = 1 for active; no z where the sign is known.

        Where it is all but known, no z either: 0 ≤ x − a ≤ −l or x ≤ u alone.
        """
        (a,), low, high = inputs, lower[0], upper[0]
        active = np.flatnonzero(low >= 0)
        is_open = (low < 0) & (high > 0)
        dust = is_open & (is_dust(-low, high) | is_dust(high, -low))
        unstable, nearly = np.flatnonzero(is_open & ~dust), np.flatnonzero(dust)
        if len(active):
            on = builder.add_columns("x", np.maximum(low[active], 0.0), high[active])
            builder.add_rows(on - a.taken(active), 0.0, 0.0)
        if len(nearly):
            almost = builder.add_columns("x", np.zeros(len(nearly)), high[nearly])
            builder.add_rows(almost - a.taken(nearly), 0.0, -low[nearly])
        if len(unstable):
            l, u = -coefficients(-low[unstable]), coefficients(high[unstable])  # noqa: E741
            x = builder.add_columns("x", np.zeros(len(u)), u)
            z = builder.add_columns("z", np.zeros(len(u)), np.ones(len(u)), integer=True)
            gap = x - a.taken(unstable)
            builder.add_rows(gap, 0.0, np.inf)
            builder.add_rows(gap - z.scaled(l), -np.inf, -l)
            builder.add_rows(x - z.scaled(u), -np.inf, 0.0)
            builder.note_phases(z, active_when=1)
        blocks = [(active, on)] if len(active) else []
        blocks += [(nearly, almost)] if len(nearly) else []
        blocks += [(unstable, x)] if len(unstable) else []
        return Expression.scattered(self.size, blocks)

    def encode_choices(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """x − s = a and x/u + s/(−l) ≤ 1, x, s ≥ 0: the triangle; active is s = 0, inactive is x = 0."""
        (a,), low, high = inputs, lower[0], upper[0]
        active = np.flatnonzero(low >= 0)
        unstable = np.flatnonzero((low < 0) & (high > 0))
        blocks = []
        if len(active):
            on = builder.add_columns("x", np.maximum(low[active], 0.0), high[active])
            builder.add_rows(on - a.taken(active), 0.0, 0.0)
            blocks.append((active, on))
        if len(unstable):
            most_on, most_off = high[unstable], -low[unstable]
            x = builder.add_columns("x", np.zeros(len(unstable)), most_on)
            s = builder.add_columns("s", np.zeros(len(unstable)), most_off)
            builder.add_rows(x - s - a.taken(unstable), 0.0, 0.0)
            scale = np.minimum(most_on, most_off)
            builder.add_rows(x.scaled(scale / most_on) + s.scaled(scale / most_off), -np.inf, scale)
            blocks.append((unstable, x))
            columns = x.matrix.indices.astype(np.int64), s.matrix.indices.astype(np.int64)
            builder.choices.append(relu_entries(unstable, columns, (most_on, most_off)))
        return Expression.scattered(self.size, blocks)

    def encode_paper(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """x − s = a, x ≤ ub(1 − z), s ≤ ub'·z, x, s ≥ 0, z = 1 for inactive; every unit has all three."""
        (a,), low, high = inputs, lower[0], upper[0]
        zeros = np.zeros(self.size)
        most_on, most_off = coefficients(high), coefficients(-low)
        # A phase with next to no room is left open to both: only the other one has a row.
        dust_on, dust_off = is_dust(high, -low), is_dust(-low, high)
        x = builder.add_columns("x", zeros, np.where(dust_on, np.maximum(high, 0.0), most_on))
        s = builder.add_columns("s", zeros, np.where(dust_off, np.maximum(-low, 0.0), most_off))
        z = builder.add_columns("z", zeros, np.ones(self.size), integer=True)
        builder.add_rows(x - s - a, 0.0, 0.0)
        on, off = np.flatnonzero(~dust_on), np.flatnonzero(~dust_off)
        builder.add_rows((x + z.scaled(most_on)).taken(on), -np.inf, most_on[on])
        builder.add_rows((s - z.scaled(most_off)).taken(off), -np.inf, 0.0)
        builder.note_phases(z, active_when=0)
        builder.note_units(x)
        return x


def relu_entries(units: Indices, columns: tuple[Indices, Indices], most: tuple[Vector, Vector]) -> Entries:
    """max(a, 0) as a choice of two entries: a with gap s, 0 with gap x."""
    x, s = columns
    return Entries(
        choice=np.tile(np.arange(len(units)), 2),
        gap=np.concatenate([s, x]),
        most=np.concatenate([most[1], most[0]]),
        whole=np.concatenate([x, x]),
        output=np.tile(units, 2),
        unit=np.concatenate([units, np.full(len(units), -1)]),
    )


def chord_above(low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Slope and intercept of the chord of max(0, a) over [low, high], exact where the sign is known."""
    unstable = (low < 0) & (high > 0)
    width = np.where(unstable, high - low, 1.0)
    slope = np.where(unstable, high / width, (low >= 0).astype(np.float64))
    return slope, np.where(unstable, -slope * low, 0.0)
