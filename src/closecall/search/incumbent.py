"""The nearest image so far and, for each case, the distance below which no image reaches it.

All engines write here and nowhere else, so that whatever cuts a search off (time, memory, Ctrl-C) finds what
was known. Only what is proven for every image nearer than the incumbent may be claimed by `prove`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from closecall.arrays import Vector
from closecall.clock import Clock
from closecall.milp import OnProgress
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal

OnWitness = Callable[[Vector, float], object]  # an image in float64, not yet replayed, and its distance

SECONDS_BETWEEN_REPORTS = 0.2
# The points of linear programs lie on the margin, and rounding may put them just short of it: shares of the
# way from the original that are tried in turn.
BEYOND = np.array([1.0, 1.0 + 1e-7, 1.0 + 1e-6, 1.0 + 1e-5])


def is_closed(lower: float, distance: float, gap: float, rounding: float = 1e-9) -> bool:
    """Whether what is proven comes within a relative gap of what was found."""
    return lower >= (1.0 - gap) * distance - rounding


@dataclass
class Statistics:
    """What the search has cost so far."""

    nodes: int = 0


class Incumbent:
    """One image and one proven interval per case."""

    def __init__(
        self,
        network: Network,
        domain: Domain,
        goal: Goal,
        clock: Clock,
        *,
        gap: float,
        nearest: bool,
        on_progress: OnProgress | None = None,
        on_witness: OnWitness | None = None,
    ) -> None:
        self.network, self.clock = network, clock
        self.on_progress, self.on_witness = on_progress, on_witness
        self.domain, self.goal = domain, goal
        self.gap, self.nearest = gap, nearest
        self.witness: Vector | None = None
        self.distance = math.inf
        self.proven = [0.0] * len(self.goal.cases)
        self.statistics = Statistics()
        self._told = 0.0

    @property
    def lower(self) -> float:
        """The distance below which no image reaches the goal; infinity: none in the domain does."""
        return min(self.proven)

    @property
    def wanted(self) -> float:
        """Only images nearer than this are of interest: by more than the gap nearer than the incumbent."""
        if math.isinf(self.distance):
            return self.domain.radius
        return self.distance * (1.0 - self.gap)

    def is_nearer_than(self, distance: float) -> bool:
        """By more than rounding and tolerances explain: at least half of the gap."""
        return self.distance < distance * (1.0 - self.gap / 2)

    @property
    def result(self) -> tuple[Vector | None, float]:
        """The image to be shown, and the distance below which none is."""
        return self.witness, self.lower

    def demand_levels(self) -> None:
        """From now on images must have the levels of the domain, if it has any (see `levels`)."""

    @property
    def answered(self) -> bool:
        """Whether any witness will do, and there is one."""
        return not self.nearest and self.witness is not None

    @property
    def settled(self) -> bool:
        """Whether the question is answered: by a witness, by none at all, or by a closed gap."""
        if self.witness is None:
            return self.lower >= self.domain.radius
        return self.answered or is_closed(self.lower, self.distance, self.gap)

    def offer(self, image: Vector | None) -> bool:
        """Take an image if it reaches the goal and is nearer than the last one."""
        if image is None:
            return False
        image = self.domain.pulled_inside(self.domain.clip(np.asarray(image, dtype=np.float64).ravel()))
        distance = self.domain.distance(image)
        if distance >= self.distance or distance > self.domain.radius or not self.domain.affords(image):
            return False
        if not self.goal.reached(self.network.forward(image[None]))[0]:
            return False
        self.witness, self.distance = image, distance
        if self.on_witness is not None:
            self.on_witness(image, distance)
        self.tell()
        return True

    def offer_beyond(self, image: Vector) -> bool:
        """Take a solver's image, or one a hair further from the original."""
        trials = self.domain.centre + BEYOND[:, None] * (image - self.domain.centre)
        reached = np.flatnonzero(self.goal.reached(self.network.forward(self.domain.clip(trials))))
        return bool(len(reached)) and self.offer(trials[reached[0]])

    def prove(self, lower: float, case: int | None = None) -> None:
        """Keep a distance below which no image reaches a case, or any of them."""
        before = self.lower
        for index in range(len(self.proven)) if case is None else (case,):
            self.proven[index] = max(self.proven[index], lower)
        if self.lower > before:
            self.tell()

    def proves(self, radius: float) -> float:
        """What it proves that nothing wanted lies within a radius; of the whole domain, that nothing does."""
        nothing = math.isinf(self.distance) and radius >= self.domain.radius
        return math.inf if nothing else min(radius, self.wanted)

    def proves_count(self, count: float) -> float:
        """What it proves in L0 that fewer pixels than these will not do.

        So many may well do: where the domain ends there, it is not yet proven that none of its images does.
        """
        radius = self.domain.radius
        if math.isinf(self.distance) and (count > radius or math.isinf(count)):
            return math.inf
        return count if count != radius else float(np.nextafter(count, 0.0))

    def tell(self) -> None:
        """Show the interval as it is proven."""
        self.show(self.lower, self.distance, self.statistics.nodes)

    def tell_now_and_then(self) -> None:
        if time.perf_counter() - self._told > SECONDS_BETWEEN_REPORTS:
            self.tell()

    def show(self, lower: float, upper: float, nodes: int) -> None:
        """Show an interval that a solver claims, cut to what is known; nothing of it is kept."""
        self.clock.check()
        self._told = time.perf_counter()
        if self.on_progress is not None:
            upper = min(upper, self.distance)
            lower = min(max(lower, self.lower), upper)
            self.on_progress(lower if math.isfinite(lower) else 0.0, upper, nodes, self.clock.seconds)
