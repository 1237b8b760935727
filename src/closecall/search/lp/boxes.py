"""`auto` for L∞ when batched bounds have come as far as they can: close the box of a radius by LPs with cuts.

For each case: linear bounds, then rounds of cuts (see `envelope_cuts`) and of bounds squeezed over what could
still reach the case, then a tree. Any image that turns up is nearer than the last one; the box shrinks to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds, excluded, linear_bounds
from closecall.bounds.envelope_cuts import Cut, Envelopes
from closecall.clock import OutOfTimeError
from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.search.lp.obbt import squeeze
from closecall.search.lp.one_case import Hunt, nearest_first, open_width, walk
from closecall.search.lp.relaxation import Relaxation, columns_of_units, relax, relax_box
from closecall.search.lp.tree import Tree
from closecall.search.problem import Finding, Problem
from closecall.solvers.incremental_lp import WarmProgram

CUT_ROUNDS = 15
SQUEEZE_ROUNDS = 4
WORTH_ANOTHER_ROUND = 0.97
CARRIES = 1e-9  # a cut whose multiplier is smaller is dropped
FIRST_STEP = 0.6  # of the way from what is proven to what is needed


@dataclass(frozen=True)
class Attempt:
    """What came of trying to close a case's box: is it closed, is there a nearer image?"""

    closed: bool
    nearer: bool = False


def close_boxes(problem: Problem, known: Finding) -> Finding:
    """From a witness and a proven radius to the nearest image, or as near to it as the time allows."""
    hunt = Hunt(problem)
    hunt.take_over(known.witness)
    hunt.floor, hunt.tally.nodes = known.lower, known.nodes
    cases = nearest_first(hunt, problem.goal)
    proven = dict.fromkeys(range(len(cases)), known.lower)
    clock, interrupted = problem.clock, False
    try:
        for index, case in enumerate(cases):
            if clock.left > 0 and close_at_once(hunt, case, hunt.wanted):
                proven[index] = hunt.wanted
        for whole_way in (False, True):
            for index in range(len(cases)):
                advance(hunt, cases, index, proven, whole_way)
    except KeyboardInterrupt:
        interrupted = True
    except OutOfTimeError:
        pass
    lower = min(proven.values())
    return Finding(hunt.best, lower, hunt.tally.nodes, interrupted)


def advance(hunt: Hunt, cases: list[Case], index: int, proven: dict[int, float], whole_way: bool) -> None:
    """Prove a larger radius for a case: all that is needed, or at first a part of it if that is far off."""
    clock = hunt.problem.clock
    while proven[index] < hunt.wanted and clock.left > 0 and not hunt.answered:
        hunt.others = min((proven[other] for other in proven if other != index), default=math.inf)
        hunt.lower = proven[index]
        radius = hunt.wanted
        if not whole_way:
            radius = proven[index] + FIRST_STEP * (hunt.wanted - proven[index])
        attempt = close(hunt, cases[index], radius)
        if attempt.closed:
            proven[index] = radius
            if not whole_way:
                return
        elif not attempt.nearer:
            return


def close_at_once(hunt: Hunt, case: Case, radius: float) -> bool:
    """Whether linear bounds and cuts alone prove that no image within the radius reaches the case."""
    domain = hunt.domain.within(radius)
    with hunt.problem.clock.stage("bounds"):
        bounds = linear_bounds(hunt.network, domain, hunt.problem.clock.deadline)
        if excluded(hunt.network, domain, case, bounds):
            return True
        _, empty = cut_and_count(hunt, case, domain, (bounds, Envelopes(hunt.network, domain), []))
    return empty


