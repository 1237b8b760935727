"""Bounding many parts at once: improved in float32, confirmed in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from closecall.arrays import OUTWARD
from closecall.clock import out_of_time
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.dense_network import TwoPrecisions
from closecall.search.crown.optimisation import optimised
from closecall.search.crown.relaxation import Sums, confirmed
from closecall.search.crown.splitting import (
    Part,
    SplitChoice,
    chosen_splits,
    duals_of,
    planes_of,
    splits_of,
    with_duals,
)
from closecall.search.crown.subproblems import Duals, Objective, Subproblems
from closecall.settings import Crown, Pace


class Objectives(Protocol):
    """Objectives that parts refer to by their place."""

    def taken(self, rows: Tensor) -> Objective: ...


@dataclass(frozen=True, eq=False)
class Prover:
    """A network and a ball, and the objectives that parts refer to by their place."""

    networks: TwoPrecisions
    sums: Sums
    ball: TorchBall  # float64
    objectives: Objectives  # float64
    settings: Crown

    def subproblems(self, parts: Sequence[Part]) -> Subproblems:
        """The parts as a batch in float64."""
        objective = self.objectives.taken(torch.tensor([part.case for part in parts]))
        splits = splits_of(parts, self.networks.double.units)
        return Subproblems(self.networks.double, planes_of(parts), self.ball, objective, splits)

    def bounded_in_time(
        self, parts: Sequence[Part], pace: Pace, until: float, *, with_radius: bool = True
    ) -> list[Part]:
        """The parts that remain open; those that there is no time for remain as they are."""
        still_open: list[Part] = []
        at_once = self.rows_at_once(self.settings.parts_at_once)
        for begin in range(0, len(parts), at_once):
            some = parts[begin : begin + at_once]
            late = out_of_time(until)
            still_open += some if late else self.bounded(some, pace, until, with_radius=with_radius)
        return still_open

    def rows_at_once(self, most: int) -> int:
        return self.networks.single.rows_at_once(most, self.settings.multiplications_at_once)

    def bounded(self, parts: Sequence[Part], pace: Pace, until: float, *, with_radius: bool) -> list[Part]:
        """Improve the duals of parts; give those that remain open, with their new duals and values.

        With their radius as well, unless what they bound is no case.
        """
        batch = self.subproblems(parts).exact_at_splits()
        single = batch.in_single(self.networks.single)
        duals = optimised(single, duals_of(parts).within(single.planes), pace, until).finite()
        value, rows = self.confirmed(batch, duals)
        left = torch.nonzero(~(value < 0))[:, 0]  # NaN is no proof
        radii = self.proven_radii(value[left], rows[left]) if with_radius else torch.zeros(len(left))
        return [
            with_duals(parts[row], duals, row, float(value[row]), float(radius))
            for row, radius in zip(left.tolist(), radii, strict=True)
        ]

    def confirmed(self, batch: Subproblems, duals: Duals) -> tuple[Tensor, Tensor]:
        """The bounds that the duals prove, in float64, and the rows on pixels that they come from."""
        duals = duals.to(torch.float64).within(batch.planes)
        rows, constant = batch.objective.rows(duals.weights)
        signed = batch.signed(duals.multipliers)
        value, result = confirmed(
            batch.network, batch.planes, self.sums, batch.ball, rows, duals.slopes, signed
        )
        return value + constant + OUTWARD * constant.abs(), result.rows

    def proven_radii(self, value: Tensor, rows: Tensor) -> Tensor:
        """The largest radius, from below, at which the same duals give a negative bound."""
        constant = value - self.ball.most(rows)
        widest = self.ball.within(math.inf).furthest(rows).abs()
        far = {"linf": widest.amax(1), "l0": (widest > 0).sum(1).double()}.get(self.ball.norm, widest.sum(1))
        near, far = torch.zeros_like(constant), torch.minimum(far, self.ball.radius)
        for _ in range(self.settings.bisections if bool((constant < 0).any()) else 0):
            middle = (near + far) / 2
            negative = constant + self.ball.within(middle[:, None]).most(rows) < 0
            near, far = torch.where(negative, middle, near), torch.where(negative, far, middle)
        return near

    def chosen(self, parts: Sequence[Part], candidates: int) -> SplitChoice:
        """The unit to split next in each part."""
        batch = self.subproblems(parts).in_single(self.networks.single)
        return chosen_splits(batch, duals_of(parts), candidates, self.settings)
