"""Open parts of the search, and which unit to split next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from closecall.search.crown.ascent import Aim, Duals, Splits, evaluate
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks
from closecall.search.crown.layer_bounds import UnitBounds
from closecall.search.crown.relaxation import Planes, relaxed_values


@dataclass(frozen=True, eq=False)
class Part:
    """The images of the domain that reach a case with some units split, and the duals that bound them."""

    case: int
    units: Tensor  # (splits,)
    signs: Tensor  # (splits,)
    duals: Duals  # without the batch dimension
    value: float  # the bound on λ·(C·y − d) that is left
    reach: float  # no image of this part lies within this distance
    bounds: UnitBounds  # that hold all over this part


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


def planes_of(parts: Sequence[Part]) -> Planes:
    """The planes of each part's bounds, (batch, units), or (units,) when all share the same."""
    first = parts[0].bounds
    if all(part.bounds is first for part in parts):
        return first.planes
    each = [part.bounds.planes for part in parts]
    return Planes(
        torch.stack([planes.chord for planes in each]),
        torch.stack([planes.height for planes in each]),
        torch.stack([planes.least for planes in each]),
        torch.stack([planes.most for planes in each]),
    )


def exact_at(planes: Planes, splits: Splits) -> Planes:
    """Planes made exact at the units that are split."""
    rows, units = len(splits.units), planes.chord.shape[-1]
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
    """Where the bounds of some parts are attained, and the unit to split, −1 only if all are decided."""

    images: Tensor
    units: Tensor


def choose(
    blocks: Blocks, planes: Planes, ball: Ball, problem: tuple[Aim, Splits], duals: Duals, candidates: int
) -> Choice:
    """Score all open units, bound the children of the best few, take the unit with the better worse child.

    A unit's score is what its plane adds to the bound at the relaxed solution: |c|·|plane(a) − max(0, a)|.
    """
    aim, splits = problem
    here = exact_at(planes, splits)
    duals = replace(duals, slopes=duals.slopes.clamp(here.least, here.most))
    point = evaluate(blocks, here, ball, aim, splits, duals)
    inputs, _ = relaxed_values(blocks, here, aim.layer, duals.slopes, point.substituted, point.image)
    coefficients = point.substituted.coefficients
    positive = coefficients.clamp(min=0)
    gap = positive * (here.chord * inputs + here.height) + (coefficients - positive) * duals.slopes * inputs
    gap -= coefficients * inputs.clamp(min=0)
    score = gap.clamp(min=0) + 1e-3 * positive * here.height
    # What overflows or underflows in float32 still counts: a part is a leaf only if nothing is left to split.
    score = torch.where(here.most > here.least, score.nan_to_num(nan=0.0) + 1e-20, 0.0)
    top = score.topk(min(candidates, score.shape[1]), dim=1)
    if candidates > 1:
        worse = children_bounds(blocks, planes, ball, problem, duals, top.indices)
        best = torch.where(top.values > 0, worse, torch.inf).argmin(dim=1, keepdim=True)
        units = top.indices.gather(1, best)
    else:
        units = top.indices
    return Choice(point.image, torch.where(top.values[:, :1] > 0, units, -1)[:, 0])


def children_bounds(
    blocks: Blocks, planes: Planes, ball: Ball, problem: tuple[Aim, Splits], duals: Duals, candidates: Tensor
) -> Tensor:
    """For each part and candidate, a measure of both children's bounds before any ascent."""
    aim, splits = problem
    count, tried = candidates.shape
    rows = torch.arange(count).repeat_interleave(2 * tried)
    signs = torch.tensor([1.0, -1.0]).repeat(count * tried)[:, None]
    new = candidates.reshape(-1, 1).repeat_interleave(2, dim=0)
    more = Splits(torch.cat([splits.units[rows], new], dim=1), torch.cat([splits.signs[rows], signs], dim=1))
    child_planes = exact_at(planes.taken(rows), more)
    child = duals.taken(rows)
    child = Duals(
        child.slopes.clamp(child_planes.least, child_planes.most),
        torch.cat([child.multipliers, torch.zeros(len(rows), 1)], dim=1),
        child.weights,
    )
    values = evaluate(blocks, child_planes, ball, aim.taken(rows), more, child).value
    both = values.reshape(count, tried, 2).clamp(min=0)
    return both.amax(dim=2) + 0.1 * both.amin(dim=2)


def child_of(part: Part, unit: int, sign: float) -> Part:
    duals = replace(part.duals, multipliers=torch.cat([part.duals.multipliers, torch.zeros(1)]))
    return replace(
        part,
        units=torch.cat([part.units, torch.tensor([unit])]),
        signs=torch.cat([part.signs, torch.tensor([sign])]),
        duals=duals,
    )
