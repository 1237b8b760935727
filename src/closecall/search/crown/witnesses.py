"""The search for witnesses: climbs by gradient, LPs within linear regions, checks in float64."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.case_rows import CaseRows
from closecall.search.crown.climbing import climbed, forward
from closecall.search.crown.dense_network import DenseNetwork
from closecall.search.crown.region import UnitPhases, nearest_in_region
from closecall.search.problem import Problem


class WitnessSearch:
    """Offers images to the incumbent; if the nearest is wanted, also the nearest of their linear region."""

    def __init__(self, problem: Problem, dense: DenseNetwork, until: float) -> None:
        self.incumbent, self.dense, self.until = problem.incumbent, dense, until
        self.domain, self.goal, self.settings = problem.domain, problem.goal, problem.settings
        self.polishing = problem.nearest  # while the LPs of linear regions are worth their time
        self.single = dense.to(torch.float32)
        self.cases = CaseRows.of(self.goal)
        self.generator = torch.Generator().manual_seed(0)

    def accept(self, image: Vector, *, then_polish: bool = True) -> bool:
        """Offer an image; from a new incumbent on, go through linear regions to nearer ones."""
        if not self.incumbent.offer(image):
            return False
        if then_polish:
            self.polish()
        return True

    def polish(self) -> None:
        """Go from the incumbent to the nearest witness of its region, and on as long as that pays."""
        now = time.perf_counter()
        until = now + self.settings.crown.climbs.share_for_regions * max(0.0, self.until - now)
        while self.polishing and self.stepped_within_region(until):
            pass
        self.polishing = self.polishing and not out_of_time(until)

    def stepped_within_region(self, until: float) -> bool:
        """Go to the nearest witness of the incumbent's linear region; False if that is hardly nearer."""
        before, image = self.incumbent.distance, self.incumbent.witness
        if image is None:
            return False
        scores, active = forward(self.dense, torch.from_numpy(image)[None])
        slacks = [float(case.slack(scores.numpy())[0]) for case in self.goal.cases]
        case = self.goal.cases[int(np.argmax(slacks))]
        phases = UnitPhases(active[0], kept=torch.ones(self.dense.units, dtype=torch.bool))
        domain = self.domain.within(before)
        _, nearest = nearest_in_region(self.dense, domain, case, phases, until, self.settings)
        accepted = nearest is not None and self.incumbent.offer_beyond(nearest)
        return accepted and self.incumbent.distance < self.settings.crown.climbs.worth_a_region * before

    def close_in(self, ball: TorchBall, enough: float = 0.0) -> None:
        """Look everywhere for images that are nearer: by large steps, then by small ones, until in vain.

        One that is nearer than `enough` ends it. Where linear regions have too many borders for LPs, which
        would go the rest of the way, steps become as small as the gap.
        """
        climbs, misses = self.settings.crown.climbs, 0
        step = climbs.first_shrinking
        while self.incumbent.distance >= enough and not out_of_time(self.until):
            least = climbs.last_shrinking if self.polishing else self.incumbent.gap
            if misses >= climbs.failed_rounds and step <= least:
                return
            wanted = min(float(ball.radius), self.incumbent.wanted, (1.0 - step) * self.incumbent.distance)
            # What a long step will leave behind is not worth the LPs of its linear region.
            if self.everywhere(ball.within(wanted), then_polish=step <= least):
                misses = 0
            else:
                misses, step = misses + 1, step * climbs.shorter_after_failure if step > least else 0.0

    def everywhere(self, ball: TorchBall, *, then_polish: bool = True) -> bool:
        """Climb towards every case from the centre and from random places."""
        count, settings = len(self.goal.cases), self.settings.crown
        starts = self.dense.rows_at_once(count * settings.climbs.restarts, settings.multiplications_at_once)
        cases = torch.arange(count).repeat(max(1, starts // count))
        single = ball.to(torch.float32)
        directions = torch.randn(len(cases), self.dense.pixels, generator=self.generator)
        shares = torch.rand(len(cases), 1, generator=self.generator)
        shares[:count] = 0.0
        images = single.centre + shares * single.furthest(directions)
        return self.climb(ball, images, cases, settings.climbs.steps, then_polish=then_polish)

    def climb(
        self, ball: TorchBall, images: Tensor, cases: Tensor, steps: int, *, then_polish: bool = True
    ) -> bool:
        """Climb from the given images, each towards its own case, within the ball."""
        climbs, rows = self.settings.crown.climbs, self.cases.single().taken(cases)
        found, slack = climbed(self.single, ball.to(torch.float32), rows, images, steps, self.until, climbs)
        best = slack.argmax()
        worth_a_check = bool(slack[best] > -climbs.worth_a_check)
        return worth_a_check and self.accept(self.inside(found[best]), then_polish=then_polish)

    def inside(self, image: Tensor) -> Vector:
        """An image of float32 numbers, moved into the box and the ball."""
        moved = self.domain.clip(image.double().numpy())
        radius, centre = self.domain.radius, self.domain.centre
        if self.domain.norm.name == "linf":
            return np.asarray(np.clip(moved, centre - radius, centre + radius))
        distance = self.domain.distance(moved)
        if self.domain.norm.name == "l0" or distance <= radius:
            return np.asarray(moved)
        # A little further in, so that rounding does not leave it outside.
        return np.asarray(centre + radius / distance * (1 - 1e-9) * (moved - centre))
