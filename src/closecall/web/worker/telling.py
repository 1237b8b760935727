"""What is told of a search while it runs: its interval and the best image so far, a few times a second."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from closecall.arrays import Vector
from closecall.clock import Clock
from closecall.question.images import channels_first
from closecall.web.messages import Source, Tell
from closecall.web.worker.opened import scores_of
from closecall.web.worker.predicting import shares

SECONDS_BETWEEN = 0.1


class Telling:
    """Passes on every better bound and the newest image, but not faster than a page can show them."""

    def __init__(self, tell: Tell, source: Source, shape: tuple[int, ...], clock: Clock) -> None:
        self.tell, self.source, self.shape, self.clock = tell, source, shape, clock
        self.lower, self.upper = -math.inf, math.inf
        self.held: Callable[[], dict[str, Any]] | None = None
        self.last_interval = self.last_image = 0.0

    def interval(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        """Take a report: every bound holds, so one that is looser than an earlier one says nothing new."""
        better = lower > self.lower or upper < self.upper
        self.upper = min(self.upper, upper)
        self.lower = min(max(self.lower, lower), self.upper)
        now = time.perf_counter()
        if better or now - self.last_interval > SECONDS_BETWEEN:
            self.last_interval = now
            self.tell(
                {
                    "kind": "progress",
                    "lower": finite(self.lower),
                    "upper": finite(self.upper),
                    "nodes": nodes,
                    "seconds": seconds,
                    "stage": self.clock.at_work,
                }
            )
        if self.held is not None and now - self.last_image > SECONDS_BETWEEN:
            self.show_image()

    def image(self, point: Vector, distance: float) -> None:
        """Take an image that is nearer than the last; it was not replayed yet."""
        image = np.asarray(point, dtype=np.float32).reshape(self.shape)

        def seen() -> dict[str, Any]:
            label, scores = scores_of(self.source, image)
            picture = channels_first(image)
            return {
                "kind": "best",
                "distance": distance,
                "picture": picture,
                "label": label,
                "shares": shares(self.source, scores),
            }

        self.held = seen
        if time.perf_counter() - self.last_image > SECONDS_BETWEEN:
            self.show_image()

    def show_image(self) -> None:
        if self.held is not None:
            self.last_image, told = time.perf_counter(), self.held
            self.held = None
            self.tell(told())


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
