"""Searches that are made of others: each part has a share of the time and an incumbent of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from closecall.clock import Clock
from closecall.search.problem import Finding, Problem

Searcher = Callable[[Problem], Finding]


class PartOfClock(Clock):
    """A share of the time that another clock has left; what is at work is seen on both."""

    def __init__(self, whole: Clock, share: float) -> None:
        self.whole = whole
        super().__init__(share * whole.left)
        self.by_stage = whole.by_stage

    @property
    def at_work(self) -> str:
        return self.whole.at_work

    @at_work.setter
    def at_work(self, stage: str) -> None:
        if stage:
            self.whole.at_work = stage

    def load(self, module: str) -> None:
        """What is slow to load takes nothing of the whole's limit either."""
        before = self.whole.began
        self.whole.load(module)
        self.began += self.whole.began - before


def part_of(problem: Problem, share: float, **changed: Any) -> Problem:
    """A problem like another, but for what is changed, with a share of the time that is left.

    Notes and reasons are written to those of the whole; its interval is the whole's own to tell.
    """
    quiet: dict[str, Any] = {"on_progress": None, "on_witness": None, "_bounded": [], "_within": []}
    return replace(problem, clock=PartOfClock(problem.clock, share), **{**quiet, **changed})
