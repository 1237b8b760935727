"""Branch and bound over batched linear bounds (`crown`), and what is done where those would not fit."""

from __future__ import annotations

import math
import time

from closecall.bounds import MOST_GIGABYTES, certified_radius, dense_entries, dense_gigabytes
from closecall.search.coarse import SECONDS_TO_LAY_OUT, refute_coarsely
from closecall.search.first_bound import first_bound
from closecall.search.problem import Problem


def search_by_batches(problem: Problem, seconds: float) -> None:
    """Refute the domain if there is no witness yet; from a witness, shrink to the nearest.

    All of it within so many seconds from the beginning of the whole search, but in half as many from now on
    where most of them are over.
    """
    from closecall.search.crown import TooLargeError, search  # waits for torch

    clock, network = problem.clock, problem.simplified
    now = time.perf_counter()
    until = min(max(clock.began + seconds, now + seconds / 2), clock.deadline)
    if problem.nearest or math.isfinite(problem.domain.radius):
        first_bound(problem, now + problem.settings.auto.share_for_first_bound * (until - now))
    too_large = dense_gigabytes(network) > MOST_GIGABYTES
    if too_large or until - time.perf_counter() < SECONDS_TO_LAY_OUT * dense_entries(network):
        search_coarsely(problem)
        return
    try:
        with clock.stage("search"):
            search(problem, until)
    except TooLargeError:
        search_coarsely(problem)


def search_coarsely(problem: Problem) -> None:
    """An interval without batched bounds: linear bounds over larger and larger radii."""
    clock, incumbent, domain = problem.clock, problem.incumbent, problem.domain
    network = problem.simplified
    with clock.stage("search"):
        if incumbent.witness is None:
            empty, witness = refute_coarsely(network, domain, problem.goal, clock.share(0.5))
            incumbent.offer(witness)
            if empty:
                incumbent.prove(incumbent.proves(domain.radius))
        if incumbent.witness is not None and problem.nearest:
            certified_radius(
                network,
                domain.within(incumbent.distance),
                problem.goal,
                clock.deadline,
                proven=incumbent.lower,
                trials=problem.settings.auto.coarse_trials,
                on_radius=incumbent.prove,
            )
