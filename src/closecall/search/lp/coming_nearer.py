"""A nearer incumbent before trees are grown: steps through linear regions, climbs from many places."""

from __future__ import annotations

from contextlib import suppress

from closecall.search.problem import Problem


def climbs_pay(problem: Problem) -> bool:
    """Whether a network is so large that its trees are dearer than climbs."""
    return problem.simplified.units > problem.settings.lp.units_for_climbs


def step_through_regions(problem: Problem) -> None:
    """From the incumbent to the nearest image of its linear region, and on: a tenth of a second."""
    come_nearer(problem, climbing=False)


def come_nearer(problem: Problem, *, climbing: bool = True) -> None:
    """Climb from many places and step through linear regions, which takes a second or more."""
    if problem.incumbent.witness is None:
        return
    problem.clock.load("closecall.search.crown")
    from closecall.search import crown

    with problem.clock.stage("attack"), suppress(crown.TooLargeError):
        until = problem.clock.share(problem.settings.lp.share_for_climbs)
        (crown.approach if climbing else crown.polish)(problem, until)
