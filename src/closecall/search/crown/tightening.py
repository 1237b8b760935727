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
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.case_rows import CaseRows
from closecall.search.crown.dense_network import DenseNetwork, TwoPrecisions
from closecall.search.crown.intermediate_bounds import IntermediateBounds
from closecall.search.crown.prover import Prover
from closecall.search.crown.relaxation import Sums
from closecall.search.crown.splitting import Part, child_of
from closecall.search.crown.subproblems import Duals, Objective
from closecall.settings import DEFAULT, Crown

# The open parts of each side: unit for above, unit + size of the layer for below.
Sides = dict[int, list[Part]]


@dataclass(frozen=True, eq=False)
class SideObjectives:
    """The sides of a layer's units as objectives, made when asked for: all of them might fill the memory."""

    network: DenseNetwork
    layer: int
    case: CaseRows | None

    def taken(self, sides: Tensor) -> Objective:
        size, count = self.network.hidden[self.layer].size, len(sides)
        rows = torch.zeros(count, size, dtype=torch.float64)
        rows[torch.arange(count), sides % size] = torch.where(sides < size, 1.0, -1.0).double()
        if self.case is None:
            return Objective(self.layer, rows[:, None], torch.zeros(count, 1, dtype=torch.float64))
        extra = torch.zeros(count, self.network.units, dtype=torch.float64)
        extra[:, self.network.spans[self.layer]] = rows
        cases = self.case.repeated(count)
        return Objective(self.network.depth + 1, cases.matrix, cases.threshold, extra)


class Tightening:
    """The searches of all sides of all open units, which go on from sweep to sweep.

    With a case, only the images that reach it count.
    """

    def __init__(
        self,
        networks: TwoPrecisions,
        sums: Sums,
        case: CaseRows | None = None,
        settings: Crown = DEFAULT.crown,
    ) -> None:
        self.networks, self.sums, self.case, self.settings = networks, sums, case, settings
        self.sides: dict[int, Sides] = {}
        self.widths: dict[int, float] = {}

    def sweep(
        self, ball: TorchBall, bounds: IntermediateBounds, until: float, *, branch: bool = True
    ) -> IntermediateBounds:
        """Branch a little further on the units before each open unit, layer by layer."""
        network = self.networks.double
        lower, upper = bounds.lower.clone(), bounds.upper.clone()
        for layer in range(2 if self.case is None else 1, network.depth + 1):
            known = IntermediateBounds(lower.clone(), upper.clone())
            if not bool(known.open[network.spans[layer]].any()):
                continue
            if out_of_time(until):
                break
            prover = self.prover(ball, layer)
            sides = self.prepared(prover, known, layer, until)
            for _ in range(rounds_for(prover, sides) if branch else 0):
                if out_of_time(until) or not split_worst(prover, sides, until):
                    break
            self.read(layer, lower, upper)
        return IntermediateBounds(lower, upper)

    def prover(self, ball: TorchBall, layer: int) -> Prover:
        objectives = SideObjectives(self.networks.double, layer, self.case)
        if self.case is None:
            sums = self.sums.before(self.networks.double, layer)
            return Prover(self.networks.before(layer), sums, ball, objectives, self.settings)
        return Prover(self.networks, self.sums, ball, objectives, self.settings)

    def prepared(self, prover: Prover, known: IntermediateBounds, layer: int, until: float) -> Sides:
        """The sides of units that are still open, begun (again) if need be, with the bounds known now."""
        span, size = self.networks.double.spans[layer], self.networks.double.hidden[layer].size
        units = torch.nonzero(known.open[span])[:, 0].tolist()
        wanted = [side for unit in units for side in (unit, unit + size)]
        most = torch.cat([known.upper[span], -known.lower[span]])
        known = known.first(prover.networks.double.units)
        width = float((known.upper - known.lower)[known.open].sum())
        if width < self.settings.sweeps.stale_share * self.widths.get(layer, math.inf):
            self.widths[layer] = width
            start = Duals(known.first_slopes.float(), torch.zeros(0), self.first_weights())
            roots = [Part.root(side, start, float(most[side]), known) for side in wanted]
            self.sides[layer] = {side: [] for side in wanted}
            for part in bounded(prover, roots, until):
                self.sides[layer][part.case].append(part)
        before = self.sides[layer]
        self.sides[layer] = {
            side: [replace(part, bounds=known) for part in before[side]] for side in wanted if side in before
        }
        return self.sides[layer]

    def first_weights(self) -> Tensor:
        if self.case is None:
            return torch.ones(1)
        return torch.full((len(self.case.threshold),), self.settings.sweeps.first_weight)

    def read(self, layer: int, lower: Tensor, upper: Tensor) -> None:
        """Put what the searches of a layer have proven into the bounds."""
        size, start = self.networks.double.hidden[layer].size, self.networks.double.spans[layer].start
        for side, parts in self.sides[layer].items():
            most = max([part.value for part in parts], default=0.0)
            if side < size:
                upper[start + side] = min(float(upper[start + side]), most)
            else:
                lower[start + side - size] = max(float(lower[start + side - size]), -most)


def rounds_for(prover: Prover, sides: Sides) -> int:
    """How often to split, for about the same work in every layer."""
    sweeps = prover.settings.sweeps
    cost = prover.networks.double.entries * sweeps.passes_for_a_split
    rounds = int(sweeps.work / (max(1, len(sides)) * cost))
    return min(max(rounds, sweeps.fewest_rounds), sweeps.most_rounds)


def bounded(prover: Prover, parts: list[Part], until: float) -> list[Part]:
    return prover.bounded_in_time(parts, prover.settings.sweeps.pace, until, with_radius=False)


def split_worst(prover: Prover, sides: Sides, until: float) -> bool:
    """Split the worst part of each side that can be split; False if there is none."""
    sweeps = prover.settings.sweeps
    worst = [max(parts, key=lambda part: part.value) for parts in sides.values() if parts]
    progress = False
    rows = 2 * sweeps.candidates  # the children that are looked at for each part
    at_once = max(1, prover.rows_at_once(rows * sweeps.sides_at_once) // rows)
    for begin in range(0, len(worst), at_once):
        if out_of_time(until):
            break
        some = worst[begin : begin + at_once]
        choice = prover.chosen(some, sweeps.candidates)
        split = [(part, unit) for part, unit in zip(some, choice.units.tolist(), strict=True) if unit >= 0]
        children = [child_of(part, unit, sign) for part, unit in split for sign in (1.0, -1.0)]
        if not children:
            continue
        progress = True
        still_open = bounded(prover, children, until)
        for part, _ in split:
            sides[part.case].remove(part)
        for part in still_open:
            sides[part.case].append(part)
    return progress
