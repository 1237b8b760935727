"""Intermediate bounds: on every unit over the whole domain, layer by layer, each with slopes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from closecall.arrays import OUTWARD
from closecall.bounds import check_finite
from closecall.clock import out_of_time
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.dense_network import DenseNetwork, TwoPrecisions
from closecall.search.crown.optimisation import optimised
from closecall.search.crown.relaxation import LayerRows, ReluPlanes, Sums, confirmed
from closecall.search.crown.subproblems import Duals, Objective, Splits, Subproblems
from closecall.settings import DEFAULT, Crown, Pace


@dataclass(frozen=True, eq=False)
class IntermediateBounds:
    """lower ≤ a ≤ upper for every unit, in float64."""

    lower: Tensor
    upper: Tensor

    @cached_property
    def planes(self) -> ReluPlanes:
        return ReluPlanes.between(self.lower, self.upper)

    @property
    def open(self) -> Tensor:
        return (self.lower < 0) & (self.upper > 0)

    @property
    def first_slopes(self) -> Tensor:
        """Below each ReLU the slope, 0 or 1, that makes the smaller triangle."""
        return torch.where(self.upper > -self.lower, self.planes.most, self.planes.least)

    def first(self, count: int) -> IntermediateBounds:
        """Those of the first units only."""
        return IntermediateBounds(self.lower[:count], self.upper[:count])


def sums_of(network: DenseNetwork, ball: TorchBall, bounds: IntermediateBounds) -> Sums:
    """Over a ball; they hold for smaller balls and tighter bounds as well."""
    units = torch.zeros(network.units, dtype=torch.float64)
    for layer in range(1, network.depth + 1):
        units[network.spans[layer]] = terms(network, ball, bounds, layer)
    return Sums(units, terms(network, ball, bounds, network.depth + 1))


def terms(network: DenseNetwork, ball: TorchBall, bounds: IntermediateBounds, index: int) -> Tensor:
    """|bias| + Σ |weight| · (the largest value that it reads) for each unit of a layer."""
    layer = network.layer(index)
    total = layer.bias.abs()
    for source, weight in layer.weights:
        largest = ball.largest if source == 0 else bounds.upper[network.spans[source]].clamp(min=0)
        total = total + weight.abs() @ largest
    return total


def intermediate_bounds(
    networks: TwoPrecisions, ball: TorchBall, until: float, settings: Crown = DEFAULT.crown
) -> IntermediateBounds:
    """Linear bounds for all units, then optimised ones where the sign is open, both while there is time."""
    network = networks.double
    lower, upper, sums = (torch.zeros(network.units, dtype=torch.float64) for _ in range(3))
    for layer in range(1, network.depth + 1):
        span, known = network.spans[layer], IntermediateBounds(lower, upper)
        sums[span] = terms(network, ball, known, layer)
        lower[span], upper[span] = interval(network, ball, known, layer, sums[span])
        before = LayersBefore.of(networks, ball, known, sums, layer)
        at_once = before.networks.double.rows_at_once(
            settings.unit_rows_at_once, settings.multiplications_at_once
        )
        for pace in (None, settings.unit_pace):
            if pace is not None and layer == 1:
                continue
            units = torch.nonzero(known.open[span])[:, 0]
            for begin in range(0, len(units), at_once // 2):
                if out_of_time(until):
                    break
                some = units[begin : begin + at_once // 2]
                high, low = before.bounded(some, pace, until)
                places = some + span.start
                # fmin and fmax pass over NaN, which is no bound.
                upper[places] = torch.fmin(upper[places], high)
                lower[places] = torch.fmax(lower[places], low)
    return IntermediateBounds(lower, upper)


def interval(
    network: DenseNetwork, ball: TorchBall, known: IntermediateBounds, index: int, sums: Tensor
) -> tuple[Tensor, Tensor]:
    layer = network.hidden[index]
    centre, spread = layer.bias.clone(), OUTWARD * sums
    for source, weight in layer.weights:
        span = network.spans[source]
        low, high = (
            ball.box() if source == 0 else (known.lower[span].clamp(min=0), known.upper[span].clamp(min=0))
        )
        centre += weight @ ((low + high) / 2)
        spread += weight.abs() @ ((high - low) / 2)
    lower, upper = centre - spread, centre + spread
    check_finite(lower.numpy(), upper.numpy())
    return lower, upper


@dataclass(frozen=True, eq=False)
class LayersBefore:
    """What the units of a layer are bounded by: all layers before it, and the bounds of their units."""

    layer: int
    networks: TwoPrecisions
    ball: TorchBall
    bounds: IntermediateBounds
    sums: Sums

    @classmethod
    def of(
        cls, networks: TwoPrecisions, ball: TorchBall, bounds: IntermediateBounds, sums: Tensor, layer: int
    ) -> LayersBefore:
        before = networks.before(layer)
        sums_before = Sums(sums, sums).before(networks.double, layer)
        return cls(layer, before, ball, bounds.first(before.double.units), sums_before)

    def bounded(self, units: Tensor, pace: Pace | None, until: float) -> tuple[Tensor, Tensor]:
        """Upper and lower bounds of some units of the layer, by better slopes if there is a pace."""
        network, planes = self.networks.double, self.bounds.planes
        rows = torch.zeros(2 * len(units), network.scores.size, dtype=torch.float64)
        rows[torch.arange(len(units)), units] = 1.0
        rows[torch.arange(len(units)) + len(units), units] = -1.0
        top = LayerRows(self.layer, rows)
        slopes = self.bounds.first_slopes.expand(len(rows), -1)
        if pace is not None:
            slopes = self.better_slopes(top, slopes, pace, until)
        value, _ = confirmed(network, planes, self.sums, self.ball, top, slopes, None)
        return value[: len(units)], -value[len(units) :]

    def better_slopes(self, top: LayerRows, slopes: Tensor, pace: Pace, until: float) -> Tensor:
        count = len(top.matrix)
        objective = Objective(top.layer, top.matrix[:, None], torch.zeros(count, 1, dtype=torch.float64))
        batch = Subproblems(
            self.networks.double, self.bounds.planes, self.ball, objective, Splits.none(count)
        )
        duals = Duals(slopes.float(), torch.zeros(count, 0), torch.ones(count, 1))
        return optimised(batch.in_single(self.networks.single), duals, pace, until).slopes.double()
