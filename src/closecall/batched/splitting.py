"""Open parts of the search, and which unit to split next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from closecall.batched.ascent import Aim, Duals, Splits, evaluate
from closecall.batched.ball import Ball
from closecall.batched.blocks import Blocks
from closecall.batched.relaxation import Planes, relaxed_values

CANDIDATES = 8


@dataclass(frozen=True, eq=False)
class Part:
    """The images of the domain that reach a case with some units split, and the duals that bound them."""

    case: int
    units: Tensor  # (splits,)
    signs: Tensor  # (splits,)
    duals: Duals  # without the batch dimension
    value: float  # the bound on λ·(C·y − d) that is left
    reach: float  # no image of this part lies within this distance


def splits_of(parts: Sequence[Part], units: int) -> Splits:
    most = max(len(part.units) for part in parts)
    places = torch.full((len(parts), most), units, dtype=torch.int64)
    signs = torch.zeros(len(parts), most)
    for row, part in enumerate(parts):
        places[row, : len(part.units)] = part.units
        signs[row, : len(part.units)] = part.signs
    return Splits(places, signs)


def duals_of(parts: Sequence[Part]) -> Duals:
    most = max(len(part.units) for part in parts)
    multipliers = torch.zeros(len(parts), most)
    for row, part in enumerate(parts):
        multipliers[row, : len(part.units)] = part.duals.multipliers
    return Duals(
        torch.stack([part.duals.slopes for part in parts]).float(),
        multipliers,
        torch.stack([part.duals.weights for part in parts]),
    )


def planes_of(planes: Planes, splits: Splits) -> Planes:
    """The planes of the whole domain, made exact at the units that are split."""
    rows, units = len(splits.units), len(planes.chord)
    on = (splits.signs > 0).to(planes.chord.dtype)

    def placed(whole: Tensor, value: Tensor) -> Tensor:
        spread = torch.zeros(rows, units + 1, dtype=whole.dtype)
        spread[:, :units] = whole
        return spread.scatter_(1, splits.units, value)[:, :units]

    return Planes(
        placed(planes.chord, on),
        placed(planes.height, torch.zeros_like(on)),
        placed(planes.least, on),
        placed(planes.most, on),
    )


@dataclass(frozen=True, eq=False)
class Choice:
    """Where the bounds of some parts are attained, and the unit to split in each, −1 if all are decided."""

    images: Tensor
    units: Tensor


def choose(blocks: Blocks, planes: Planes, ball: Ball, aim: Aim, splits: Splits, duals: Duals) -> Choice:
    """Score all open units, bound the children of the best few, and take the unit with the better worse child.

    A unit's score is what its plane adds to the bound at the relaxed solution: |c|·|plane(a) − max(0, a)|.
    """
    here = planes_of(planes, splits)
    point = evaluate(blocks, here, ball, aim, splits, duals)
    inputs, _ = relaxed_values(blocks, here, aim.layer, duals.slopes, point.substituted, point.image)
    coefficients = point.substituted.coefficients
    positive = coefficients.clamp(min=0)
    gap = positive * (here.chord * inputs + here.height) + (coefficients - positive) * duals.slopes * inputs
    gap -= coefficients * inputs.clamp(min=0)
    is_open = here.height > 0
    score = torch.where(is_open, gap.clamp(min=0) + 1e-3 * positive * here.height + 1e-9, 0.0)
    top = score.topk(min(CANDIDATES, score.shape[1]), dim=1)
    worse = children_bounds(blocks, planes, ball, aim, splits, duals, top.indices)
    worse = torch.where(top.values > 0, worse, torch.inf)
    best = worse.argmin(dim=1, keepdim=True)
    units = torch.where(top.values[:, :1] > 0, top.indices.gather(1, best), -1)[:, 0]
    return Choice(point.image, units)


def children_bounds(
    blocks: Blocks, planes: Planes, ball: Ball, aim: Aim, splits: Splits, duals: Duals, candidates: Tensor
) -> Tensor:
    """For each part and candidate, a measure of both children's bounds before any ascent."""
    count, tried = candidates.shape
    rows = torch.arange(count).repeat_interleave(2 * tried)
    signs = torch.tensor([1.0, -1.0]).repeat(count * tried)[:, None]
    new = candidates.reshape(-1, 1).repeat_interleave(2, dim=0)
    more = Splits(torch.cat([splits.units[rows], new], dim=1), torch.cat([splits.signs[rows], signs], dim=1))
    child_planes = planes_of(planes, more)
    child = duals.taken(rows)
    child = Duals(
        child.slopes.clamp(child_planes.least, child_planes.most),
        torch.cat([child.multipliers, torch.zeros(len(rows), 1)], dim=1),
        child.weights,
    )
    values = evaluate(blocks, child_planes, ball, aim.taken(rows), more, child).value
    both = values.reshape(count, tried, 2).clamp(min=0)
    return both.amax(dim=2) + 0.1 * both.amin(dim=2)
