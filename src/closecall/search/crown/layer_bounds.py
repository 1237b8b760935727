"""Bounds on every unit over the whole domain, layer by layer, each with slopes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from closecall.arrays import OUTWARD
from closecall.bounds import check_finite
from closecall.clock import out_of_time
from closecall.search.crown.ascent import Aim, Duals, Pace, Splits, improve
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks
from closecall.search.crown.relaxation import Planes, Sums, confirmed

ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class UnitBounds:
    """lower ≤ a ≤ upper for every unit, in float64."""

    lower: Tensor
    upper: Tensor

    @cached_property
    def planes(self) -> Planes:
        return Planes.between(self.lower, self.upper)

    @property
    def open(self) -> Tensor:
        return (self.lower < 0) & (self.upper > 0)


def sums_of(blocks: Blocks, ball: Ball, bounds: UnitBounds) -> Sums:
    """Over a ball; they hold for smaller balls and tighter bounds as well."""
    units = torch.zeros(blocks.units, dtype=torch.float64)
    for layer in range(1, blocks.depth + 1):
        units[blocks.spans[layer]] = terms(blocks, ball, bounds, layer)
    return Sums(units, terms(blocks, ball, bounds, blocks.depth + 1))


def terms(blocks: Blocks, ball: Ball, bounds: UnitBounds, layer: int) -> Tensor:
    """|bias| + Σ |weight| · (the largest value that it reads) for each unit of a layer."""
    block = blocks.block(layer)
    total = block.bias.abs()
    for source, weight in block.weights:
        largest = ball.largest if source == 0 else bounds.upper[blocks.spans[source]].clamp(min=0)
        total = total + weight.abs() @ largest
    return total


def unit_bounds(wide: Blocks, narrow: Blocks, ball: Ball, pace: Pace, until: float) -> UnitBounds:
    """Linear bounds for all units, then optimised ones where the sign is open, both while there is time.

    `wide` and `ball` are in float64, `narrow` is the same network in float32.
    """
    lower, upper, sums = (torch.zeros(wide.units, dtype=torch.float64) for _ in range(3))
    for layer in range(1, wide.depth + 1):
        span = wide.spans[layer]
        sums[span] = terms(wide, ball, UnitBounds(lower, upper), layer)
        lower[span], upper[span] = interval(wide, ball, UnitBounds(lower, upper), layer, sums[span])
        at_once = wide.before(layer).rows_at_once(ROWS_AT_ONCE) // 2
        for steps in (0, pace.steps):
            if steps and layer == 1:
                continue
            units = torch.nonzero((lower[span] < 0) & (upper[span] > 0))[:, 0]
            for begin in range(0, len(units), at_once):
                if out_of_time(until):
                    break
                some = units[begin : begin + at_once]
                high, low = tightened(
                    (wide, narrow),
                    ball,
                    UnitBounds(lower, upper),
                    Sums(sums, sums),
                    (layer, some),
                    Pace(steps, pace.slope_step, until=until),
                )
                places = some + span.start
                # fmin and fmax pass over NaN, which is no bound.
                upper[places] = torch.fmin(upper[places], high)
                lower[places] = torch.fmax(lower[places], low)
    return UnitBounds(lower, upper)


def interval(
    blocks: Blocks, ball: Ball, known: UnitBounds, layer: int, sums: Tensor
) -> tuple[Tensor, Tensor]:
    block = blocks.hidden[layer]
    centre, spread = block.bias.clone(), OUTWARD * sums
    for source, weight in block.weights:
        span = blocks.spans[source]
        low, high = (
            ball.box() if source == 0 else (known.lower[span].clamp(min=0), known.upper[span].clamp(min=0))
        )
        centre += weight @ ((low + high) / 2)
        spread += weight.abs() @ ((high - low) / 2)
    lower, upper = centre - spread, centre + spread
    check_finite(lower.numpy(), upper.numpy())
    return lower, upper


def tightened(
    both: tuple[Blocks, Blocks],
    ball: Ball,
    known: UnitBounds,
    sums: Sums,
    place: tuple[int, Tensor],
    pace: Pace,
) -> tuple[Tensor, Tensor]:
    """Upper and lower bounds of some units of a layer."""
    layer, units = place
    sums = sums.before(both[0], layer)
    wide, narrow = (blocks.before(layer) for blocks in both)
    known = UnitBounds(known.lower[: wide.units], known.upper[: wide.units])
    rows = torch.zeros(2 * len(units), wide.scores.size, dtype=torch.float64)
    rows[torch.arange(len(units)), units] = 1.0
    rows[torch.arange(len(units)) + len(units), units] = -1.0
    planes = known.planes
    slopes = torch.where(known.upper > -known.lower, planes.most, planes.least).expand(len(rows), -1)
    if pace.steps:
        slopes = improved_slopes(narrow, planes, ball, (layer, rows), slopes, pace)
    value, _ = confirmed(wide, planes, sums, ball, (layer, rows), slopes, None)
    return value[: len(units)], -value[len(units) :]


def improved_slopes(
    narrow: Blocks, planes: Planes, ball: Ball, top: tuple[int, Tensor], slopes: Tensor, pace: Pace
) -> Tensor:
    layer, rows = top
    aim = Aim(layer, rows.float()[:, None], torch.zeros(len(rows), 1))
    none = Splits(torch.zeros(len(rows), 0, dtype=torch.int64), torch.zeros(len(rows), 0))
    duals = Duals(slopes.float(), torch.zeros(len(rows), 0), torch.ones(len(rows), 1))
    ball = ball.to(torch.float32)
    best, _ = improve(narrow, planes.to(torch.float32), ball, (aim, none), duals, pace)
    return best.slopes.double()
