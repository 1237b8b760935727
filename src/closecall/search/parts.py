"""Searches that are made of others: each part has a share of the time and an incumbent of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from closecall.clock import Clock
from closecall.search.problem import Problem


def part_of(problem: Problem, share: float, **changed: Any) -> Problem:
    """A problem like another, but for what is changed, with a share of the time that is left.

    Stages, notes and reasons are written to those of the whole.
    """
    clock = Clock(share * problem.clock.left)
    clock.by_stage = problem.clock.by_stage
    return replace(problem, clock=clock, _bounded=[], _within=[], **changed)
