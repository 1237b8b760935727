"""Upper bounds on linear functions of a layer by substituting linear bounds of the ReLUs backwards.

For a unit a ∈ [l, u] of open sign and its coefficient c in the function to bound:

    c·max(0, a) ≤ c·u(a − l)/(u − l)   if c > 0,
    c·max(0, a) ≤ c·α·a                if c < 0, for any slope 0 ≤ α ≤ 1,

and a unit split to a ≥ 0 or a ≤ 0 (sign s) may add s·β·a ≥ 0 for any β ≥ 0. What is left is linear in the
image and is maximised over box ∩ ball exactly. Every choice of slopes and multipliers gives a valid bound, so
they are improved in float32 and only what comes out is evaluated in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from closecall.arrays import OUTWARD
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.dense_network import DenseNetwork


@dataclass(frozen=True, eq=False)
class ReluPlanes:
    """The linear bounds of all units, (units,) or (batch, units)."""

    chord: Tensor  # slope above
    height: Tensor  # intercept above
    least: Tensor  # slopes α below lie between these two
    most: Tensor

    @classmethod
    def between(cls, lower: Tensor, upper: Tensor) -> ReluPlanes:
        is_open = (lower < 0) & (upper > 0)
        on = (lower >= 0).to(lower.dtype)
        chord = torch.where(is_open, upper / (upper - lower), on)
        height = torch.where(is_open, -chord * lower, 0.0)
        return cls(chord, height, torch.where(is_open, 0.0, on), torch.where(is_open, 1.0, on))

    def to(self, dtype: torch.dtype) -> ReluPlanes:
        parts = (self.chord, self.height, self.least, self.most)
        return ReluPlanes(*(part.to(dtype) for part in parts))

    def taken(self, rows: Tensor) -> ReluPlanes:
        """The planes of some rows of the batch; shared planes stay shared."""
        if self.chord.dim() == 1:
            return self
        return ReluPlanes(*(part[rows] for part in (self.chord, self.height, self.least, self.most)))


@dataclass(frozen=True, eq=False)
class Sums:
    """What the terms of each unit, and of the scores behind them, add up to at most without their signs.

    Sums are rounded by a share of this, even where the terms cancel.
    """

    units: Tensor
    top: Tensor

    def before(self, network: DenseNetwork, layer: int) -> Sums:
        """For the part of the network whose scores are the pre-activations of a layer."""
        span = network.spans[layer]
        return Sums(self.units[: span.start], self.units[span])


@dataclass(frozen=True, eq=False)
class LayerRows:
    """Linear functions of the pre-activations of a layer, one in each row."""

    layer: int
    matrix: Tensor  # (batch, n)


@dataclass(frozen=True, eq=False)
class Substituted:
    """What the substitution leaves: value ≤ constant + rows · image."""

    rows: Tensor  # (batch, pixels)
    constant: Tensor  # (batch,)
    coefficients: Tensor  # (batch, units): of each ReLU's output before its substitution


def substitute(
    network: DenseNetwork, planes: ReluPlanes, top: LayerRows, slopes: Tensor, multipliers: Tensor | None
) -> Substituted:
    """Carry rows on a layer back to the image; multipliers are the signed s·β, (batch, units)."""
    rows = top.matrix
    constant = rows @ network.layer(top.layer).bias
    coefficients = rows.new_zeros(len(rows), network.units)
    pending: dict[int, Tensor] = {}
    for current in range(top.layer, 0, -1):
        if current < top.layer:
            span = network.spans[current]
            here = pending.pop(current, None)
            if here is None:
                if multipliers is None:
                    continue
                here = rows.new_zeros(len(rows), span.stop - span.start)
            coefficients[:, span] = here
            positive = here.clamp(min=0)
            constant += (positive * planes.height[..., span]).sum(1)
            rows = here.sub_(positive).mul_(slopes[:, span]).addcmul_(positive, planes.chord[..., span])
            if multipliers is not None:
                rows += multipliers[:, span]
            constant += rows @ network.hidden[current].bias
        for source, weight in network.layer(current).weights:
            if source in pending:
                pending[source].addmm_(rows, weight)
            else:
                pending[source] = rows @ weight
    image = pending.get(0)
    return Substituted(
        rows.new_zeros(len(rows), network.pixels) if image is None else image, constant, coefficients
    )


def relaxed_values(
    network: DenseNetwork,
    planes: ReluPlanes,
    layer: int,
    slopes: Tensor,
    substituted: Substituted,
    image: Tensor,
) -> tuple[Tensor, Tensor]:
    """The pre-activations (batch, units) before a layer, and its own, when ReLUs follow their planes."""
    values = [image]
    inputs = slopes.new_zeros(slopes.shape)
    for current in range(1, layer):
        span = network.spans[current]
        a = network.apply(current, values)
        inputs[:, span] = a
        above = torch.addcmul(planes.height[..., span], a, planes.chord[..., span])
        values.append(torch.where(substituted.coefficients[:, span] > 0, above, a * slopes[:, span]))
    return inputs, network.apply(layer, values)


def confirmed(
    network: DenseNetwork,
    planes: ReluPlanes,
    sums: Sums,
    ball: TorchBall,
    top: LayerRows,
    slopes: Tensor,
    multipliers: Tensor | None,
) -> tuple[Tensor, Substituted]:
    """The bound in float64, rounded outward by a share of every sum that enters it."""
    result = substitute(network, planes, top, slopes, multipliers)
    passed = result.coefficients.abs()
    if multipliers is not None:
        passed = passed + multipliers.abs()
    size = (passed * (sums.units + planes.height)).sum(1) + result.rows.abs() @ ball.largest
    size += top.matrix.abs() @ sums.top + result.constant.abs()
    value = result.constant + result.rows @ ball.centre + ball.most(result.rows)
    return value + OUTWARD * size, result
