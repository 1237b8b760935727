"""`auto` for L1 on small networks: attack, shrink, squeeze, branch; LPs by HiGHS, everything else our own.

Each case of the goal (each class that could win) is settled in turn against the same incumbent:

1. linear bounds within the incumbent's distance; many cases fall here;
2. a walk through linear regions lowers the incumbent;
3. a small tree, which settles the easy ones;
4. bounds squeezed by LPs over what could still beat the incumbent, then the whole tree; it starts anew when
   the incumbent has come so much nearer that tighter bounds pay.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from closecall.anchored import anchor
from closecall.bounds import Bounds, certified_radius, excluded, linear_bounds
from closecall.branch import Tree
from closecall.domain import Domain
from closecall.frontier import Tally
from closecall.problem import Finding, Problem
from closecall.query import Case, Goal
from closecall.regions import Walk, picks_at
from closecall.relaxation import Relaxation, relax
from closecall.squeeze import squeeze

Vector = NDArray[np.float64]

# An LP point at a leaf lies on the margin, and rounding may put it below: the replay decides, not this.
FEASIBLE = 1e-7
SMALL_TREE = 500  # nodes before squeezing is worth its time
ROUNDS = 4  # of squeezing
WORTH_ANOTHER_ROUND = 0.97  # when the widths of open units shrink to less than this share
START_ANEW = 0.95  # when the incumbent falls below this share of the radius that the bounds were made for
SECONDS_BETWEEN_REPORTS = 0.2
REACHED = 1e-7  # how far a score may miss the goal by the rounding of an LP


class Hunt:
    """The incumbent and everything that may lower it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.network = problem.network.simplified()
        self.domain = problem.domain
        self.best: Vector | None = None
        self.distance = math.inf
        self.tally = Tally()
        self.lower = 0.0  # proven for the case at hand
        self.others = math.inf  # proven for all other cases
        self.floor = 0.0  # proven for every case by linear bounds alone
        self._reported = 0.0

    @property
    def wanted(self) -> float:
        """Only images nearer than this are of interest: by more than the gap nearer than the incumbent."""
        if math.isinf(self.distance):
            return self.domain.radius
        return self.distance * (1.0 - self.problem.gap)

    @property
    def answered(self) -> bool:
        """Whether any witness will do, and there is one."""
        return not self.problem.nearest and self.best is not None

    def offer(self, image: Vector, case: Case) -> bool:
        """Take an image as the incumbent if it reaches the case and is nearer."""
        image = self.domain.clip(image)
        distance = self.domain.distance(image)
        if distance >= self.distance or distance > self.domain.radius * (1 + 1e-9):
            return False
        if case.slack(self.network.forward(image[None]))[0] < -FEASIBLE:
            return False
        self.best, self.distance = image, distance
        return True

    def report(self) -> None:
        lower = max(self.floor, min(self.lower, self.others))
        now = time.perf_counter()
        if self.problem.on_progress is not None and now - self._reported > SECONDS_BETWEEN_REPORTS:
            self._reported = now
            self.problem.on_progress(lower, self.distance, self.tally.nodes, self.problem.clock.seconds)


def search_by_branching(problem: Problem, witness: Vector | None) -> Finding:
    """Settle every case, beginning with a witness if there is one; the proven distance is the smallest."""
    hunt = Hunt(problem)
    clock = problem.clock
    if witness is not None:
        for case in problem.goal.cases:
            hunt.offer(witness, case)
    cases = nearest_first(hunt, problem.goal)
    with clock.stage("bounds"):
        hunt.floor = certified_radius(
            hunt.network, hunt.domain.within(hunt.wanted), problem.goal, clock.deadline
        )
    proven = dict.fromkeys(range(len(cases)), hunt.floor)
    unsettled = list(proven)
    try:
        while unsettled and clock.left > 0 and not hunt.answered:
            unsettled = settle_each(hunt, cases, unsettled, proven)
    except KeyboardInterrupt:
        return Finding(hunt.best, min(proven.values()), hunt.tally.nodes, interrupted=True)
    return Finding(hunt.best, min(proven.values()), hunt.tally.nodes)


def settle_each(hunt: Hunt, cases: list[Case], unsettled: list[int], proven: dict[int, float]) -> list[int]:
    """Give each case its share of the time that is left; the cases that are still open."""
    still_open = []
    for place, index in enumerate(unsettled):
        share = hunt.problem.clock.left / (len(unsettled) - place)
        hunt.others = min((proven[other] for other in proven if other != index), default=math.inf)
        proven[index] = max(proven[index], settle(hunt, cases[index], time.perf_counter() + share))
        if proven[index] < hunt.wanted:
            still_open.append(index)
    return still_open


def nearest_first(hunt: Hunt, goal: Goal) -> list[Case]:
    """The cases in the order of their slack at the incumbent (or the original): the likely ones first."""
    at = hunt.domain.centre if hunt.best is None else hunt.best
    scores = hunt.network.forward(at[None])
    return sorted(goal.cases, key=lambda case: -float(case.slack(scores)[0]))


