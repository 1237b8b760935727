"""Tighter bounds on units by branching: each side of each open unit is a small search of its own.

The bound of a unit's side is the largest bound over the parts that its search has split the domain into.
Early layers come first, and what they gain makes the later ones easier. With a case, only its images count:
those with C·y − d ≥ 0, which enters every bound with multipliers of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from closecall.clock import out_of_time
from closecall.search.crown.ascent import Aim, Duals, Pace
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks
from closecall.search.crown.layer_bounds import UnitBounds
from closecall.search.crown.prover import Prover
from closecall.search.crown.relaxation import Sums
from closecall.search.crown.splitting import Part, child_of

PACE = Pace(10, slope_step=0.15, multiplier_step=0.15, decay=0.9)
CANDIDATES = 4
PARTS_AT_ONCE = 128
WORK = 3e10  # multiplications for each layer and sweep
PASSES = 40  # over the network for each part that is split
FEWEST_ROUNDS, MOST_ROUNDS = 3, 24
FIRST_WEIGHT = 0.01  # of each row of the case, before the ascent
STALE = 0.95  # searches begin anew when the units before them have lost this share of their width

Sides = dict[
    int, list[Part]
]  # the open parts of each side: unit for above, unit + size of the layer for below


@dataclass(frozen=True, eq=False)
class SideAims:
    """The sides of a layer's units as aims, made when asked for: all of them might fill the memory."""

    wide: Blocks
    layer: int
    case: tuple[Tensor, Tensor] | None

    def taken(self, sides: Tensor) -> Aim:
        size, count = self.wide.hidden[self.layer].size, len(sides)
        rows = torch.zeros(count, size, dtype=torch.float64)
        rows[torch.arange(count), sides % size] = torch.where(sides < size, 1.0, -1.0).double()
        if self.case is None:
            return Aim(self.layer, rows[:, None], torch.zeros(count, 1, dtype=torch.float64))
        extra = torch.zeros(count, self.wide.units, dtype=torch.float64)
        extra[:, self.wide.spans[self.layer]] = rows
        matrix, threshold = (part.expand(count, *part.shape) for part in self.case)
        return Aim(self.wide.depth + 1, matrix, threshold, extra)


class Tightening:
    """The searches of all sides of all open units, which go on from sweep to sweep."""

    def __init__(
        self, both: tuple[Blocks, Blocks], sums: Sums, case: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self.wide, self.narrow = both
        self.sums = sums
        self.case = case  # its rows (rows, classes) and thresholds (rows,)
        self.sides: dict[int, Sides] = {}
        self.widths: dict[int, float] = {}

    def sweep(self, ball: Ball, bounds: UnitBounds, until: float, *, branch: bool = True) -> UnitBounds:
        """Branch a little further on the units before each open unit, layer by layer."""
        lower, upper = bounds.lower.clone(), bounds.upper.clone()
        for layer in range(2 if self.case is None else 1, self.wide.depth + 1):
            known = UnitBounds(lower.clone(), upper.clone())
            if not bool(known.open[self.wide.spans[layer]].any()):
                continue
            if out_of_time(until):
                break
            prover = self.prover(ball, layer)
            sides = self.prepared(prover, known, layer, until)
            for _ in range(rounds_for(prover, sides) if branch else 0):
                if out_of_time(until) or not split_worst(prover, sides, until):
                    break
            self.read(layer, lower, upper)
        return UnitBounds(lower, upper)

    def prover(self, ball: Ball, layer: int) -> Prover:
        aims = SideAims(self.wide, layer, self.case)
        if self.case is None:
            sums = self.sums.before(self.wide, layer)
            return Prover(self.wide.before(layer), self.narrow.before(layer), sums, ball, aims)
        return Prover(self.wide, self.narrow, self.sums, ball, aims)

    def prepared(self, prover: Prover, known: UnitBounds, layer: int, until: float) -> Sides:
        """The sides of units that are still open, begun (again) if need be, with the bounds known now."""
        span, size = self.wide.spans[layer], self.wide.hidden[layer].size
        units = torch.nonzero(known.open[span])[:, 0].tolist()
        most = torch.cat([known.upper[span], -known.lower[span]])
        units_read = prover.wide.units
        known = UnitBounds(known.lower[:units_read], known.upper[:units_read])
        width = float((known.upper - known.lower)[known.open].sum())
        if width < STALE * self.widths.get(layer, math.inf):
            self.widths[layer] = width
            slopes = torch.where(known.upper > -known.lower, known.planes.most, known.planes.least)
            weights = torch.ones(1) if self.case is None else torch.full((len(self.case[1]),), FIRST_WEIGHT)
            start = Duals(slopes.float(), torch.zeros(0), weights)
            empty = torch.zeros(0, dtype=torch.int64)
            roots = [
                Part(side, empty, torch.zeros(0), start, float(most[side]), 0.0, known)
                for unit in units
                for side in (unit, unit + size)
            ]
            self.sides[layer] = {root.case: [] for root in roots}
            for part in bounded_in_time(prover, roots, until):
                self.sides[layer][part.case].append(part)
        before = self.sides[layer]
        self.sides[layer] = {
            side: [replace(part, bounds=known) for part in before[side]]
            for unit in units
            for side in (unit, unit + size)
            if side in before
        }
        return self.sides[layer]

    def read(self, layer: int, lower: Tensor, upper: Tensor) -> None:
        """Put what the searches of a layer have proven into the bounds."""
        size, start = self.wide.hidden[layer].size, self.wide.spans[layer].start
        for side, parts in self.sides[layer].items():
            most = max([part.value for part in parts], default=0.0)
            if side < size:
                upper[start + side] = min(float(upper[start + side]), most)
            else:
                lower[start + side - size] = max(float(lower[start + side - size]), -most)


def rounds_for(prover: Prover, sides: Sides) -> int:
    """How often to split, for about the same work in every layer."""
    blocks = [prover.wide.block(layer) for layer in range(1, prover.wide.depth + 2)]
    cost = sum(weight.numel() for block in blocks for _, weight in block.weights)
    rounds = int(WORK / (max(1, len(sides)) * cost * PASSES))
    return min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS)


def bounded_in_time(prover: Prover, parts: list[Part], until: float) -> list[Part]:
    """The parts that remain open; those that there is no time for remain as they are."""
    still_open: list[Part] = []
    at_once = prover.narrow.rows_at_once(PARTS_AT_ONCE)
    for begin in range(0, len(parts), at_once):
        some = parts[begin : begin + at_once]
        late = out_of_time(until)
        still_open += some if late else prover.bounded(some, replace(PACE, until=until), reach=False)
    return still_open


def split_worst(prover: Prover, sides: Sides, until: float) -> bool:
    """Split the worst part of each side that can be split; False if there is none."""
    worst = [max(parts, key=lambda part: part.value) for parts in sides.values() if parts]
    progress = False
    at_once = max(1, prover.narrow.rows_at_once(2 * CANDIDATES * PARTS_AT_ONCE) // (2 * CANDIDATES))
    for begin in range(0, len(worst), at_once):
        if out_of_time(until):
            break
        some = worst[begin : begin + at_once]
        choice = prover.chosen(some, CANDIDATES)
        split = [(part, unit) for part, unit in zip(some, choice.units.tolist(), strict=True) if unit >= 0]
        children = [child_of(part, unit, sign) for part, unit in split for sign in (1.0, -1.0)]
        if not children:
            continue
        progress = True
        still_open = bounded_in_time(prover, children, until)
        for part, _ in split:
            sides[part.case].remove(part)
        for part in still_open:
            sides[part.case].append(part)
    return progress