def close(hunt: Hunt, case: Case, radius: float) -> Attempt:
    """Prove that no image within the radius reaches the case, or find one that is nearer than the last."""
    clock = hunt.problem.clock
    domain = hunt.domain.within(radius)
    with clock.stage("bounds"):
        bounds = linear_bounds(hunt.network, domain, clock.deadline)
        if excluded(hunt.network, domain, case, bounds):
            return Attempt(closed=True)
    envelopes = Envelopes(hunt.network, domain)
    cuts: list[Cut] = []
    with clock.stage("squeeze"):
        for _ in range(SQUEEZE_ROUNDS):
            cuts, empty = cut_and_count(hunt, case, domain, (bounds, envelopes, cuts))
            if empty:
                return Attempt(closed=True)
            relaxation, _ = relax_box(hunt.network, domain, case, bounds, cuts)
            squeezed = squeeze(relaxation, bounds, deadline=clock.deadline, everything=False)
            if squeezed.empty:
                return Attempt(closed=True)
            before, after = open_width(relaxation, bounds), open_width(relaxation, squeezed.bounds)
            bounds = squeezed.bounds
            hunt.report()
            if clock.left <= 0:
                return Attempt(closed=False)
            if after > WORTH_ANOTHER_ROUND * before:
                break
        cuts, empty = cut_and_count(hunt, case, domain, (bounds, envelopes, cuts))
        if empty:
            return Attempt(closed=True)
    return grow(hunt, case, domain, bounds, cuts)


def cut_and_count(
    hunt: Hunt, case: Case, domain: Domain, known: tuple[Bounds, Envelopes, list[Cut]]
) -> tuple[list[Cut], bool]:
    """Add cuts round by round; the ones that carry the last bound, and whether nothing is left."""
    bounds, envelopes, cuts = known
    relaxation, cutoff = relax_box(hunt.network, domain, case, bounds, cuts)
    column = columns_of_units(relaxation)
    cuts = [cut for cut in cuts if (cut.reader, cut.output) in column]
    program = WarmProgram(relaxation.program)
    for _ in range(CUT_ROUNDS):
        status, _, values = program.solve(seconds=hunt.problem.clock.left)
        if status != "optimal" or values is None:
            return cuts, status == "infeasible" and program.farkas_proves_infeasible()
        if program.safe_bound() > cutoff:
            return cuts, True
        multipliers = program.duals()[program.rows - len(cuts) :]
        more = violated(relaxation, envelopes, values)
        if not more:
            break
        for cut in more:
            columns = np.append(cut.pixels, column[cut.reader, cut.output])
            program.add_row(columns, np.append(-cut.slopes, 1.0), -np.inf, cut.height)
        cuts = cuts + more
    carried = np.abs(multipliers) > CARRIES
    return [cut for cut, carries in zip(cuts, carried, strict=False) if carries] + cuts[len(carried) :], False


def violated(relaxation: Relaxation, envelopes: Envelopes, values: Vector) -> list[Cut]:
    """The cuts that an LP's point breaks."""
    first = np.array([members[0] for members in relaxation.members], dtype=np.int64)
    shifts = values[: len(envelopes.low)]
    cuts: list[Cut] = []
    for reader in np.unique(relaxation.reader[first]):
        mine = first[relaxation.reader[first] == reader]
        units = relaxation.entries.output[mine]
        cuts += envelopes.cuts(int(reader), units, values[relaxation.entries.whole[mine]], shifts)
    return cuts


def grow(hunt: Hunt, case: Case, domain: Domain, bounds: Bounds, cuts: list[Cut]) -> Attempt:
    """Search the tree of what is left of a box."""
    clock = hunt.problem.clock
    relaxation, cutoff = relax_box(hunt.network, domain, case, bounds, cuts)
    before = hunt.distance

    def on_point(values: Vector) -> float:
        hunt.offer(relaxation.pixels.at(values), case)
        return cutoff

    def stop() -> bool:
        hunt.report()
        return hunt.distance < before

    with clock.stage("search"):
        tree = Tree(relaxation, cutoff, on_point, hunt.tally)
        done = tree.search(deadline=clock.deadline, threads=hunt.problem.threads, stop=stop)
    if hunt.distance < before:
        with clock.stage("walk"):
            nearer = hunt.domain.within(hunt.distance)
            known = linear_bounds(hunt.network, nearer, clock.deadline)
            walk(hunt, case, relax(hunt.network, nearer, case, known), clock.deadline)
        return Attempt(closed=False, nearer=True)
    return Attempt(closed=done and tree.floor >= cutoff)
