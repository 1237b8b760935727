"""Larger and larger radii about capsule networks, each proven by affine forms over all of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from closecall.attacks.gradient import find_witness, widest
from closecall.bounds.capsules import excluded_capsule_cases, least_memory, routed_sums
from closecall.clock import OutOfTimeError
from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.search.first_bound import fewest_pixels
from closecall.search.problem import Problem


def bound_capsules_at_once(problem: Problem) -> None:
    """Affine forms over the whole radius that is asked about: often enough."""
    if problem.any_will_do and math.isfinite(problem.domain.radius) and fits(problem):
        with problem.clock.stage("forms"):
            prove_within(problem, measured(problem.domain), problem.domain.radius)


def bound_capsules(problem: Problem) -> None:
    """The largest radius that affine forms prove, then a nearer image: what is proven comes first."""
    if fits(problem):
        prove_radii(problem)
    else:
        problem.notes.append("the network is too large for affine forms: nothing is proven")
    climb_longer(problem)


def prove_radii(problem: Problem) -> None:
    """Search for the largest radius that affine forms prove, until it is known to a few per cent."""
    settings, incumbent, domain = problem.settings.capsules, problem.incumbent, measured(problem.domain)
    with problem.clock.stage("forms"):
        beyond = widest(domain) if incumbent.witness is None else domain.distance(incumbent.witness)
        beyond = min(beyond, domain.radius)
        proven, smallest, took = 0.0, settings.smallest_share * beyond, 0.0
        radius = settings.first_share * beyond
        while radius > smallest and not incumbent.settled and problem.clock.left > took:
            began = problem.clock.seconds
            held = prove_within(problem, domain, radius)
            took = problem.clock.seconds - began
            if held:
                proven = radius
            else:
                beyond = radius
            if proven and beyond < settings.close_enough * proven:
                return
            if not proven:
                radius /= settings.shrinkage
            else:
                radius = min(settings.growth * proven, math.sqrt(proven * beyond))


def climb_longer(problem: Problem) -> None:
    """Look for a nearer image with more steps, in balls that shrink less: routing bends the way there."""
    incumbent, attack = problem.incumbent, problem.settings.attack
    if incumbent.witness is None or not problem.nearest or incumbent.settled:
        return
    capsules = problem.settings.capsules
    longer = replace(
        attack,
        steps=capsules.steps,
        next_radius_share=capsules.next_radius_share,
        failed_climbs=capsules.failed_climbs,
    )
    within = problem.domain.within(capsules.next_radius_share * incumbent.distance)
    with problem.clock.stage("attack"):
        find_witness(
            problem.network, within, problem.goal,
            until=problem.clock.deadline, on_witness=incumbent.offer, settings=longer,
        )  # fmt: skip


def fits(problem: Problem) -> bool:
    """Whether the columns of the widest layer fit into memory, even if every ReLU were decided."""
    return least_memory(problem.simplified, problem.domain) <= problem.settings.capsules.most_gigabytes


def measured(domain: Domain) -> Domain:
    """The domain with a norm in which forms can be bounded: pixels that change are counted by way of L1."""
    return replace(domain, norm=norm_named("l1"), radius=np.inf) if domain.norm.name == "l0" else domain


def prove_within(problem: Problem, domain: Domain, radius: float) -> bool:
    """Tell the incumbent of every case that is out of reach within a radius; whether all are."""
    settings, incumbent = problem.settings, problem.incumbent
    try:
        sums = routed_sums(
            problem.simplified, domain.within(radius), problem.clock.deadline,
            settings.linear_bounds, settings.capsules,
        )  # fmt: skip
    except MemoryError:
        return False  # a smaller radius leaves fewer ReLUs open, each of which takes a column
    except OutOfTimeError:
        return False
    excluded = excluded_capsule_cases(sums, problem.goal)
    for case in np.flatnonzero(excluded):
        incumbent.prove(told(problem, radius), int(case))
    incumbent.statistics.nodes += 1
    incumbent.tell_now_and_then()
    return bool(excluded.all())


def told(problem: Problem, radius: float) -> float:
    """The distance in the norm that was asked about, when nothing lies within the radius."""
    if problem.domain.norm.name != "l0":
        return problem.incumbent.proves(radius)
    fewest = fewest_pixels(problem.domain, radius)
    return fewest if fewest != problem.domain.radius else float(np.nextafter(fewest, 0.0))
