"""Branch and bound over batched linear bounds (`crown`), and what is done where those would not fit."""

from __future__ import annotations

import time

from closecall.attacks.gradient import find_witness
from closecall.bounds import all_excluded, certified_radius, dense_entries, dense_gigabytes, linear_bounds
from closecall.search.first_bound import first_bound
from closecall.search.problem import Problem


def search_by_batches(problem: Problem, seconds: float) -> None:
    """Refute the domain if there is no witness yet; from a witness, shrink to the nearest.

    All of it within so many seconds from the beginning of the whole search, but in half as many from now on
    where most of them are over.
    """
    clock = problem.clock
    clock.load("closecall.search.crown")
    from closecall.search.crown import TooLargeError, search

    now = time.perf_counter()
    until = min(max(clock.began + seconds, now + seconds / 2), clock.deadline)
    first_bound(problem, now + problem.settings.auto.share_for_first_bound * (until - now))
    sizes, network = problem.settings.sizes, problem.within(problem.incumbent.distance).network
    too_large = dense_gigabytes(network, sizes) > sizes.most_gigabytes
    seconds_to_lay_out = sizes.seconds_to_lay_out_an_entry * dense_entries(network)
    if too_large or until - time.perf_counter() < seconds_to_lay_out:
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
    with clock.stage("search"):
        if incumbent.witness is None:
            refute_coarsely(problem, clock.share(problem.settings.auto.share_to_refute_coarsely))
        if incumbent.witness is not None and problem.nearest:
            certified_radius(
                problem.simplified,
                domain.within(incumbent.distance),
                problem.goal,
                clock.deadline,
                proven=incumbent.lower,
                trials=problem.settings.auto.coarse_trials,
                on_radius=incumbent.prove,
                settings=problem.settings.linear_bounds,
            )


def refute_coarsely(problem: Problem, until: float) -> None:
    """Prove by linear bounds that no image of the domain reaches the goal; if not, look for one that does."""
    network, domain, goal, incumbent = problem.simplified, problem.domain, problem.goal, problem.incumbent
    now = time.perf_counter()
    bounds = linear_bounds(network, domain, now + (until - now) / 2, problem.settings.linear_bounds)
    if all_excluded(network, domain, goal, bounds):
        incumbent.prove(incumbent.proves(domain.radius))
        return
    attack = problem.settings.attack
    find_witness(network, domain, goal, until=until, on_witness=incumbent.offer, settings=attack)
