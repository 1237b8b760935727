"""Radii rise to what is needed, by smaller steps after a failure."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from closecall.clock import Clock
from closecall.network import Network, Node
from closecall.network.layers import Affine
from closecall.question.question import Question
from closecall.search.problem import Problem
from closecall.search.radii import Attempt, Schedule, prove_by_radii
from closecall.settings import DEFAULT

NETWORK = Network((1, 1, 1), (Node(Affine((np.array([[0.0], [1.0]]),), np.array([0.0, -0.5])), (0,)),))
SCHEDULES = {"lp": DEFAULT.lp_radii, "boxes": DEFAULT.box_radii}


@pytest.mark.parametrize("name", SCHEDULES)
def test_radii_rise_to_the_whole_distance_in_a_few_steps(name: str) -> None:
    schedule, proven, steps = Schedule(SCHEDULES[name]), 0.0, 0
    while proven < 2.0:
        radius = schedule.next(proven, 2.0)
        assert proven < radius <= 2.0
        proven, steps = radius, steps + 1
    assert 2 <= steps <= 8


def test_a_failure_halves_the_step_but_never_to_nothing() -> None:
    schedule = Schedule(DEFAULT.lp_radii)
    bold = schedule.next(0.5, 2.0) - 0.5
    schedule.falter()
    assert schedule.next(0.5, 2.0) - 0.5 == pytest.approx(bold / 2)
    for _ in range(100):
        schedule.falter()
    assert schedule.next(0.5, 2.0) > 0.5


def test_without_a_distance_there_is_only_the_whole_domain() -> None:
    assert Schedule(DEFAULT.lp_radii).next(0.0, math.inf) == math.inf


def problem_with_witness() -> Problem:
    query = Question(np.array([0.25]), 0, 2, norm="linf", margin=0.1)
    problem = Problem(NETWORK, query.domain(), query.goal(), Clock(2.0), gap=1e-3)
    problem.incumbent.offer(np.array([0.6]))
    return problem


def test_proofs_are_asked_for_until_the_gap_is_closed() -> None:
    problem = problem_with_witness()
    asked: list[float] = []

    def prove(radius: float, until: float) -> Attempt:
        assert until > time.perf_counter()
        asked.append(radius)
        if len(asked) == 2:
            return "given up"
        problem.incumbent.prove(radius)
        return "proven"

    prove_by_radii(problem, DEFAULT.lp_radii, prove)
    assert problem.incumbent.settled
    assert asked[2] < asked[1]
    assert asked[-1] == problem.incumbent.wanted


def test_what_is_stuck_is_left() -> None:
    problem = problem_with_witness()
    asked: list[float] = []

    def prove(radius: float, until: float) -> Attempt:
        asked.append(radius)
        return "stuck"

    prove_by_radii(problem, DEFAULT.lp_radii, prove)
    assert len(asked) == 1
    assert not problem.incumbent.settled
