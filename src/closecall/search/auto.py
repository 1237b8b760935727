"""`auto`: which engines are asked, in which order, and why. `--verbose` prints the reason.

A plan is a row of the table: the first whose condition holds is followed, engine by engine, until one of them
settles the question. What is cheap comes first in every row.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse

from closecall.attacks.gradient import find_witness
from closecall.bounds import excluded_cases
from closecall.network.layers import Affine, Maximum
from closecall.search.batches import search_by_batches
from closecall.search.capsules import bound_capsules, bound_capsules_at_once
from closecall.search.cells import search_cells
from closecall.search.first_bound import first_bound
from closecall.search.lp.all_cases import settle_all_cases, settle_by_few_nodes
from closecall.search.lp.boxes import close_boxes
from closecall.search.lp.coming_nearer import come_nearer, step_through_regions
from closecall.search.lp.readings import count_readings
from closecall.search.milp import solve_basic, solve_for_costs, solve_improved, solve_rest
from closecall.search.problem import Problem

log = logging.getLogger(__name__)

Engine = Callable[[Problem], None]


@dataclass(frozen=True)
class Plan:
    """When a plan applies, the engines that it asks, and why; `then`: plans for what these leave open."""

    applies: Callable[[Problem], bool]
    engines: tuple[str, ...]
    why: str
    then: tuple[Plan, ...] = ()


def attack(problem: Problem) -> None:
    """Look for a witness by gradients, for the cases that bounds leave open."""
    clock, settings, incumbent = problem.clock, problem.settings, problem.incumbent
    left = np.array(incumbent.proven) < incumbent.wanted
    cases = tuple(case for case, is_open in zip(problem.goal.cases, left, strict=True) if is_open)
    with clock.stage("attack"):
        until = clock.share(settings.auto.share_for_attack)
        find_witness(
            problem.network,
            problem.domain,
            replace(problem.goal, cases=cases),
            nearest=problem.nearest,
            until=until,
            on_witness=problem.incumbent.offer,
            settings=settings.attack,
        )


def bound_at_once(problem: Problem) -> None:
    """Linear bounds over the domain as it is: most questions about a radius need nothing else."""
    if problem.nearest and math.isinf(problem.domain.radius):
        return
    incumbent, network, domain = problem.incumbent, problem.simplified, problem.domain
    with problem.clock.stage("bounds"):
        bounds = problem.bounds_within(domain.radius)
        for case in np.flatnonzero(excluded_cases(network, domain, problem.goal, bounds)):
            incumbent.prove(incumbent.proves(domain.radius), int(case))


def find_first_bound(problem: Problem) -> None:
    """A first lower bound beside a solver's."""
    first_bound(problem, problem.clock.share(problem.settings.milp.share_for_first_bound))


def search_by_short_batches(problem: Problem) -> None:
    """Batched bounds for as long as they settle what is easy; linear programs with cuts come next."""
    settings = problem.settings.auto
    seconds = min(settings.share_for_batches * problem.clock.limit, settings.seconds_for_batches)
    search_by_batches(problem, seconds)


def search_by_batches_for_half(problem: Problem) -> None:
    """Batched bounds, which see all cases at once, and time for linear programs after them."""
    search_by_batches(problem, problem.settings.auto.share_for_batches_of_a_box * problem.clock.limit)


def search_by_long_batches(problem: Problem) -> None:
    search_by_batches(problem, problem.clock.limit)


ENGINES: dict[str, Engine] = {
    "attack": attack,
    "linear bounds": bound_at_once,
    "affine forms, at once": bound_capsules_at_once,
    "affine forms": bound_capsules,
    "first bound": find_first_bound,
    "linear regions": step_through_regions,
    "climbs": come_nearer,
    "linear programs": settle_all_cases,
    "linear programs, shortly": settle_by_few_nodes,
    "boxes": close_boxes,
    "batched bounds, shortly": search_by_short_batches,
    "batched bounds, for half of the time": search_by_batches_for_half,
    "batched bounds": search_by_long_batches,
    "boxes of numbers": search_cells,
    "solver": solve_rest,
    "solver, for costs": solve_for_costs,
    "solver, basic": solve_basic,
    "solver, improved": solve_improved,
}


def has_costs(problem: Problem) -> bool:
    return problem.costs is not None


def is_small(problem: Problem) -> bool:
    """Few units, and few pixels: in L∞ each pixel costs an LP two rows."""
    settings, network = problem.settings.auto, problem.network
    return network.units <= settings.units_for_lps and network.input_size <= settings.pixels_for_lps


def has_capsules(problem: Problem) -> bool:
    return problem.network.capsules is not None


def has_budget(problem: Problem) -> bool:
    return problem.domain.budget is not None


def is_small_in_l2(problem: Problem) -> bool:
    return problem.domain.norm.name == "l2" and is_small(problem)


def counts_pixels(problem: Problem) -> bool:
    return problem.domain.norm.name == "l0"


def open_units(problem: Problem) -> int:
    """Nearer than the incumbent, most units of a network are decided, however many there are."""
    with problem.clock.stage("bounds"):
        presolved = problem.within(problem.incumbent.distance)
    log.debug("within %g: %d open units", presolved.domain.radius, presolved.open_units)
    return presolved.open_units


def has_few_open_units(problem: Problem) -> bool:
    return open_units(problem) <= problem.settings.auto.units_for_cuts


def has_hardly_any_open_units(problem: Problem) -> bool:
    return open_units(problem) <= problem.settings.auto.units_for_lps


