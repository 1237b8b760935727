"""The ways to answer a query: each takes a Problem and gives a Finding, proven but not yet replayed.

`milp-basic`  the paper's model with interval bounds over the box, nothing clever: the yardstick
`milp`        the same question after an attack, shrinking and linear bounds, in the tight form
`auto`        our own branch and bound, chosen by the size and kind of the network
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from closecall.arrays import Vector
from closecall.attacks.gradient import find_witness
from closecall.bounds import (
    MOST_GIGABYTES,
    Bounds,
    certified_radius,
    dense_entries,
    dense_gigabytes,
    interval_bounds,
    linear_bounds,
)
from closecall.bounds.dominated_pooling import without_losers
from closecall.clock import OutOfTimeError
from closecall.encoding.encode import Encoding, Form, encode
from closecall.encoding.model_size import ModelSize
from closecall.errors import QueryError
from closecall.milp import OnProgress, Solution
from closecall.network import Network
from closecall.network.layers import Affine, Maximum
from closecall.question.domain import Domain
from closecall.question.norms import CHANGED
from closecall.search.coarse import SECONDS_TO_LAY_OUT, refute_coarsely
from closecall.search.first_bound import first_floor
from closecall.search.lp.all_cases import search_by_branching
from closecall.search.lp.boxes import close_boxes
from closecall.search.problem import Finding, Problem
from closecall.solvers import solve

FEASIBLE = 1e-6  # how far a solver's point may miss the goal and still be worth a replay

ATTACK_SHARE = 0.3  # of the time left
FLOOR_SHARE = 0.3  # of the time left then, for a first lower bound
UNITS_FOR_LPS = 250
UNITS_FOR_CUTS = 1500  # networks with more units are searched by batched linear bounds only
BATCHES_SHARE, BATCHES_SECONDS = 0.07, 5.0  # of the time limit, at most, where LPs with cuts come next
PIXELS_FOR_LPS = 100
BOUNDS_SHARE = 0.3  # of the time left, for the bounds of a model; units not reached keep their intervals
MILP_FLOOR_SHARE = 0.1  # of the time left, for a first lower bound beside the solver's
COARSE_TRIALS = 20  # radii for a network that is too large for batched bounds


def solve_basic(problem: Problem) -> Finding:
    """The paper's form, interval bounds over the domain as it is, the solver's defaults."""
    clock = problem.clock
    with clock.stage("bounds"):
        bounds = interval_bounds(problem.network, problem.domain)
    return solve_encoded(problem, problem.domain, problem.network, bounds, "paper")


def solve_shrunk(problem: Problem) -> Finding:
    """An attack first, then linear bounds within its distance, the tight form and a solver."""
    clock, domain = problem.clock, problem.domain
    if problem.costs is not None:
        with clock.stage("bounds"):
            bounds = linear_bounds(problem.network, domain, clock.share(BOUNDS_SHARE))
        return solve_encoded(problem, domain, problem.network, bounds, "paper")
    witness = attack(problem)
    if witness is not None and not problem.nearest:
        return Finding(witness, 0.0)
    floor = first_floor(problem, problem.simplified, witness, clock.share(MILP_FLOOR_SHARE))
    return solve_rest(problem, Finding(witness, floor))


def solve_rest(problem: Problem, known: Finding) -> Finding:
    """Linear bounds within the distance of the known witness, the tight form and the chosen solver."""
    domain, clock = problem.domain, problem.clock
    if known.witness is not None:
        domain = domain.within(domain.distance(known.witness))
    with clock.stage("bounds"):
        until = clock.share(BOUNDS_SHARE)
        network = without_losers(problem.simplified, domain, until)
        bounds = linear_bounds(network, domain, until)
    found = solve_encoded(problem, domain, network, bounds, "tight")
    lower, nodes = max(known.lower, found.lower), known.nodes + found.nodes
    if known.witness is not None and (
        found.witness is None or domain.distance(known.witness) < domain.distance(found.witness)
    ):
        # The witness itself lies on the rim of this domain: none inside means none nearer.
        return Finding(known.witness, min(lower, domain.radius), nodes, found.interrupted, found.notes)
    return Finding(found.witness, lower, nodes, found.interrupted, found.notes)


def solve_encoded(problem: Problem, domain: Domain, network: Network, bounds: Bounds, form: Form) -> Finding:
    clock = problem.clock
    size = ModelSize.of(network, bounds, form)
    if size.gigabytes > MOST_GIGABYTES:
        return too_large(problem, size.gigabytes)
    if size.seconds > clock.left:
        return Finding(None, 0.0)
    with clock.stage("encode"):
        encoding = encode(network, domain, problem.goal, bounds, form, problem.costs)
    with clock.stage("search"):
        left = max(0.0, clock.left - size.seconds_to_stop)
        solution = solve(
            encoding.milp,
            problem.solver,
            replace(problem.limits, seconds=left),
            on_progress=distance_progress(encoding, domain, problem),
        )
    return read_solution(problem, encoding, solution)


def too_large(problem: Problem, gigabytes: float) -> Finding:
    """What is known without the model; if nothing is, a sentence that says why."""
    about = f"the model for the solver would take about {gigabytes:.0f} GB of memory"
    if problem.known.witness is None and problem.known.lower == 0:
        raise QueryError(
            f"{about}, more than the {MOST_GIGABYTES:.0f} GB that closecall uses: "
            "ask about a smaller network, or by --method auto."
        )
    return Finding(None, 0.0, notes=(f"{about}: the interval is that of the attack and of linear bounds",))


def distance_progress(encoding: Encoding, domain: Domain, problem: Problem) -> OnProgress | None:
    """Turn a solver's objective into a distance, and its time into the time of the whole search."""
    if problem.costs is not None:  # the costs' objective is no distance
        return None

    elapsed = problem.clock.seconds

    def forward(lower: float, upper: float, nodes: int, seconds: float) -> None:
        low, high = encoding.distance(max(lower, 0.0)), encoding.distance(upper)
        problem.known.show(low, min(high, domain.radius), nodes, elapsed + seconds)

    return forward


