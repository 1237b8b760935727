"""Open parts of the search, and which unit to split next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from closecall.search.crown.intermediate_bounds import IntermediateBounds
from closecall.search.crown.relaxation import ReluPlanes, relaxed_values
from closecall.search.crown.subproblems import Duals, Splits, Subproblems, evaluate
from closecall.settings import Crown


@dataclass(frozen=True, eq=False)
class Part:
    """The images of the domain that reach a case with some units split, and the duals that bound them."""

    case: int
    units: Tensor  # (splits,)
    signs: Tensor  # (splits,)
    duals: Duals  # without the batch dimension
    value: float  # the bound on λ·(C·y − d) that is left
    radius: float  # no image of this part lies within this distance
    bounds: IntermediateBounds  # that hold all over this part

    @classmethod
    def root(cls, case: int, duals: Duals, value: float, bounds: IntermediateBounds) -> Part:
        """A part without splits, about which no radius is known."""
        return cls(case, torch.zeros(0, dtype=torch.int64), torch.zeros(0), duals, value, 0.0, bounds)


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


def planes_of(parts: Sequence[Part]) -> ReluPlanes:
    """The planes of each part's bounds, (batch, units), or (units,) when all share the same."""
    first = parts[0].bounds
    if all(part.bounds is first for part in parts):
        return first.planes
    each = [part.bounds.planes for part in parts]
    return ReluPlanes(
        torch.stack([planes.chord for planes in each]),
        torch.stack([planes.height for planes in each]),
        torch.stack([planes.least for planes in each]),
        torch.stack([planes.most for planes in each]),
    )


@dataclass(frozen=True, eq=False)
class SplitChoice:
    """Where the bounds of some parts are attained, and the unit to split, −1 only if all are decided."""

    images: Tensor
    units: Tensor


def chosen_splits(batch: Subproblems, duals: Duals, candidates: int, settings: Crown) -> SplitChoice:
    """Score all open units, bound the children of the best few, take the unit with the better worse child."""
    exact = batch.exact_at_splits()
    duals = duals.within(exact.planes)
    score, images = scores_of_units(exact, duals, settings.triangle)
    if score.shape[1] == 0:
        return SplitChoice(images, torch.full((len(images),), -1))
    top = score.topk(min(candidates, score.shape[1]), dim=1)
    if candidates > 1:
        worse = children_bounds(batch, duals, top.indices, settings.better_child)
        best = torch.where(top.values > 0, worse, torch.inf).argmin(dim=1, keepdim=True)
        units = top.indices.gather(1, best)
    else:
        units = top.indices
    return SplitChoice(images, torch.where(top.values[:, :1] > 0, units, -1)[:, 0])


def scores_of_units(batch: Subproblems, duals: Duals, triangle: float) -> tuple[Tensor, Tensor]:
    """What each unit's plane adds to the bound, above 0 if the unit is open, and where the bound is attained.

    At the relaxed solution that is |c|·|plane(a) − max(0, a)|; the plane's height counts a little beside.
    """
    point, planes = evaluate(batch, duals), batch.planes
    inputs, _ = relaxed_values(
        batch.network, planes, batch.objective.layer, duals.slopes, point.substituted, point.image
    )
    coefficients = point.substituted.coefficients
    positive = coefficients.clamp(min=0)
    gap = positive * (planes.chord * inputs + planes.height)
    gap += (coefficients - positive) * duals.slopes * inputs
    gap -= coefficients * inputs.clamp(min=0)
    score = gap.clamp(min=0) + triangle * positive * planes.height
    # What overflows or underflows in float32 still counts: a part is a leaf only if nothing is left to split.
    score = torch.where(planes.most > planes.least, score.nan_to_num(nan=0.0) + 1e-20, 0.0)
    return score, point.image


def children_bounds(batch: Subproblems, duals: Duals, candidates: Tensor, better_child: float) -> Tensor:
    """For each part and candidate, a measure of both children's bounds before any is improved."""
    count, tried = candidates.shape
    rows = torch.arange(count).repeat_interleave(2 * tried)
    signs = torch.tensor([1.0, -1.0]).repeat(count * tried)[:, None]
    new = candidates.reshape(-1, 1).repeat_interleave(2, dim=0)
    children = batch.taken(rows)
    splits = Splits(
        torch.cat([children.splits.units, new], dim=1), torch.cat([children.splits.signs, signs], dim=1)
    )
    children = replace(children, splits=splits).exact_at_splits()
    child = duals.taken(rows)
    longer = torch.cat([child.multipliers, torch.zeros(len(rows), 1)], dim=1)
    values = evaluate(children, replace(child, multipliers=longer).within(children.planes)).value
    of_both = values.reshape(count, tried, 2).clamp(min=0)
    return of_both.amax(dim=2) + better_child * of_both.amin(dim=2)


def with_duals(part: Part, duals: Duals, row: int, value: float, radius: float) -> Part:
    """A part with its row of a batch's duals, and what they prove if that is more than is known."""
    own = Duals(
        duals.slopes[row].half(),
        duals.multipliers[row, : len(part.units)].clone(),
        duals.weights[row].clone(),
    )
    return replace(part, duals=own, value=min(part.value, value), radius=max(part.radius, radius))


def child_of(part: Part, unit: int, sign: float) -> Part:
    duals = replace(part.duals, multipliers=torch.cat([part.duals.multipliers, torch.zeros(1)]))
    return replace(
        part,
        units=torch.cat([part.units, torch.tensor([unit])]),
        signs=torch.cat([part.signs, torch.tensor([sign])]),
        duals=duals,
    )
