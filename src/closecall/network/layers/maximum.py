"""Max pooling in general position: each output is the largest entry of its window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Indices, Matrix, Vector
from closecall.milp.builder import Entries, Expression, ProgramBuilder, coefficients
from closecall.network.layers.layer import by_sign
from closecall.network.layers.planes import Lead, Planes, bound_positive_part

# Two entries that tie in every bound would make a share of 0 / 0. More room for a gap only adds points to the
# relaxation, so its bounds hold.
SMALLEST_GAP = 1e-9


@dataclass(frozen=True, eq=False)
class Maximum:
    """y_i = max over j in windows[i] of x_j; windows may overlap, −1 fills up the shorter ones."""

    windows: NDArray[np.int64]

    @property
    def size(self) -> int:
        return len(self.windows)

    def forward(self, *inputs: Vector) -> Vector:
        return np.asarray(self._entries(inputs[0], -np.inf).max(axis=-1))

    def gradient(self, slopes: Vector, *inputs: Vector) -> list[Vector]:
        winners = self.winners(inputs[0])
        carried = np.zeros_like(inputs[0])
        np.add.at(carried, (np.arange(len(winners))[:, None], winners), slopes)
        return [carried]

    def winners(self, inputs: Vector) -> NDArray[np.int64]:
        """Which input is the maximum of each window."""
        slots = self._entries(inputs, -np.inf).argmax(axis=-1)
        return np.asarray(self.windows[np.arange(self.size), slots])

    def interval(self, lower: list[Vector], upper: list[Vector]) -> tuple[Vector, Vector]:
        return self._entries(lower[0], -np.inf).max(axis=-1), self._entries(upper[0], -np.inf).max(axis=-1)

    def bound_above(
        self, rows: Matrix, lower: list[Vector], upper: list[Vector]
    ) -> tuple[list[Matrix], Vector]:
        above, height, below = self.planes(lower[0], upper[0])
        positive, negative = by_sign(rows)
        return [positive @ above + negative @ below], np.asarray(positive @ height)

    def planes(self, low: Vector, high: Vector) -> tuple[csr_array, Vector, csr_array]:
        """One plane above each maximum and one entry below it.

        With j the entry of largest upper bound and u₂ the largest upper bound of the others:
        y ≤ max(x_j, u₂) ≤ u₂ + (u_j − u₂)/(u_j − l_j)·(x_j − l_j), exact when l_j ≥ u₂.
        y ≥ x_i for the entry i of largest lower bound.
        """
        lows, highs = self._entries(low, -np.inf), self._entries(high, -np.inf)
        each = np.arange(self.size)
        top = highs.argmax(axis=1)
        l_j, u_j = lows[each, top], highs[each, top]
        others = highs.copy()
        others[each, top] = -np.inf
        u_2 = others.max(axis=1)
        exact = l_j >= u_2
        width = np.where(exact, 1.0, u_j - l_j)
        slope = np.where(exact, 1.0, (u_j - np.where(exact, 0.0, u_2)) / width)
        height = np.where(exact, 0.0, np.where(exact, 0.0, u_2) - slope * l_j)
        shape = (self.size, len(low))
        above = csr_array((slope, (each, self.windows[each, top])), shape=shape)
        best = np.where(exact, top, lows.argmax(axis=1))
        below = csr_array((np.ones(self.size), (each, self.windows[each, best])), shape=shape)
        return above, height, below

    def candidates(self, low: Vector, high: Vector) -> NDArray[np.bool_]:
        """Which entries can be the maximum: those above every lower bound, and one that is sure to stay."""
        lows, highs = self._entries(low, -np.inf), self._entries(high, -np.inf)
        keep = highs > lows.max(axis=1, keepdims=True)
        keep[np.arange(self.size), lows.argmax(axis=1)] = True
        return np.asarray(keep)

    def lead(self, planes: Planes, radius: float, lower: Vector, upper: Vector) -> Lead:
        """The winner at the original leads, among the entries that can win; each other may overtake it."""
        keep = self.candidates(lower, upper)
        each = np.arange(self.size)
        at_original = np.where(keep, self._entries(planes.low + planes.high, -np.inf), -np.inf)
        winning = at_original.argmax(axis=1)
        leader = self.windows[each, winning]
        offset, rise = np.zeros(self.size), np.zeros((self.size, planes.above.shape[1]))
        for slot in range(self.windows.shape[1]):
            rivals = np.flatnonzero(keep[:, slot] & (winning != slot))
            entry, ahead = self.windows[rivals, slot], leader[rivals]
            start, slopes = planes.high[entry] - planes.low[ahead], planes.above[entry] - planes.below[ahead]
            above, rises = bound_positive_part(start, slopes, radius)
            offset[rivals] = np.maximum(offset[rivals], above)
            rise[rivals] = np.maximum(rise[rivals], rises)
        return Lead(leader, offset, rise)

    def encode_tight(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """As the paper's form, over the entries that can be the maximum; a single one needs no binary."""
        x, low, high = inputs[0], lower[0], upper[0]
        keep = self.candidates(low, high)
        decided = np.flatnonzero(keep.sum(axis=1) == 1)
        open_windows = np.flatnonzero(keep.sum(axis=1) > 1)
        blocks = [(decided, x.taken(self.windows[decided][keep[decided]]))] if len(decided) else []
        if len(open_windows):
            blocks.append((open_windows, self._encode_choice(builder, x, (low, high), (open_windows, keep))))
        return Expression.scattered(self.size, blocks)

    def encode_choices(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """y − x_j = g_j ≥ 0 with Σ g_j/most_j ≤ k − 1 over the k entries that can win; j wins when g_j = 0.

        Beside it the plane y ≤ u₂ + (u_j − u₂)/(u_j − l_j)·(x_j − l_j) of `planes`.
        """
        x, low, high = inputs[0], lower[0], upper[0]
        keep = self.candidates(low, high)
        decided = np.flatnonzero(keep.sum(axis=1) == 1)
        places = np.flatnonzero(keep.sum(axis=1) > 1)
        blocks = [(decided, x.taken(self.windows[decided][keep[decided]]))] if len(decided) else []
        if len(places):
            window, entry, most = self._entries_to_choose(low, high, places, keep)
            most = np.maximum(most, SMALLEST_GAP)
            lows, highs = self._entries(low, -np.inf)[places], self._entries(high, -np.inf)[places]
            y = builder.add_columns("y", lows.max(axis=1), highs.max(axis=1))
            gap = builder.add_columns("gap", np.zeros(len(entry)), most)
            builder.add_rows(y.taken(window) - x.taken(entry) - gap, 0.0, 0.0)
            least = np.full(len(places), np.inf)
            np.minimum.at(least, window, most)
            spots = (window, np.arange(len(window)))
            shares = csr_array((least[window] / most, spots), shape=(len(places), len(window)))
            builder.add_rows(gap.mapped(shares), -np.inf, (keep[places].sum(axis=1) - 1.0) * least)
            above, height, _ = self.planes(low, high)
            builder.add_rows(y - x.mapped(above[places]), -np.inf, height[places])
            whole = y.matrix.indices[window].astype(np.int64)
            gaps = gap.matrix.indices.astype(np.int64)
            builder.choices.append(Entries(window, gaps, most, whole, entry, places[window]))
            blocks.append((places, y))
        return Expression.scattered(self.size, blocks)

    def encode_paper(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """Σ ζ = 1, y ≥ x_j, y ≤ x_j + (max u − l_j)(1 − ζ_j), one binary ζ for each entry of each window."""
        everything = (np.arange(self.size), self.windows >= 0)
        return self._encode_choice(builder, inputs[0], (lower[0], upper[0]), everything)

    def _encode_choice(
        self,
        builder: ProgramBuilder,
        x: Expression,
        bounds: tuple[Vector, Vector],
        chosen: tuple[Indices, NDArray[np.bool_]],
    ) -> Expression:
        low, high = bounds
        places, keep = chosen
        window, entry, slack = self._entries_to_choose(low, high, places, keep)
        lows, highs = self._entries(low, -np.inf)[places], self._entries(high, -np.inf)[places]
        y = builder.add_columns("y", lows.max(axis=1), highs.max(axis=1))
        zeta = builder.add_columns("zeta", np.zeros(len(entry)), np.ones(len(entry)), integer=True)
        gap = y.taken(window) - x.taken(entry)
        builder.add_rows(gap, 0.0, np.inf)
        most = coefficients(slack)
        builder.add_rows(gap + zeta.scaled(most), -np.inf, most)
        one_each = csr_array(
            (np.ones(len(window)), (window, np.arange(len(window)))), shape=(len(places), len(window))
        )
        builder.add_rows(zeta.mapped(one_each), 1.0, 1.0)
        return y

    def _entries_to_choose(
        self, low: Vector, high: Vector, places: Indices, keep: NDArray[np.bool_]
    ) -> tuple[Indices, Indices, Vector]:
        """For each kept entry: its window (counted within `places`), its input, the most y can exceed it."""
        window, slot = np.nonzero(keep[places])
        entry = self.windows[places][window, slot]
        highs = np.where(keep[places], self._entries(high, -np.inf)[places], -np.inf)
        top = highs.max(axis=1)
        second = np.partition(highs, -2, axis=1)[:, -2] if highs.shape[1] > 1 else np.full(len(top), -np.inf)
        best_other = np.where(highs[window, slot] == top[window], second[window], top[window])
        most = np.maximum(best_other - low[entry], 0.0)
        return window, entry, np.where(np.isfinite(most), most, 0.0)

    def _entries(self, values: Vector, missing: float) -> Vector:
        padded = np.concatenate([values, np.full((*values.shape[:-1], 1), missing)], axis=-1)
        return np.asarray(padded[..., self.windows])
