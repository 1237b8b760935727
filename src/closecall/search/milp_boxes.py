"""L∞ by a solver: for each case the box of the incumbent's distance, which holds a nearer image or none."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Literal

from closecall.encoding.encode import encode_box
from closecall.encoding.model_size import ModelSize
from closecall.encoding.precision import is_trustworthy
from closecall.milp import EnoughError
from closecall.search.lp.boxes import step_nearer
from closecall.search.lp.one_case import likely_first
from closecall.search.problem import Problem
from closecall.solvers import SOLVER_TOLERANCE, solve, without_claims


def solve_boxes(problem: Problem, until: float) -> None:
    """Settle each case against the same incumbent, until a perf_counter time."""
    incumbent = problem.incumbent
    for case in likely_first(problem):
        if incumbent.witness is not None:
            step_nearer(problem, case, problem.within(incumbent.distance), until)
        while incumbent.proven[case] < incumbent.wanted and not incumbent.answered:
            radius = incumbent.wanted
            ended = decide_box(problem, case, radius, until)
            if ended == "open":
                break
            if ended == "closed":
                incumbent.prove(incumbent.proves(radius), case)


def decide_box(
    problem: Problem, case: int, radius: float, until: float
) -> Literal["closed", "nearer", "open"]:
    """Ask the solver for an image within a radius that reaches a case."""
    clock, incumbent, sizes = problem.clock, problem.incumbent, problem.settings.sizes
    with clock.stage("bounds"):
        local = problem.within(radius)
    size = ModelSize.of(local.network, local.bounds, "tight", sizes)
    seconds = until - time.perf_counter() - size.seconds - size.seconds_to_stop
    if size.gigabytes > sizes.most_gigabytes or seconds <= 0:
        return "open"
    with clock.stage("encode"):
        encoding, cutoff = encode_box(local.network, local.domain, local.goal.cases[case], local.bounds)
    trusted = is_trustworthy(local.network, local.domain, [local.goal.cases[case]], local.bounds)
    out_of_reach = cutoff + SOLVER_TOLERANCE * max(1.0, abs(cutoff)) if trusted else math.inf

    def watch(lower: float, upper: float, nodes: int, seconds: float) -> None:  # noqa: ARG001
        problem.incumbent.tell_now_and_then()
        if lower > out_of_reach or upper < cutoff:
            raise EnoughError

    before = incumbent.distance
    with clock.stage("search"):
        limits = replace(problem.limits, seconds=seconds)
        solution = solve(encoding.milp, problem.solver, limits, on_progress=watch)
    incumbent.statistics.nodes += solution.nodes
    solution = solution if trusted else without_claims(solution)
    if solution.status == "infeasible" or solution.bound > out_of_reach:
        return "closed"
    # What the solver itself calls short of the case would only use up the tolerance that replays allow.
    if solution.values is not None and solution.objective <= cutoff:
        incumbent.offer_beyond(encoding.pixels.at(solution.values))
        step_nearer(problem, case, local, until)
    if solution.status == "interrupted":
        raise KeyboardInterrupt
    return "nearer" if incumbent.is_nearer_than(before) else "open"
