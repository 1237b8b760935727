"""The methods that hand a whole model to a MILP solver, whose word is taken up to its tolerances.

`milp-basic`     the paper's model with interval bounds over the box, nothing clever: the yardstick
`milp-improved`  the same with bounds tightened by a MILP for each unit: the paper's second model
`milp`           after an attack, with linear bounds within its distance, in the tight form
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds, interval_bounds, linear_bounds
from closecall.encoding.encode import Encoding, Form, encode
from closecall.encoding.model_size import ModelSize
from closecall.encoding.precision import NOT_TRUSTED, is_trustworthy
from closecall.errors import QueryError
from closecall.milp import OnProgress, Solution
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal
from closecall.question.norms import CHANGED
from closecall.search.milp_boxes import solve_boxes
from closecall.search.problem import Problem
from closecall.search.unit_bounds import milp_bounds
from closecall.solvers import SOLVER_TOLERANCE, solve, without_claims


def solve_basic(problem: Problem) -> None:
    """The paper's form, interval bounds over the domain as it is, the solver's defaults."""
    with problem.clock.stage("bounds"):
        bounds = interval_bounds(problem.network, problem.domain)
    solve_encoded(problem, problem.domain, problem.network, bounds, "paper")


def solve_improved(problem: Problem) -> None:
    """The paper's form with bounds of each unit by MILPs over the layers before it."""
    clock, settings = problem.clock, problem.settings.milp
    with clock.stage("bounds"):
        bounds = milp_bounds(
            problem.network,
            problem.domain,
            interval_bounds(problem.network, problem.domain),
            solver=problem.solver,
            seconds_each=settings.seconds_for_a_unit,
            until=clock.share(settings.share_for_units),
        )
    solve_encoded(problem, problem.domain, problem.network, bounds, "paper")


def solve_for_costs(problem: Problem) -> None:
    """The paper's form and its costs, which are no distance."""
    clock, settings = problem.clock, problem.settings
    with clock.stage("bounds"):
        until = clock.share(settings.milp.share_for_bounds)
        bounds = linear_bounds(problem.network, problem.domain, until, settings.linear_bounds)
    solve_encoded(problem, problem.domain, problem.network, bounds, "paper")


def solve_rest(problem: Problem) -> None:
    """Linear bounds within the distance of the incumbent, the tight form and the chosen solver.

    In L∞ a box at a time first, then for the distance itself.
    """
    problem.incumbent.demand_levels()
    if problem.domain.norm.name == "linf" and problem.domain.budget is None:
        solve_boxes(problem, problem.clock.share(problem.settings.milp.share_for_boxes))
        if problem.incumbent.settled or problem.clock.left <= 0:
            return
    domain, clock = problem.domain.within(problem.incumbent.distance), problem.clock
    with clock.stage("bounds"):
        local = problem.within(domain.radius)
    solve_encoded(problem, domain, local.network, local.bounds, "tight", local.goal)


def solve_encoded(
    problem: Problem,
    domain: Domain,
    network: Network,
    bounds: Bounds,
    form: Form,
    goal: Goal | None = None,
) -> None:
    clock, sizes = problem.clock, problem.settings.sizes
    problem.incumbent.demand_levels()
    size = ModelSize.of(network, bounds, form, sizes)
    if size.gigabytes > sizes.most_gigabytes:
        note_too_large(problem, size.gigabytes)
        return
    if size.seconds > clock.left:
        return
    with clock.stage("encode"):
        encoding = encode(network, domain, goal or problem.goal, bounds, form, problem.costs)
    trusted = is_trustworthy(network, domain, (goal or problem.goal).cases, bounds)
    with clock.stage("search"):
        left = max(0.0, clock.left - size.seconds_to_stop)
        solution = solve(
            encoding.milp,
            problem.solver,
            replace(problem.limits, seconds=left),
            on_progress=distance_progress(encoding, domain, problem) if trusted else None,
        )
    if not trusted:
        solution = without_claims(solution)
        problem.notes.append(NOT_TRUSTED)
    keep_solution(problem, domain, encoding, solution)


def note_too_large(problem: Problem, gigabytes: float) -> None:
    """Go on with what is known without the model; if nothing is, a sentence that says why."""
    about = f"the model for the solver would take about {gigabytes:.0f} GB of memory"
    if problem.incumbent.witness is None and problem.incumbent.lower == 0:
        raise QueryError(
            f"{about}, more than the {problem.settings.sizes.most_gigabytes:.0f} GB that closecall uses: "
            "ask about a smaller network, or by --method auto."
        )
    problem.notes.append(f"{about}: the interval is that of the attack and of linear bounds")


def distance_progress(encoding: Encoding, domain: Domain, problem: Problem) -> OnProgress | None:
    """Turn a solver's objective into a distance."""
    if problem.costs is not None:  # the costs' objective is no distance
        return None

    def forward(lower: float, upper: float, nodes: int, seconds: float) -> None:  # noqa: ARG001
        low, high = encoding.distance(max(lower, 0.0)), encoding.distance(upper)
        problem.incumbent.show(low, min(high, domain.radius), nodes)

    return forward


def keep_solution(problem: Problem, domain: Domain, encoding: Encoding, solution: Solution) -> None:
    """Keep a solver's image, if it does what was asked, and its bound, as far as the model reaches."""
    incumbent = problem.incumbent
    incumbent.statistics.nodes += solution.nodes
    if solution.status == "infeasible":
        # Where there is an incumbent, it lies on the rim of this domain: none inside means none nearer.
        incumbent.prove(incumbent.proves(domain.radius))
        return
    if solution.values is not None:
        offer_solution(problem, encoding.pixels.at(solution.values))
    # With the paper's costs the solver's bound is on another objective than the distance.
    if problem.costs is None:
        bound = encoding.distance(max(solution.bound, 0.0))
        if domain.norm.name == "l0":
            bound = max(0.0, float(np.ceil(bound - SOLVER_TOLERANCE)))
        if domain.norm.name != "l2":
            # The model ends at the radius: a bound that comes up to it says nothing about the rim itself.
            bound = min(bound, float(np.nextafter(problem.domain.radius, 0.0)))
        incumbent.prove(min(bound, domain.radius))
    if solution.status == "interrupted":
        raise KeyboardInterrupt


def offer_solution(problem: Problem, pixels: Vector) -> None:
    domain = problem.domain
    pixels = domain.clip(pixels)
    if domain.sparse:
        pixels = np.where(np.abs(pixels - domain.centre) <= CHANGED, domain.centre, pixels)
    # An L2 ball is in no row of the model, so a solver's point may lie outside it.
    if domain.distance(pixels) <= domain.radius * (1 + SOLVER_TOLERANCE):
        problem.incumbent.offer_beyond(pixels)
