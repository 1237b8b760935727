"""One case of a question: prove that it is out of reach within a radius, or find a nearer incumbent.

1. linear bounds within the radius; many cases fall here;
2. a walk through linear regions lowers the incumbent;
3. a small tree, which settles the easy ones;
4. bounds squeezed by LPs over what could still beat the incumbent, then the whole tree; it starts anew when
   the incumbent has come so much nearer that tighter bounds pay.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds, excluded, linear_bounds
from closecall.bounds.dominated_pooling import without_losers
from closecall.bounds.l1_planes import Anchored, anchor, crowded
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.search.lp.obbt import squeeze
from closecall.search.lp.open_nodes import Tally
from closecall.search.lp.region_descent import Walk, picks_at
from closecall.search.lp.relaxation import Relaxation, relax
from closecall.search.lp.tree import Tree
from closecall.search.problem import Problem

# An LP point at a leaf lies on the margin, and rounding may put it below: the replay decides, not this.
FEASIBLE = 1e-7
SMALL_TREE = 500  # nodes before squeezing is worth its time
ROUNDS = 4  # of squeezing
WORTH_ANOTHER_ROUND = 0.97  # when the widths of open units shrink to less than this share
START_ANEW = 0.95  # when the incumbent falls below this share of the radius that the bounds were made for
SECONDS_BETWEEN_REPORTS = 0.2


@dataclass(frozen=True, eq=False)
class Ground:
    """Where a search takes place: a domain, the network as it is there, and its bounds."""

    domain: Domain
    network: Network
    bounds: Bounds
    until: float  # the perf_counter time at which planes are given up

    @cached_property
    def anchored(self) -> Anchored:
        return anchor(self.network, self.domain, self.bounds, self.until)


class Hunt:
    """The incumbent and everything that may lower it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.network = problem.simplified
        self.domain = problem.domain
        self.best: Vector | None = None
        self.distance = math.inf
        self.tally = Tally()
        self.lower = 0.0  # proven for the case at hand
        self.others = math.inf  # proven for all other cases
        self.floor = 0.0  # proven for every case by linear bounds alone
        self._reported = 0.0
        self._ground: Ground | None = None

    @property
    def wanted(self) -> float:
        """Only images nearer than this are of interest: by more than the gap nearer than the incumbent."""
        if math.isinf(self.distance):
            return self.domain.radius
        return self.distance * (1.0 - self.problem.gap)

    def aim(self, reach: float) -> float:
        """What is left of a radius to be proven."""
        return min(reach, self.wanted)

    def ground(self, radius: float) -> Ground:
        """The domain within a radius; kept, since one case after another asks for the same."""
        domain = self.domain.within(radius)
        if self._ground is None or self._ground.domain.radius != domain.radius:
            until = self.problem.clock.deadline
            network = without_losers(self.network, domain, until)
            self._ground = Ground(domain, network, linear_bounds(network, domain, until), until)
        return self._ground

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
        if self.problem.goal.slack(self.network.forward(image[None]))[0] >= 0:
            self.problem.known.offer(image)
        return True

    def take_over(self, witness: Vector | None) -> None:
        """Offer what another search has found, whichever case it reaches."""
        for case in self.problem.goal.cases:
            if witness is not None:
                self.offer(witness, case)

    def report(self) -> None:
        lower = max(self.floor, min(self.lower, self.others))
        now = time.perf_counter()
        if now - self._reported > SECONDS_BETWEEN_REPORTS:
            self._reported = now
            seconds = self.problem.clock.seconds
            self.problem.known.report(lower, self.distance, self.tally.nodes, seconds)


def nearest_first(hunt: Hunt, goal: Goal) -> list[Case]:
    """The cases in the order of their slack at the incumbent (or the original): the likely ones first."""
    at = hunt.domain.centre if hunt.best is None else hunt.best
    scores = hunt.network.forward(at[None])
    return sorted(goal.cases, key=lambda case: -float(case.slack(scores)[0]))


@dataclass(frozen=True, eq=False)
class Trial:
    """A case, the radius to prove for it, what is proven already, and when to give up.

    After `patience` seconds a tree must have proven more than was known to be worth the rest of its time.
    """

    case: Case
    reach: float
    known: float
    patience: float
    deadline: float


@dataclass(frozen=True)
class Grown:
    """Why a tree was left: all done (but for nodes above `floor`), a nearer incumbent, no time, no nodes."""

    end: Literal["done", "nearer", "given up", "nodes"]
    floor: float = math.inf


@dataclass(frozen=True)
class Settled:
    """Below what distance no image reaches a case (infinity: none does at all); whether all was searched."""

    proven: float
    searched: bool