def read_solution(problem: Problem, encoding: Encoding, solution: Solution) -> Finding:
    interrupted = solution.status == "interrupted"
    if solution.status == "infeasible":
        return Finding(None, np.inf, solution.nodes)
    witness = None
    if solution.values is not None:
        pixels = problem.domain.clip(encoding.pixels.at(solution.values))
        if problem.domain.norm.name == "l0":
            unmoved = np.abs(pixels - problem.domain.centre) <= CHANGED
            pixels = np.where(unmoved, problem.domain.centre, pixels)
        # An L2 ball is in no row of the model, so a solver's point may lie outside it.
        inside = problem.domain.distance(pixels) <= problem.domain.radius * (1 + FEASIBLE)
        if inside and problem.goal.slack(problem.network.forward(pixels[None]))[0] >= -FEASIBLE:
            witness = pixels
    # With the paper's costs the solver's bound is on another objective than the distance.
    bound = 0.0 if problem.costs is not None else encoding.distance(max(solution.bound, 0.0))
    if problem.domain.norm.name == "l0":
        bound = max(0.0, float(np.ceil(bound - FEASIBLE)))
    if problem.domain.norm.name != "l2":
        # The model ends at the radius: a bound that comes up to it says nothing about the rim itself.
        bound = min(bound, float(np.nextafter(problem.domain.radius, 0.0)))
    return Finding(witness, bound, solution.nodes, interrupted)


def solve_automatically(problem: Problem) -> Finding:
    """Our own branch and bound: over LPs where they are small, over batched linear bounds else.

    The chosen solver is left with the paper's costs, with L0, with L2 on small images, and with what rounding
    keeps ours from closing.
    """
    domain, clock = problem.domain, problem.clock
    small = problem.network.units <= UNITS_FOR_LPS
    small_image = problem.network.input_size <= PIXELS_FOR_LPS
    if (
        problem.costs is not None
        or domain.norm.name == "l0"
        or (domain.norm.name == "l2" and small and small_image)
    ):
        return solve_shrunk(problem)
    witness = attack(problem)
    if witness is not None and not problem.nearest:
        return Finding(witness, 0.0)
    # In L∞ each pixel costs an LP two rows.
    if (domain.norm.name == "l1" and problem.network.units <= UNITS_FOR_CUTS) or (
        domain.norm.name == "linf" and small and small_image
    ):
        found = search_by_branching(problem, witness)
    elif domain.norm.name == "linf" and cuts_pay(problem):
        found = search_by_batches(problem, witness, min(BATCHES_SHARE * clock.limit, BATCHES_SECONDS))
        if not settled(problem, found) and not found.interrupted and clock.left > 0:
            found = close_boxes(problem, found)
    else:
        found = search_by_batches(problem, witness, clock.limit)
    if settled(problem, found) or found.interrupted or problem.clock.left <= 0:
        return found
    return solve_rest(problem, found)


