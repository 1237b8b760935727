"""Larger and larger radii, up to the incumbent: where bounds over the whole distance are too loose.

All bounds are tighter within a smaller radius, and a proof for it stays true. A radius that takes too long
gives way to one nearer to what is proven.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Literal

from closecall.clock import out_of_time
from closecall.search.problem import Problem
from closecall.settings import Radii

log = logging.getLogger(__name__)

# A radius was proven; it took too long; or no more time would help.
Attempt = Literal["proven", "given up", "stuck"]


class Schedule:
    """Which radius is to be proven next."""

    def __init__(self, settings: Radii) -> None:
        self.settings = settings
        self.boldness = 1.0

    def next(self, proven: float, needed: float) -> float:
        """A radius between what is proven and what is needed; the latter when it is nearly reached."""
        settings = self.settings
        if math.isinf(needed):
            return needed
        rest, least = settings.of_the_rest * (needed - proven), settings.least * needed
        step = max(rest, settings.of_the_proven * proven, least) if proven else settings.first * needed
        radius = proven + self.boldness * step
        return radius if radius < settings.nearly_there * needed else needed

    def falter(self) -> None:
        """Be half as bold from now on."""
        self.boldness = max(self.boldness / 2, self.settings.least_boldness)


def prove_by_radii(
    problem: Problem,
    settings: Radii,
    prove: Callable[[float, float], Attempt],
    *,
    lower: Callable[[], float] | None = None,
    until: float | None = None,
) -> None:
    """Have radii proven, each until its perf_counter time, for as long as that gets anywhere.

    `lower` says what is proven already, by default for all cases; `until`, by default the end of the limit,
    is a perf_counter time.
    """
    incumbent, schedule = problem.incumbent, Schedule(settings)
    end = problem.clock.deadline if until is None else until
    while not incumbent.settled and not out_of_time(end):
        problem.clock.check()
        radius = schedule.next(incumbent.lower if lower is None else lower(), incumbent.wanted)
        whole_way = radius >= incumbent.wanted
        share = settings.share_for_the_whole_way if whole_way else settings.share_of_time
        now = time.perf_counter()
        seconds = (share if math.isfinite(radius) else 1.0) * (end - now)
        if math.isfinite(radius):
            seconds = min(
                seconds, max(settings.least_seconds, settings.share_of_past * problem.clock.seconds)
            )
        attempt = prove(radius, now + seconds)
        log.debug("radius %.6g of %.6g: %s", radius, incumbent.wanted, attempt)
        if attempt == "stuck":
            return
        if attempt == "given up":
            schedule.falter()
