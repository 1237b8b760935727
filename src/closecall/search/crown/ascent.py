"""Better slopes and multipliers by gradient, for many bounds at once.

The bound is constant + max over the ball of rows·image. At the maximiser the gradient follows from one walk
forward through the planes: ∂/∂α = min(c, 0)·a, ∂/∂β = s·a, and ∂/∂λ = M·v − d for the weights of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from closecall.clock import out_of_time
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks
from closecall.search.crown.relaxation import Planes, Substituted, relaxed_values, substitute


@dataclass(frozen=True, eq=False)
class Aim:
    """What is bounded: λ·(M·v − d) + extra·a, with v the pre-activations of a layer and a of all before it.

    The weights λ ≥ 0 add up to one, unless there is an extra: then λ·(M·v − d) ≥ 0 is what is known about the
    images that matter, and any λ ≥ 0 will do.
    """

    layer: int
    matrix: Tensor  # (batch, rows, n)
    threshold: Tensor  # (batch, rows)
    extra: Tensor | None = None  # (batch, units)

    def rows(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.matrix.shape[1] == 1 and self.extra is None:
            return self.matrix[:, 0].clone(), -self.threshold[:, 0]
        return torch.einsum("br,brn->bn", weights, self.matrix), -(weights * self.threshold).sum(1)

    def gradient(self, values: Tensor) -> Tensor:
        return torch.einsum("bn,brn->br", values, self.matrix) - self.threshold

    def allowed(self, weights: Tensor) -> Tensor:
        """The weights, made such that they may be used."""
        if self.extra is not None:
            return weights.clamp(min=0)
        positive = weights.clamp(min=1e-6)
        return positive / positive.sum(1, keepdim=True)

    def taken(self, rows: Tensor) -> Aim:
        extra = None if self.extra is None else self.extra[rows]
        return Aim(self.layer, self.matrix[rows], self.threshold[rows], extra)

    def to(self, dtype: torch.dtype) -> Aim:
        extra = None if self.extra is None else self.extra.to(dtype)
        return Aim(self.layer, self.matrix.to(dtype), self.threshold.to(dtype), extra)

    def added(self, signed: Tensor | None) -> Tensor | None:
        """All coefficients on pre-activations: those of the splits and the extra."""
        if signed is None or self.extra is None:
            return self.extra if signed is None else signed
        return signed + self.extra


@dataclass(frozen=True, eq=False)
class Splits:
    """The units that were split, (batch, most splits); fillers have sign 0 and point behind the last unit."""

    units: Tensor
    signs: Tensor

    def scattered(self, values: Tensor, units: int) -> Tensor | None:
        """The signed multipliers s·β at the place of their units, (batch, units); None without any."""
        if not self.units.shape[1]:
            return None
        spread = values.new_zeros(len(values), units + 1)
        return spread.scatter_add_(1, self.units, self.signs.to(values.dtype) * values)[:, :units]

    def taken(self, rows: Tensor) -> Splits:
        return Splits(self.units[rows], self.signs[rows])


@dataclass(frozen=True, eq=False)
class Duals:
    """Slopes α (batch, units), multipliers β (batch, splits), weights λ (batch, rows)."""

    slopes: Tensor
    multipliers: Tensor
    weights: Tensor

    def taken(self, rows: Tensor) -> Duals:
        return Duals(self.slopes[rows], self.multipliers[rows], self.weights[rows])

    def finite(self) -> Duals:
        """The duals with 0 where an ascent has overflowed: any number is valid, but NaN proves nothing."""
        parts = (self.slopes, self.multipliers, self.weights)
        return Duals(*(part.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0) for part in parts))

    def to(self, dtype: torch.dtype) -> Duals:
        return Duals(self.slopes.to(dtype), self.multipliers.to(dtype), self.weights.to(dtype))


@dataclass(frozen=True, eq=False)
class Point:
    """A bound, and where it is attained."""

    value: Tensor  # (batch,)
    image: Tensor  # (batch, pixels)
    substituted: Substituted

    def taken(self, rows: Tensor) -> Point:
        result = Substituted(
            self.substituted.rows[rows], self.substituted.constant[rows], self.substituted.coefficients[rows]
        )
        return Point(self.value[rows], self.image[rows], result)


@dataclass(frozen=True)
class Pace:
    """How many steps to take, and how long they are."""

    steps: int
    slope_step: float = 0.1
    multiplier_step: float = 0.1
    decay: float = 0.97
    until: float = math.inf  # the perf_counter time after which no further step is begun


def evaluate(blocks: Blocks, planes: Planes, ball: Ball, aim: Aim, splits: Splits, duals: Duals) -> Point:
    rows, constant = aim.rows(duals.weights)
    signed = aim.added(splits.scattered(duals.multipliers, blocks.units))
    result = substitute(blocks, planes, (aim.layer, rows), duals.slopes, signed)
    image = ball.centre + ball.furthest(result.rows)
    value = constant + result.constant + (result.rows * image).sum(1)
    return Point(value, image, result)


class Adam:
    """Steps of nearly equal length in every coordinate, for a tensor that is minimised over."""

    def __init__(self, like: Tensor) -> None:
        self.mean, self.square = torch.zeros_like(like), torch.zeros_like(like)
        self.count = 0

    def step(self, gradient: Tensor, length: float) -> Tensor:
        self.count += 1
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
        scale = length / (1 - 0.9**self.count)
        root = (self.square / (1 - 0.99**self.count)).sqrt_().add_(1e-12)
        return self.mean.div(root).mul_(scale)

    def taken(self, rows: Tensor) -> Adam:
        fewer = Adam.__new__(Adam)
        fewer.mean, fewer.square, fewer.count = self.mean[rows], self.square[rows], self.count
        return fewer


def improve(
    blocks: Blocks, planes: Planes, ball: Ball, problem: tuple[Aim, Splits], duals: Duals, pace: Pace
) -> tuple[Duals, Tensor]:
    """Minimise the bounds over the duals until they are negative; give the best found and their values."""
    aim, splits = problem
    found = Duals(*(part.clone() for part in (duals.slopes, duals.multipliers, duals.weights)))
    values = torch.full((len(duals.slopes),), torch.inf, dtype=duals.slopes.dtype)
    places = torch.arange(len(values))
    climb = Climb(blocks, planes, ball, aim, splits, duals)
    for step in range(pace.steps + 1):
        point = climb.look()
        last = step == pace.steps or out_of_time(pace.until)
        unfinished = climb.best_value >= 0
        few = step % 4 == 3 and int(unfinished.sum()) < 0.75 * len(places)
        if last or few or not bool(unfinished.any()):
            climb.store(found, values, places)
            if last or not bool(unfinished.any()):
                break
            rows = torch.nonzero(unfinished)[:, 0]
            places = places[rows]
            climb, point = climb.taken(rows), point.taken(rows)
        climb.step(point, pace, pace.decay**step)
    return found, values


class Climb:
    """The state of an ascent: the duals now, the best ones so far, and how each coordinate has moved."""

    def __init__(
        self, blocks: Blocks, planes: Planes, ball: Ball, aim: Aim, splits: Splits, duals: Duals
    ) -> None:
        self.blocks, self.planes, self.ball, self.aim, self.splits = blocks, planes, ball, aim, splits
        self.now = duals
        self.best = Duals(*(part.clone() for part in (duals.slopes, duals.multipliers, duals.weights)))
        self.best_value = torch.full((len(duals.slopes),), torch.inf, dtype=duals.slopes.dtype)
        self.movers = [Adam(part) for part in (duals.slopes, duals.multipliers, duals.weights)]

    def look(self) -> Point:
        """Evaluate the duals and remember them where they are the best so far."""
        point = evaluate(self.blocks, self.planes, self.ball, self.aim, self.splits, self.now)
        better = point.value < self.best_value
        self.best_value = torch.where(better, point.value, self.best_value)
        for best, now in (
            (self.best.slopes, self.now.slopes),
            (self.best.multipliers, self.now.multipliers),
            (self.best.weights, self.now.weights),
        ):
            torch.where(better[:, None], now, best, out=best)
        return point

    def step(self, point: Point, pace: Pace, length: float) -> None:
        """Move against the gradient at a point."""
        result, now = point.substituted, self.now
        inputs, scores = relaxed_values(
            self.blocks, self.planes, self.aim.layer, now.slopes, result, point.image
        )
        downhill = self.movers[0].step(
            result.coefficients.clamp(max=0).mul_(inputs), pace.slope_step * length
        )
        slopes = (now.slopes - downhill).clamp_(self.planes.least, self.planes.most)
        multipliers, weights = now.multipliers, now.weights
        if self.splits.units.shape[1]:
            padded = torch.cat([inputs, inputs.new_zeros(len(inputs), 1)], dim=1)
            uphill = padded.gather(1, self.splits.units) * self.splits.signs
            multipliers = multipliers - self.movers[1].step(uphill, pace.multiplier_step * length)
            multipliers.clamp_(min=0)
        if weights.shape[1] > 1 or self.aim.extra is not None:
            uphill = self.aim.gradient(scores)
            weights = self.aim.allowed(weights - self.movers[2].step(uphill, 0.1 * length))
        self.now = Duals(slopes, multipliers, weights)

    def store(self, duals: Duals, values: Tensor, places: Tensor) -> None:
        duals.slopes[places] = self.best.slopes
        duals.multipliers[places] = self.best.multipliers
        duals.weights[places] = self.best.weights
        values[places] = self.best_value

    def taken(self, rows: Tensor) -> Climb:
        """The ascent of some rows only."""
        fewer = Climb(
            self.blocks,
            self.planes.taken(rows),
            self.ball,
            self.aim.taken(rows),
            self.splits.taken(rows),
            self.now.taken(rows),
        )
        fewer.best, fewer.best_value = self.best.taken(rows), self.best_value[rows]
        fewer.movers = [mover.taken(rows) for mover in self.movers]
        return fewer
