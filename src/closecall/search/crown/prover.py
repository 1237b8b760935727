"""Bounding many parts at once: improved in float32, confirmed in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from closecall.arrays import OUTWARD
from closecall.search.crown.ascent import Aim, Duals, Pace, improve
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks
from closecall.search.crown.relaxation import Sums, confirmed
from closecall.search.crown.splitting import Choice, Part, choose, duals_of, exact_at, planes_of, splits_of


class Aims(Protocol):
    """Aims that parts refer to by their place."""

    def taken(self, rows: Tensor) -> Aim: ...


@dataclass(frozen=True, eq=False)
class Prover:
    """A network and a domain in both precisions, and the aims that parts refer to by their place."""

    wide: Blocks
    narrow: Blocks
    sums: Sums
    ball: Ball  # float64
    aims: Aims  # float64

    def aim_of(self, parts: Sequence[Part]) -> Aim:
        return self.aims.taken(torch.tensor([part.case for part in parts]))

    def bounded(self, parts: Sequence[Part], pace: Pace, *, reach: bool = True) -> list[Part]:
        """Improve the duals of parts; give those that remain open, with their new duals and values."""
        splits, duals = splits_of(parts, self.wide.units), duals_of(parts)
        aim = self.aim_of(parts)
        planes = exact_at(planes_of(parts), splits)
        flat = planes.to(torch.float32)
        duals = replace(duals, slopes=duals.slopes.clamp(flat.least, flat.most))
        ball = self.ball.to(torch.float32)
        duals, _ = improve(self.narrow, flat, ball, (aim.to(torch.float32), splits), duals, pace)
        duals = duals.finite()

        exact = duals.to(torch.float64)
        rows, constant = aim.rows(exact.weights)
        signed = aim.added(splits.scattered(exact.multipliers, self.wide.units))
        slopes = exact.slopes.clamp(planes.least, planes.most)
        value, result = confirmed(self.wide, planes, self.sums, self.ball, (aim.layer, rows), slopes, signed)
        value = value + constant + OUTWARD * constant.abs()
        left = torch.nonzero(~(value < 0))[:, 0]  # NaN is no proof
        reaches = self.reach(value[left], result.rows[left]) if reach else torch.zeros(len(left))
        return [
            replace(
                parts[row],
                duals=Duals(
                    duals.slopes[row].half(),
                    duals.multipliers[row, : len(parts[row].units)].clone(),
                    duals.weights[row].clone(),
                ),
                value=min(parts[row].value, float(value[row])),
                reach=max(parts[row].reach, float(reaches[index])),
            )
            for index, row in enumerate(left.tolist())
        ]

    def reach(self, value: Tensor, rows: Tensor) -> Tensor:
        """The largest radius, from below, at which the same duals give a negative bound."""
        constant = value - self.ball.most(rows)
        widest = self.ball.within(math.inf).furthest(rows).abs()
        far = {"linf": widest.amax(1), "l0": (widest > 0).sum(1).double()}.get(self.ball.norm, widest.sum(1))
        near, far = torch.zeros_like(constant), torch.minimum(far, self.ball.radius)
        for _ in range(14 if bool((constant < 0).any()) else 0):
            middle = (near + far) / 2
            negative = constant + self.ball.within(middle[:, None]).most(rows) < 0
            near, far = torch.where(negative, middle, near), torch.where(negative, far, middle)
        return near

    def chosen(self, parts: Sequence[Part], candidates: int) -> Choice:
        """The unit to split next in each part."""
        return choose(
            self.narrow,
            planes_of(parts).to(torch.float32),
            self.ball.to(torch.float32),
            (self.aim_of(parts).to(torch.float32), splits_of(parts, self.wide.units)),
            duals_of(parts),
            candidates,
        )
