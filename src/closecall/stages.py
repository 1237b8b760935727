"""A stopwatch for the stages of a search, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Counts seconds by stage against a limit."""

    def __init__(self, limit: float) -> None:
        self.began = time.perf_counter()
        self.limit = limit
        self.by_stage: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.seconds)

    @property
    def deadline(self) -> float:
        """The perf_counter time at which the limit is reached."""
        return self.began + self.limit

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.by_stage[name] = self.by_stage.get(name, 0.0) + time.perf_counter() - began
