"""The nearest image of levels, beside the nearest of all images, which engines look for.

What engines prove of all images holds for those of levels. Every nearer image that they find is rounded. So
the search is the same, but for its end: distances of images of levels take few values (`question.levels`),
and nothing needs to be proven beyond the last one below the incumbent's.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np

from closecall.arrays import Vector
from closecall.question.levels import on_levels
from closecall.search.incumbent import Incumbent, is_closed
from closecall.search.rounding import Rounder
from closecall.settings import Rounding

HARDLY = 1e-6  # of a distance: what cannot be proven where an image lies that near


class LevelIncumbent(Incumbent):
    """Two images, one of levels, and what is proven of images of levels.

    Once levels are demanded, as of a solver that is given them as integers, the only image is that of levels.
    """

    def __init__(self, *args: Any, rounding: Rounding, on_witness: Any = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.on_rounded = on_witness
        self.values = self.domain.distances
        self.rounder = Rounder(self.network, self.domain, self.goal, rounding)
        self.best: Vector | None = None
        self.best_distance = math.inf
        self.demanding = False
        self._waiting: Vector | None = None
        self._rounding = threading.Lock()
        nothing = self.values.least > self.domain.radius
        self.proven = [math.inf if nothing else self.values.least] * len(self.proven)

    @property
    def result(self) -> tuple[Vector | None, float]:
        self.round_waiting()
        if self.best is None and self.lower >= self.domain.radius:
            return None, math.inf
        return self.best, self.values.at_least(self.lower)

    @property
    def enough(self) -> float:
        """What must be proven so that no image of levels is nearer than the best by more than the gap."""
        self.round_waiting()
        if math.isinf(self.best_distance):
            return self.domain.radius
        return self.values.enough_for(self.best_distance, self.gap)

    @property
    def wanted(self) -> float:
        enough = self.enough
        within_reach = self.demanding or enough < self.distance * (1.0 - HARDLY)
        return enough if within_reach else super().wanted

    @property
    def answered(self) -> bool:
        self.round_waiting()
        return not self.nearest and self.best is not None

    @property
    def closed(self) -> bool:
        """Whether the question about images of levels is settled."""
        if self.best is None:
            return self.lower >= self.domain.radius
        return self.answered or is_closed(self.values.at_least(self.lower), self.best_distance, self.gap)

    @property
    def settled(self) -> bool:
        """Whether engines that know of no levels can do no more."""
        self.round_waiting()
        return self.closed or (not self.demanding and self.witness is not None and super().settled)

    def demand_levels(self) -> None:
        self.round_waiting()
        self.demanding = True
        self.witness, self.distance = self.best, self.best_distance

    def offer(self, image: Vector | None) -> bool:
        if not self.demanding:
            taken = super().offer(image)
            if taken:
                self._waiting = self.witness
            return taken
        if image is None:
            return False
        image = np.asarray(image, dtype=np.float64).ravel()
        return self.round(self.domain.clip(image))

    def round_waiting(self) -> None:
        """Round the last image, once that is asked for: most are followed by a nearer one at once."""
        image, self._waiting = self._waiting, None
        if image is not None:
            self.round(image)

    def round(self, image: Vector) -> bool:
        """Keep what an image is rounded to, if that is nearer; threads that search one tree take turns."""
        with self._rounding:
            return self._round(image)

    def _round(self, image: Vector) -> bool:
        found = self.rounder.rounded(image, self.best_distance, self.clock.deadline)
        if found is None or not on_levels(found, self.rounder.levels).all():
            return False
        self.best, self.best_distance = found, self.domain.distance(found)
        if self.demanding:
            self.witness, self.distance = self.best, self.best_distance
        if self.on_rounded is not None:
            self.on_rounded(found, self.best_distance)
        self.tell()
        return True

    def offer_beyond(self, image: Vector) -> bool:
        return self.offer(image) if self.demanding else super().offer_beyond(image)

    def show(self, lower: float, upper: float, nodes: int) -> None:
        """Show what is known of images of levels."""
        self.clock.check()
        self._told = time.perf_counter()
        if self.on_progress is not None:
            upper = min(upper, self.best_distance) if self.demanding else self.best_distance
            lower = min(self.values.at_least(max(lower, self.lower)), upper)
            self.on_progress(lower if math.isfinite(lower) else 0.0, upper, nodes, self.clock.seconds)
