"""A batch of subproblems: what each of them bounds, which units it has split, and the duals that bound it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from closecall.search.crown.ball import TorchBall
from closecall.search.crown.dense_network import DenseNetwork
from closecall.search.crown.relaxation import LayerRows, ReluPlanes, Substituted, substitute


@dataclass(frozen=True, eq=False)
class Objective:
    """What is bounded: λ·(M·v − d) + extra·a, with v the pre-activations of a layer and a of all before it.

    The weights λ ≥ 0 add up to one, unless there is an extra: then λ·(M·v − d) ≥ 0 is what is known about the
    images that matter, and any λ ≥ 0 will do.
    """

    layer: int
    matrix: Tensor  # (batch, rows, n)
    threshold: Tensor  # (batch, rows)
    extra: Tensor | None = None  # (batch, units)

    def rows(self, weights: Tensor) -> tuple[LayerRows, Tensor]:
        """λ·M and −λ·d."""
        if self.matrix.shape[1] == 1 and self.extra is None:
            return LayerRows(self.layer, self.matrix[:, 0].clone()), -self.threshold[:, 0]
        weighted = torch.einsum("br,brn->bn", weights, self.matrix)
        return LayerRows(self.layer, weighted), -(weights * self.threshold).sum(1)

    def gradient(self, values: Tensor) -> Tensor:
        return torch.einsum("bn,brn->br", values, self.matrix) - self.threshold

    def allowed(self, weights: Tensor, least: float) -> Tensor:
        """The weights, made such that they may be used."""
        if self.extra is not None:
            return weights.clamp(min=0)
        positive = weights.clamp(min=least)
        return positive / positive.sum(1, keepdim=True)

    def taken(self, rows: Tensor) -> Objective:
        extra = None if self.extra is None else self.extra[rows]
        return Objective(self.layer, self.matrix[rows], self.threshold[rows], extra)

    def to(self, dtype: torch.dtype) -> Objective:
        extra = None if self.extra is None else self.extra.to(dtype)
        return Objective(self.layer, self.matrix.to(dtype), self.threshold.to(dtype), extra)

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

    @classmethod
    def none(cls, count: int) -> Splits:
        return cls(torch.zeros(count, 0, dtype=torch.int64), torch.zeros(count, 0))

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

    @property
    def each(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.slopes, self.multipliers, self.weights

    def taken(self, rows: Tensor) -> Duals:
        return Duals(*(dual[rows] for dual in self.each))

    def clone(self) -> Duals:
        return Duals(*(dual.clone() for dual in self.each))

    def finite(self) -> Duals:
        """The duals with 0 where steps have overflowed: any number is valid, but NaN proves nothing."""
        return Duals(*(dual.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0) for dual in self.each))

    def to(self, dtype: torch.dtype) -> Duals:
        return Duals(*(dual.to(dtype) for dual in self.each))

    def within(self, planes: ReluPlanes) -> Duals:
        """The duals with slopes that the planes allow."""
        return replace(self, slopes=self.slopes.clamp(planes.least, planes.most))


@dataclass(frozen=True, eq=False)
class Subproblems:
    """The bounds of a batch over a ball; the planes are those before its splits, unless made exact there."""

    network: DenseNetwork
    planes: ReluPlanes
    ball: TorchBall
    objective: Objective
    splits: Splits

    def exact_at_splits(self) -> Subproblems:
        return replace(self, planes=exact_at(self.planes, self.splits))

    def in_single(self, network: DenseNetwork) -> Subproblems:
        """The same with the network in float32."""
        return Subproblems(
            network,
            self.planes.to(torch.float32),
            self.ball.to(torch.float32),
            self.objective.to(torch.float32),
            self.splits,
        )

    def taken(self, rows: Tensor) -> Subproblems:
        return replace(
            self,
            planes=self.planes.taken(rows),
            objective=self.objective.taken(rows),
            splits=self.splits.taken(rows),
        )

    def signed(self, multipliers: Tensor) -> Tensor | None:
        """All coefficients on pre-activations, (batch, units)."""
        return self.objective.added(self.splits.scattered(multipliers, self.network.units))


def exact_at(planes: ReluPlanes, splits: Splits) -> ReluPlanes:
    """Planes made exact at the units that are split."""
    rows, units = len(splits.units), planes.chord.shape[-1]
    on = (splits.signs > 0).to(planes.chord.dtype)

    def placed(whole: Tensor, value: Tensor) -> Tensor:
        spread = torch.zeros(rows, units + 1, dtype=whole.dtype)
        spread[:, :units] = whole
        return spread.scatter_(1, splits.units, value)[:, :units]

    return ReluPlanes(
        placed(planes.chord, on),
        placed(planes.height, torch.zeros_like(on)),
        placed(planes.least, on),
        placed(planes.most, on),
    )


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


def evaluate(batch: Subproblems, duals: Duals) -> Point:
    rows, constant = batch.objective.rows(duals.weights)
    signed = batch.signed(duals.multipliers)
    result = substitute(batch.network, batch.planes, rows, duals.slopes, signed)
    image = batch.ball.centre + batch.ball.furthest(result.rows)
    value = constant + result.constant + (result.rows * image).sum(1)
    return Point(value, image, result)