def cuts_pay(problem: Problem) -> bool:
    """Whether LPs with cuts are worth their time: each unit reads a part of the image, and nothing pools."""
    nodes = problem.simplified.nodes
    affine = [node.layer for node in nodes if isinstance(node.layer, Affine) and 0 in node.inputs]
    local = all(issparse(weight) for layer in affine for weight in layer.weights)
    pooled = any(isinstance(node.layer, Maximum) for node in nodes)
    return problem.network.units <= UNITS_FOR_CUTS and local and not pooled


def settled(problem: Problem, found: Finding) -> bool:
    """Whether a finding answers the problem: by a witness, by none at all, or by a closed gap."""
    if found.witness is None:
        return found.lower >= problem.domain.radius
    distance = problem.domain.distance(found.witness)
    return not problem.nearest or found.lower >= (1.0 - problem.gap) * distance - 1e-9


def search_by_batches(problem: Problem, witness: Vector | None, seconds: float) -> Finding:
    """Refute the domain if there is no witness yet; from a witness, shrink to the nearest.

    All of it within so many seconds from the beginning of the whole search, but in half as many from now on
    where most of them are over.
    """
    from closecall.search.crown import TooLargeError, Watch, refute, shrink  # waits for torch

    clock, known = problem.clock, problem.known
    network = problem.simplified
    now = time.perf_counter()
    until = min(max(clock.began + seconds, now + seconds / 2), clock.deadline)
    floor = first_floor(problem, network, witness, now + FLOOR_SHARE * (until - now))
    if dense_gigabytes(network) > MOST_GIGABYTES:
        return search_coarsely(problem, network, witness)
    if until - time.perf_counter() < SECONDS_TO_LAY_OUT * dense_entries(network):
        return Finding(witness, floor)
    question = (network, problem.domain, problem.goal)
    watch = Watch(known.report, known.offer)
    nodes = 0
    try:
        with clock.stage("search"):
            if witness is None:
                left = max(0.0, until - time.perf_counter())
                outcome = refute(*question, seconds=left, threads=problem.threads, watch=watch)
                nodes, witness = outcome.nodes, outcome.witness
                if outcome.status == "proven":
                    return Finding(None, np.inf, nodes)
                if witness is None or not problem.nearest or outcome.status == "interrupted":
                    lower = max(floor, outcome.lower)
                    return Finding(witness, lower, nodes, outcome.status == "interrupted")
            left = max(0.0, until - time.perf_counter())
            best, outcome = shrink(
                *question, witness, gap=problem.gap, seconds=left, threads=problem.threads, watch=watch
            )
    except TooLargeError:
        return search_coarsely(problem, network, witness)
    return Finding(best, max(floor, outcome.lower), nodes + outcome.nodes, outcome.status == "interrupted")


def search_coarsely(problem: Problem, network: Network, witness: Vector | None) -> Finding:
    """An interval without batched bounds: linear bounds over larger and larger radii."""
    clock, known, domain = problem.clock, problem.known, problem.domain
    with clock.stage("search"):
        if witness is None:
            empty, witness = refute_coarsely(network, domain, problem.goal, clock.share(0.5))
            known.offer(witness)
            if empty:
                return Finding(None, np.inf)
        if witness is not None and problem.nearest:
            ball = domain.within(domain.distance(witness))
            certified_radius(
                network,
                ball,
                problem.goal,
                clock.deadline,
                proven=known.lower,
                trials=COARSE_TRIALS,
                on_radius=known.prove,
            )
    return Finding(witness, known.lower)


def attack(problem: Problem) -> Vector | None:
    clock, known = problem.clock, problem.known
    with clock.stage("attack"):
        until = clock.share(ATTACK_SHARE)
        find_witness(problem.network, problem.domain, problem.goal, until=until, on_witness=known.offer)
    return known.witness


def search(problem: Problem, method: str) -> Finding:
    """Search by a method; cut off anywhere, by Ctrl-C or by the end of time or memory, keep what is known."""
    notes: tuple[str, ...] = ()
    with problem.clock.noting_interrupts():
        try:
            return problem.known.joined(METHODS[method](problem))
        except KeyboardInterrupt:
            return problem.known.joined(Finding(None, 0.0, interrupted=True))
        except OutOfTimeError:
            pass
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            notes = ("memory ran out: the interval holds as far as it was proven",)
    if notes and problem.known.witness is None and problem.known.lower == 0:
        raise QueryError("memory ran out before anything was known: ask about a smaller network or image.")
    return problem.known.joined(Finding(None, 0.0, notes=notes))


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is about memory, also one that torch calls by another name."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error)


METHODS: dict[str, Callable[[Problem], Finding]] = {
    "auto": solve_automatically,
    "milp": solve_shrunk,
    "milp-basic": solve_basic,
}