def suits_lps(problem: Problem) -> bool:
    norm = problem.domain.norm.name
    return (norm == "l1" and has_few_open_units(problem)) or (norm == "linf" and is_small(problem))


def suits_readings(problem: Problem) -> bool:
    """In L2, a network that reads little of its pixels within the incumbent's distance."""
    settings = problem.settings.lp
    if problem.domain.norm.name != "l2" or open_units(problem) > settings.units_for_readings:
        return False
    network = problem.within(problem.incumbent.distance).network
    return count_readings(network) <= settings.most_readings


def suits_boxes(problem: Problem) -> bool:
    """Each unit of the first layer reads a part of the image, and nothing pools."""
    nodes = problem.simplified.nodes
    affine = [node.layer for node in nodes if isinstance(node.layer, Affine) and 0 in node.inputs]
    local = all(issparse(weight) for layer in affine for weight in layer.weights)
    pooled = any(isinstance(node.layer, Maximum) for node in nodes)
    return problem.domain.norm.name == "linf" and local and not pooled and has_few_open_units(problem)


def suits_boxes_at_once(problem: Problem) -> bool:
    return suits_boxes(problem) and open_units(problem) <= problem.settings.auto.units_for_boxes


def suits_climbs(problem: Problem) -> bool:
    """A box is proven soonest when the incumbent is the nearest image already."""
    return problem.nearest and problem.incumbent.witness is not None and suits_boxes(problem)


def asks_about_a_box(problem: Problem) -> bool:
    """Any image of a whole box will do, as in VNN-LIB properties; few units."""
    whole = problem.domain.norm.name == "linf" and math.isinf(problem.domain.radius)
    return not problem.nearest and whole and has_few_open_units(problem)


def always(_: Problem) -> bool:
    return True


MILP = (
    Plan(has_costs, ("solver, for costs",), "the paper's costs are no distance: a solver minimises them"),
    Plan(always, ("linear bounds", "attack", "first bound", "solver"), "asked for"),
)

SOLVER_IN_L2 = Plan(
    is_small_in_l2,
    ("first bound", "solver"),
    "few pixels: a solver takes L2 as it is",
)
BATCHES = Plan(
    always,
    ("batched bounds", "solver"),
    "many units: thousands of loose bounds in the time of one linear program",
)
BOXES_AT_ONCE = Plan(
    suits_boxes_at_once,
    ("boxes", "solver"),
    "few units are open: linear programs with cuts prove a box in a few nodes",
)
BATCHES_THEN_BOXES = Plan(
    always,
    ("batched bounds, shortly", "boxes", "solver"),
    "units that read parts of the image: cuts by concave envelopes close what batches leave",
)
CLIMBS = Plan(
    always,
    ("climbs",),
    "climbs from many places leave fewer units open still",
    then=(BOXES_AT_ONCE, BATCHES_THEN_BOXES),
)

TABLE = (
    MILP[0],
    Plan(
        has_capsules,
        ("affine forms, at once", "attack", "affine forms"),
        "routing is not piecewise linear: affine forms carry what it bends by as errors",
    ),
    Plan(
        has_budget,
        ("linear bounds", "attack", "first bound", "solver"),
        "two norms at once: a solver takes both as they are",
    ),
    Plan(
        counts_pixels,
        ("linear bounds", "attack", "first bound"),
        "what is cheap first",
        then=(
            Plan(
                has_hardly_any_open_units,
                ("linear programs, shortly", "solver"),
                "few units: a tree over their phases and the pixels that may change",
            ),
            Plan(always, ("solver",), "L0 has no linear distance: a solver takes it as it is"),
        ),
    ),
    Plan(
        asks_about_a_box,
        ("linear bounds", "attack", "batched bounds, for half of the time", "boxes", "solver"),
        "a box and no distance: batched bounds attack and bound all cases at once, cuts come after",
    ),
    Plan(
        always,
        ("linear bounds", "attack"),
        "what is cheap first",
        then=(
            Plan(
                suits_lps,
                ("linear programs", "solver"),
                "few units: a linear program for each node of a tree gives the strongest bounds",
            ),
            Plan(
                suits_readings,
                ("linear programs, shortly",),
                "few readings of the pixels: a tree with the exact distance at each node closes most of them",
                then=(SOLVER_IN_L2, BATCHES),
            ),
            SOLVER_IN_L2,
            BOXES_AT_ONCE,
            Plan(
                suits_climbs,
                ("linear regions",),
                "the nearest image of a linear region leaves fewer units open than the attack does",
                then=(BOXES_AT_ONCE, CLIMBS),
            ),
            replace(BATCHES_THEN_BOXES, applies=suits_boxes),
            BATCHES,
        ),
    ),
)

BASIC = (Plan(always, ("solver, basic",), "asked for"),)
IMPROVED = (Plan(always, ("solver, improved",), "asked for"),)
ATTACK = (Plan(always, ("attack",), "asked for"),)
CHANGE = (
    Plan(
        always,
        ("boxes of numbers", "solver"),
        "one or two numbers: in small boxes of them nearly every unit is decided",
    ),
)


def follow(problem: Problem, table: tuple[Plan, ...]) -> None:
    """Follow the first plan that applies until the question is settled or the time is over."""
    plan = next(plan for plan in table if plan.applies(problem))
    problem.why.append(f"{', then '.join(plan.engines)}: {plan.why}")
    for engine in plan.engines:
        log.debug("asking: %s", engine)
        problem.asked.append(engine)
        ENGINES[engine](problem)
        if problem.incumbent.settled or problem.clock.left <= 0:
            return
    if plan.then:
        follow(problem, plan.then)
