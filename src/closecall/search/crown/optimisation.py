"""Better slopes and multipliers by gradient, for many bounds at once.

The bound is constant + max over the ball of rows·image. At the maximiser the gradient follows from one walk
forward through the planes: ∂/∂α = min(c, 0)·a, ∂/∂β = s·a, and ∂/∂λ = M·v − d for the weights of rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from closecall.clock import out_of_time
from closecall.search.crown.relaxation import relaxed_values
from closecall.search.crown.subproblems import Duals, Point, Subproblems, evaluate
from closecall.settings import Pace


class Adam:
    """Steps of nearly equal length in every coordinate, for a tensor that is minimised over."""

    def __init__(self, like: Tensor, pace: Pace) -> None:
        self.mean, self.square = torch.zeros_like(like), torch.zeros_like(like)
        self.keep_mean, self.keep_square = pace.memory_of_mean, pace.memory_of_square
        self.count = 0

    def step(self, gradient: Tensor, length: float) -> Tensor:
        self.count += 1
        self.mean.lerp_(gradient, 1 - self.keep_mean)
        self.square.mul_(self.keep_square).addcmul_(gradient, gradient, value=1 - self.keep_square)
        scale = length / (1 - self.keep_mean**self.count)
        root = (self.square / (1 - self.keep_square**self.count)).sqrt_().add_(1e-12)
        return self.mean.div(root).mul_(scale)

    def keep(self, rows: Tensor) -> None:
        self.mean, self.square = self.mean[rows], self.square[rows]


def optimised(batch: Subproblems, duals: Duals, pace: Pace, until: float) -> Duals:
    """Minimise the bounds over the duals until they are negative, or it is the perf_counter time `until`."""
    found = duals.clone()
    places = torch.arange(len(duals.slopes))
    descent = Descent(batch, duals, pace)
    for step in range(pace.steps + 1):
        point = descent.look()
        unfinished = descent.best_value >= 0
        over = step == pace.steps or out_of_time(until) or not bool(unfinished.any())
        if over or thinning_pays(pace, step, unfinished):
            descent.store(found, places)
            if over:
                break
            rows = torch.nonzero(unfinished)[:, 0]
            places, point = places[rows], point.taken(rows)
            descent.keep(rows)
        descent.step(point, pace.decay**step)
    return found


def thinning_pays(pace: Pace, step: int, unfinished: Tensor) -> bool:
    """Whether so few bounds are left that it is worth to go on with those alone."""
    if (step + 1) % pace.steps_between_thinnings:
        return False
    return int(unfinished.sum()) < pace.thinning_share * len(unfinished)


class Descent:
    """The duals now, the best ones so far, and how each coordinate has moved."""

    def __init__(self, batch: Subproblems, duals: Duals, pace: Pace) -> None:
        self.batch, self.pace = batch, pace
        self.now, self.best = duals, duals.clone()
        self.best_value = torch.full((len(duals.slopes),), torch.inf, dtype=duals.slopes.dtype)
        self.movers = [Adam(dual, pace) for dual in duals.each]

    def look(self) -> Point:
        """Evaluate the duals and remember them where they are the best so far."""
        point = evaluate(self.batch, self.now)
        better = point.value < self.best_value
        self.best_value = torch.where(better, point.value, self.best_value)
        for best, now in zip(self.best.each, self.now.each, strict=True):
            torch.where(better[:, None], now, best, out=best)
        return point

    def step(self, point: Point, length: float) -> None:
        """Move against the gradient at a point."""
        planes, splits, objective = self.batch.planes, self.batch.splits, self.batch.objective
        result, now, pace = point.substituted, self.now, self.pace
        inputs, scores = relaxed_values(
            self.batch.network, planes, objective.layer, now.slopes, result, point.image
        )
        downhill = result.coefficients.clamp(max=0).mul_(inputs)
        slopes = now.slopes - self.movers[0].step(downhill, pace.slope_step * length)
        slopes.clamp_(planes.least, planes.most)
        multipliers, weights = now.multipliers, now.weights
        if splits.units.shape[1]:
            padded = torch.cat([inputs, inputs.new_zeros(len(inputs), 1)], dim=1)
            uphill = padded.gather(1, splits.units) * splits.signs
            multipliers = multipliers - self.movers[1].step(uphill, pace.multiplier_step * length)
            multipliers.clamp_(min=0)
        if weights.shape[1] > 1 or objective.extra is not None:
            uphill = self.movers[2].step(objective.gradient(scores), pace.weight_step * length)
            weights = objective.allowed(weights - uphill, pace.least_weight)
        self.now = Duals(slopes, multipliers, weights)

    def store(self, found: Duals, places: Tensor) -> None:
        for kept, best in zip(found.each, self.best.each, strict=True):
            kept[places] = best

    def keep(self, rows: Tensor) -> None:
        """Go on with some rows only."""
        self.batch = self.batch.taken(rows)
        self.now, self.best = self.now.taken(rows), self.best.taken(rows)
        self.best_value = self.best_value[rows]
        for mover in self.movers:
            mover.keep(rows)