def settle(hunt: Hunt, case: Case, deadline: float) -> float:
    """Prove a distance below which no image reaches the case; infinity when none in the domain does."""
    hunt.lower = hunt.floor
    while True:
        made_for = hunt.wanted
        domain = hunt.domain.within(made_for)
        with hunt.problem.clock.stage("bounds"):
            bounds = linear_bounds(hunt.network, domain)
            if excluded(hunt.network, domain, case, bounds):
                return proven_all(hunt)
            relaxation, bounds = relax_anchored(hunt, domain, case, bounds)
        with hunt.problem.clock.stage("walk"):
            walk(hunt, case, relaxation, deadline)
        if hunt.wanted < START_ANEW * made_for:
            continue
        tree: Tree | None
        done, tree = grow(hunt, case, relaxation, SMALL_TREE, deadline)
        if not done and hunt.wanted >= START_ANEW * made_for and time.perf_counter() < deadline:
            done, tree = squeeze_and_grow(hunt, case, domain, (relaxation, bounds), deadline)
        if done:
            return min(proven_all(hunt), math.inf if tree is None else tree.floor)
        if time.perf_counter() >= deadline or hunt.answered:
            return max(hunt.lower, tree_lower(hunt, tree))


def relax_anchored(hunt: Hunt, domain: Domain, case: Case, bounds: Bounds) -> tuple[Relaxation, Bounds]:
    """The relaxation and, in L1, its planes that are exact at the original and the bounds they tighten."""
    if domain.norm.name != "l1" or not np.isfinite(domain.radius):
        return relax(hunt.network, domain, case, bounds), bounds
    anchored = anchor(hunt.network, domain, bounds)
    return relax(hunt.network, domain, case, anchored.bounds, anchored.leads), anchored.bounds


def proven_all(hunt: Hunt) -> float:
    """Nothing nearer than wanted reaches the case; without an incumbent nothing in the domain does."""
    return math.inf if math.isinf(hunt.distance) else hunt.wanted


def walk(hunt: Hunt, case: Case, relaxation: Relaxation, deadline: float) -> None:
    """Lower the incumbent through linear regions, when it reaches this very case."""
    if hunt.best is None or case.slack(hunt.network.forward(hunt.best[None]))[0] < -FEASIBLE:
        return
    picks = picks_at(relaxation, hunt.network, hunt.best)
    _, image = Walk(relaxation).descend(picks, deadline)
    if image is not None:
        hunt.offer(image, case)


def squeeze_and_grow(
    hunt: Hunt, case: Case, domain: Domain, known: tuple[Relaxation, Bounds], deadline: float
) -> tuple[bool, Tree | None]:
    relaxation, bounds = known
    with hunt.problem.clock.stage("squeeze"):
        for _ in range(ROUNDS):
            before = open_width(relaxation, bounds)
            squeezed = squeeze(relaxation, bounds, deadline=deadline, everything=False)
            if squeezed.empty:
                return True, None
            bounds = squeezed.bounds
            after = open_width(relaxation, bounds)
            relaxation, bounds = relax_anchored(hunt, domain, case, bounds)
            hunt.report()
            if after > WORTH_ANOTHER_ROUND * before or time.perf_counter() > deadline:
                break
    return grow(hunt, case, relaxation, None, deadline)


def open_width(relaxation: Relaxation, bounds: Bounds) -> float:
    """How much room the open units of a relaxation have in all."""
    signed = relaxation.entries.unit >= 0
    pairs = zip(relaxation.node[signed], relaxation.entries.unit[signed], strict=True)
    width = 0.0
    for node, unit in pairs:
        low, high = bounds.lower[node][unit], bounds.upper[node][unit]
        width += min(-low, high) if low < 0 < high else 0.0
    return width


def grow(
    hunt: Hunt, case: Case, relaxation: Relaxation, nodes: int | None, deadline: float
) -> tuple[bool, Tree]:
    """Search the tree of a relaxation; done when nothing nearer than wanted is open in it."""
    made_for = hunt.wanted

    def on_point(values: Vector) -> float:
        hunt.offer(relaxation.pixels.at(values), case)
        return hunt.wanted

    with hunt.problem.clock.stage("search"):
        tree = Tree(relaxation, hunt.wanted, on_point, hunt.tally)

        def stop() -> bool:
            hunt.lower = max(hunt.lower, tree_lower(hunt, tree))
            hunt.report()
            return hunt.answered or hunt.wanted < START_ANEW * made_for

        done = tree.search(nodes=nodes, deadline=deadline, threads=hunt.problem.threads, stop=stop)
    return done, tree


def tree_lower(hunt: Hunt, tree: Tree | None) -> float:
    """The distance that the open nodes of a tree prove."""
    return 0.0 if tree is None else max(0.0, min(tree.bound, hunt.wanted))