def settle(hunt: Hunt, trial: Trial) -> Settled:
    """Search for images that reach a case within a radius; nearer ones become the incumbent."""
    hunt.lower = trial.known
    while True:
        made_for = hunt.aim(trial.reach)
        with hunt.problem.clock.stage("bounds"):
            ground = hunt.ground(made_for)
            if excluded(ground.network, ground.domain, trial.case, ground.bounds):
                return Settled(proven_within(hunt, made_for), searched=True)
            known = relax_anchored(ground, trial.case, ground.bounds)
        if made_for >= hunt.wanted:
            with hunt.problem.clock.stage("walk"):
                walk(hunt, trial.case, known[0], trial.deadline)
            if hunt.wanted < START_ANEW * made_for:
                continue
        grown = grow(hunt, trial, known[0], SMALL_TREE)
        if grown.end == "nodes":
            grown = squeeze_and_grow(hunt, trial, ground, known)
        if grown.end == "done":
            return Settled(min(proven_within(hunt, made_for), grown.floor), searched=True)
        if grown.end != "nearer":
            return Settled(hunt.lower, searched=False)


def relax_anchored(ground: Ground, case: Case, bounds: Bounds) -> tuple[Relaxation, Bounds]:
    """The relaxation and, in L1, its planes that are exact at the original and the bounds they tighten."""
    domain = ground.domain
    if domain.norm.name != "l1" or not np.isfinite(domain.radius) or crowded(ground.network):
        return relax(ground.network, domain, case, bounds), bounds
    same = bounds is ground.bounds
    anchored = ground.anchored if same else anchor(ground.network, domain, bounds, ground.until)
    return relax(ground.network, domain, case, anchored.bounds, anchored.leads), anchored.bounds


def proven_within(hunt: Hunt, radius: float) -> float:
    """What it proves that nothing wanted lies within a radius; of the whole domain, that there is nothing."""
    nothing = math.isinf(hunt.distance) and radius >= hunt.domain.radius
    return math.inf if nothing else hunt.aim(radius)


def walk(hunt: Hunt, case: Case, relaxation: Relaxation, deadline: float) -> None:
    """Lower the incumbent through linear regions, when it reaches this very case."""
    if hunt.best is None or case.slack(hunt.network.forward(hunt.best[None]))[0] < -FEASIBLE:
        return
    picks = picks_at(relaxation, hunt.network, hunt.best)
    _, image = Walk(relaxation).descend(picks, deadline)
    if image is not None:
        hunt.offer(image, case)


def squeeze_and_grow(hunt: Hunt, trial: Trial, ground: Ground, known: tuple[Relaxation, Bounds]) -> Grown:
    relaxation, bounds = known
    with hunt.problem.clock.stage("squeeze"):
        for _ in range(ROUNDS):
            before = open_width(relaxation, bounds)
            squeezed = squeeze(relaxation, bounds, deadline=trial.deadline, everything=False)
            if squeezed.empty:
                return Grown("done")
            bounds = squeezed.bounds
            after = open_width(relaxation, bounds)
            relaxation, bounds = relax_anchored(ground, trial.case, bounds)
            hunt.report()
            if after > WORTH_ANOTHER_ROUND * before or time.perf_counter() > trial.deadline:
                break
    return grow(hunt, trial, relaxation, None)


def open_width(relaxation: Relaxation, bounds: Bounds) -> float:
    """How much room the open units of a relaxation have in all."""
    signed = relaxation.entries.unit >= 0
    pairs = zip(relaxation.node[signed], relaxation.entries.unit[signed], strict=True)
    width = 0.0
    for node, unit in pairs:
        low, high = bounds.lower[node][unit], bounds.upper[node][unit]
        width += min(-low, high) if low < 0 < high else 0.0
    return width


def grow(hunt: Hunt, trial: Trial, relaxation: Relaxation, nodes: int | None) -> Grown:
    """Search the tree of a relaxation: so many nodes, or until nothing that matters is open in it."""
    made_for = hunt.aim(trial.reach)
    began = time.perf_counter()

    def on_point(values: Vector) -> float:
        hunt.offer(relaxation.pixels.at(values), trial.case)
        return hunt.aim(trial.reach)

    def nearer() -> bool:
        return hunt.wanted < START_ANEW * made_for

    def hopeless() -> bool:
        return time.perf_counter() - began >= trial.patience and hunt.lower <= trial.known

    with hunt.problem.clock.stage("search"):
        tree = Tree(relaxation, made_for, on_point, hunt.tally)

        def stop() -> bool:
            hunt.lower = max(hunt.lower, min(tree.bound, hunt.wanted))
            hunt.report()
            return hunt.answered or nearer() or hopeless()

        threads = hunt.problem.threads
        done = tree.search(nodes=nodes, deadline=trial.deadline, threads=threads, stop=stop)
        stopped = stop()  # once more, for what the last nodes have proven
    if done:
        return Grown("done", tree.floor)
    if nearer():
        return Grown("nearer")
    return Grown("given up" if stopped or time.perf_counter() >= trial.deadline else "nodes")
