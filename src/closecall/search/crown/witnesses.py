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

    def accept(self, image: Vector) -> bool:
        """Offer an image; from a new incumbent on, go through linear regions to nearer ones."""
        if not self.incumbent.offer(image):
            return False
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

    def close_in(self, ball: TorchBall) -> None:
        """Look everywhere for an image that is worth having beside the incumbent, until that is in vain."""
        misses = 0
        while self.polishing and misses < self.settings.crown.climbs.failed_rounds:
            if out_of_time(self.until):
                return
            nearer = ball.within(min(float(ball.radius), self.incumbent.wanted))
            misses = 0 if self.everywhere(nearer) else misses + 1
        if not self.polishing:
            self.shrink(ball)

    def shrink(self, ball: TorchBall) -> None:
        """Where linear regions have too many borders for LPs: climb nearer to the original, step by step."""
        step = self.settings.crown.climbs.first_shrinking
        while step > self.incumbent.gap and not out_of_time(self.until):
            if not self.everywhere(ball.within((1.0 - step) * self.incumbent.distance)):
                step /= 2

    def everywhere(self, ball: TorchBall) -> bool:
        """Climb towards every case from the centre and from random places."""
        count, settings = len(self.goal.cases), self.settings.crown
        starts = self.dense.rows_at_once(count * settings.climbs.restarts, settings.multiplications_at_once)
        cases = torch.arange(count).repeat(max(1, starts // count))
        single = ball.to(torch.float32)
        directions = torch.randn(len(cases), self.dense.pixels, generator=self.generator)
        shares = torch.rand(len(cases), 1, generator=self.generator)
        shares[:count] = 0.0
        images = single.centre + shares * single.furthest(directions)
        return self.climb(ball, images, cases, settings.climbs.steps)

    def climb(self, ball: TorchBall, images: Tensor, cases: Tensor, steps: int) -> bool:
        """Climb from the given images, each towards its own case, within the ball."""
        climbs, rows = self.settings.crown.climbs, self.cases.single().taken(cases)
        found, slack = climbed(self.single, ball.to(torch.float32), rows, images, steps, self.until, climbs)
        best = slack.argmax()
        return bool(slack[best] > -climbs.worth_a_check) and self.accept(self.inside(found[best]))

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
