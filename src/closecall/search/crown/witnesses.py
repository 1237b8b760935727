"""The search for witnesses: climbs by gradient, LPs within linear regions, checks in float64."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.case_rows import CaseRows
from closecall.search.crown.climbing import climbed, forward
from closecall.search.crown.dense_network import DenseNetwork
from closecall.search.crown.region import UnitPhases, nearest_in_region
from closecall.settings import DEFAULT, Settings

log = logging.getLogger(__name__)


class WitnessSearch:
    """The nearest witness so far; `polish` also looks for the nearest one in the same linear region."""

    def __init__(
        self,
        network: Network,
        dense: DenseNetwork,
        domain: Domain,
        goal: Goal,
        *,
        polish: bool,
        until: float,
        on_witness: Callable[[Vector], object] | None = None,
        settings: Settings = DEFAULT,
    ) -> None:
        self.network, self.dense = network, dense
        self.domain, self.goal, self.settings = domain, goal, settings
        self.polish, self.until, self.on_witness = polish, until, on_witness
        self.single = dense.to(torch.float32)
        self.cases = CaseRows.of(goal)
        self.generator = torch.Generator().manual_seed(0)
        self.witness: Vector | None = None
        self.distance = math.inf
        self.polishing = False

    def accept(self, image: Vector) -> bool:
        """Take an image if it is a witness of the domain and nearer than the last one."""
        image = self.domain.clip(np.asarray(image, dtype=np.float64).ravel())
        distance = self.domain.distance(image)
        if distance > self.domain.radius or distance >= self.distance:
            return False
        if not self.goal.slack(self.network.forward(image[None]))[0] >= 0:
            return False
        self.witness, self.distance = image, distance
        log.debug("witness at distance %g", distance)
        if self.on_witness is not None:
            self.on_witness(image)
        if self.polish and not self.polishing:
            self.polishing = True
            while not out_of_time(self.until) and self.stepped_within_region(self.witness):
                pass
            self.polishing = False
        return True

    def stepped_within_region(self, image: Vector) -> bool:
        """Go to the nearest witness of the same linear region; False if that is hardly nearer."""
        before = self.distance
        scores, active = forward(self.dense, torch.from_numpy(image)[None])
        slacks = [float(case.slack(scores.numpy())[0]) for case in self.goal.cases]
        case = self.goal.cases[int(np.argmax(slacks))]
        phases = UnitPhases(active[0], kept=torch.ones(self.dense.units, dtype=torch.bool))
        domain = self.domain.within(self.distance)
        _, nearest = nearest_in_region(self.dense, domain, case, phases, self.until, self.settings)
        accepted = nearest is not None and self.accept_beyond(nearest)
        return accepted and self.distance < self.settings.crown.climbs.worth_a_region * before

    def accept_beyond(self, image: Vector) -> bool:
        """Accept a solver's image, which its tolerance may have left just short of the goal."""
        centre = self.domain.centre
        shares = self.settings.crown.climbs.beyond
        return any(self.accept(centre + share * (image - centre)) for share in shares)

    def close_in(self, ball: TorchBall, share: float) -> None:
        """Look everywhere for a witness within a share of the distance of the last, until that is in vain."""
        misses = 0
        while misses < self.settings.crown.climbs.failed_rounds and not out_of_time(self.until):
            nearer = ball.within(min(float(ball.radius), share * self.distance))
            misses = 0 if self.everywhere(nearer) else misses + 1

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
