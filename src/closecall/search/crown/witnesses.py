"""The hunt for witnesses: climbs by gradient, LPs within linear regions, checks in float64."""

from __future__ import annotations

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
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks
from closecall.search.crown.gradient import ascend, forward
from closecall.search.crown.region import nearest_in_region

RESTARTS = 16
STEPS = 40
MISSES_ALLOWED = 3
NEARLY = 1e-4  # a climb in float32 that ends this close below the goal is worth a check in float64
WORTH_A_STEP = 1 - 1e-4  # regions are left for the next one while the distance falls below this share
BEYOND = (1.0, 1.0 + 1e-7, 1.0 + 1e-6, 1.0 + 1e-5)


class Hunt:
    """The nearest witness so far; `polish` also looks for the nearest one in the same linear region."""

    def __init__(
        self,
        network: Network,
        blocks: Blocks,
        question: tuple[Domain, Goal],
        *,
        polish: bool,
        until: float,
        on_witness: Callable[[Vector], object] | None = None,
    ) -> None:
        self.network, self.blocks = network, blocks
        self.domain, self.goal = question
        self.polish, self.until, self.on_witness = polish, until, on_witness
        self.flat = blocks.to(torch.float32)
        self.matrix, self.threshold = goal_tensors(self.goal)
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
        scores, active = forward(self.blocks, torch.from_numpy(image)[None])
        slacks = [float(case.slack(scores.numpy())[0]) for case in self.goal.cases]
        case = self.goal.cases[int(np.argmax(slacks))]
        kept = torch.ones(self.blocks.units, dtype=torch.bool)
        domain = self.domain.within(self.distance)
        _, nearest = nearest_in_region(self.blocks, domain, case, (active[0], kept), self.until)
        accepted = nearest is not None and self.accept_beyond(nearest)
        return accepted and self.distance < WORTH_A_STEP * before

    def accept_beyond(self, image: Vector) -> bool:
        """Accept a solver's image, which its tolerance may have left just short of the goal."""
        centre = self.domain.centre
        return any(self.accept(centre + share * (image - centre)) for share in BEYOND)

    def close_in(self, ball: Ball, share: float) -> None:
        """Look everywhere for a witness within a share of the distance of the last, until that is in vain."""
        misses = 0
        while misses < MISSES_ALLOWED and not out_of_time(self.until):
            misses = (
                0
                if self.everywhere(ball.within(min(float(ball.radius), share * self.distance)))
                else misses + 1
            )

    def everywhere(self, ball: Ball) -> bool:
        """Climb towards every case from the centre and from random places."""
        count = len(self.goal.cases)
        restarts = self.blocks.rows_at_once(count * RESTARTS) // count
        cases = torch.arange(count).repeat(max(1, restarts))
        flat = ball.to(torch.float32)
        directions = torch.randn(len(cases), self.blocks.pixels, generator=self.generator)
        shares = torch.rand(len(cases), 1, generator=self.generator)
        shares[:count] = 0.0
        return self.climb(ball, flat.centre + shares * flat.furthest(directions), cases, STEPS)

    def climb(self, ball: Ball, images: Tensor, cases: Tensor, steps: int) -> bool:
        """Climb from the given images, each towards its own case, within the ball."""
        rows = self.matrix.float()[cases], self.threshold.float()[cases]
        found, slack = ascend(self.flat, ball.to(torch.float32), rows, images, steps, self.until)
        best = slack.argmax()
        return bool(slack[best] > -NEARLY) and self.accept(self.inside(found[best]))

    def inside(self, image: Tensor) -> Vector:
        """An image of float32 numbers, moved into the box and the ball."""
        moved = self.domain.clip(image.double().numpy())
        radius, centre = self.domain.radius, self.domain.centre
        if self.domain.norm.name == "linf":
            return np.asarray(np.clip(moved, centre - radius, centre + radius))
        distance = self.domain.distance(moved)
        if self.domain.norm.name == "l0" or distance <= radius:
            return np.asarray(moved)
        return np.asarray(centre + radius / distance * (1 - 1e-9) * (moved - centre))


def goal_tensors(goal: Goal) -> tuple[Tensor, Tensor]:
    """The rows (cases, rows, classes) and thresholds of all cases, short ones filled with their first row."""
    most = max(len(case.threshold) for case in goal.cases)
    places = np.arange(most)
    taken = [np.where(places < len(case.threshold), places, 0) for case in goal.cases]
    matrix = np.stack([case.matrix[rows] for case, rows in zip(goal.cases, taken, strict=True)])
    threshold = np.stack([case.threshold[rows] for case, rows in zip(goal.cases, taken, strict=True)])
    return torch.from_numpy(matrix), torch.from_numpy(threshold)
