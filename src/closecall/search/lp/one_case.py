"""One case of a question: prove that it is out of reach within a radius, or find a nearer incumbent.

1. linear bounds within the radius; many cases fall here;
2. a descent through linear regions lowers the incumbent;
3. a small tree, which settles the easy ones;
4. once for all cases, climbs from many places;
5. bounds tightened by LPs over what could still beat the incumbent, for no longer than the small tree took,
   then the whole tree, begun anew if bounds became much tighter.

All of it begins again when the incumbent has come so much nearer that tighter bounds pay.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds, excluded
from closecall.bounds.l1_planes import Anchored, anchor, crowded
from closecall.clock import out_of_time
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.question.norms import CHANGED
from closecall.search.incumbent import Incumbent
from closecall.search.lp.coming_nearer import climbs_pay, come_nearer
from closecall.search.lp.obbt import open_width, tighten
from closecall.search.lp.readings import Readings, Tangents, readings_of
from closecall.search.lp.region_descent import RegionDescent, picks_at
from closecall.search.lp.relaxation import Relaxation, relax, relax_by_readings, relax_counting
from closecall.search.lp.tree import Tree
from closecall.search.problem import Problem
from closecall.settings import LinearPrograms, Sizes


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The network as it is within a domain, and its bounds there."""

    domain: Domain
    network: Network
    bounds: Bounds
    goal: Goal
    until: float  # the perf_counter time at which planes are given up
    sizes: Sizes

    @cached_property
    def anchored(self) -> Anchored:
        return anchor(self.network, self.domain, self.bounds, self.until)

    @cached_property
    def readings(self) -> Readings:
        return readings_of(self.network, self.domain.centre)

    def relaxed(self, case: Case, bounds: Bounds) -> Relaxed:
        """The relaxation; in L1 with planes that are exact at the original, and the bounds they tighten."""
        domain = self.domain
        if domain.norm.name == "l2":
            tangents = Tangents(self.readings, domain)
            return Relaxed(relax_by_readings(case, bounds, tangents), bounds)
        make = relax_counting if domain.norm.name == "l0" else relax
        anchors = domain.norm.name in ("l0", "l1") and 0 < domain.radius < np.inf
        if not anchors or crowded(self.network, self.sizes):
            return Relaxed(make(self.network, domain, case, bounds, {}), bounds)
        same = bounds is self.bounds
        anchored = self.anchored if same else anchor(self.network, domain, bounds, self.until)
        return Relaxed(make(self.network, domain, case, anchored.bounds, anchored.leads), anchored.bounds)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A relaxation and the bounds that it was made with."""

    relaxation: Relaxation
    bounds: Bounds


class Kept:
    """What the cases of a question have in common: the last local model, and what need not be done twice."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._last: LocalModel | None = None
        self._walked_from: Vector | None = None
        self._climbed = not climbs_pay(problem)

    def within(self, radius: float) -> LocalModel:
        domain = self.problem.domain.within(radius)
        if self._last is None or self._last.domain.radius != domain.radius:
            local, until = self.problem.within(radius), self.problem.clock.deadline
            sizes = self.problem.settings.sizes
            self._last = LocalModel(domain, local.network, local.bounds, local.goal, until, sizes)
        return self._last

    def walk(self, case: int, network: Network, relaxation: Relaxation, deadline: float) -> None:
        """Go on from the incumbent through linear regions, unless that was in vain before."""
        incumbent = self.problem.incumbent
        walks = self.problem.domain.norm.name in ("l1", "linf")
        if walks and incumbent.witness is not self._walked_from:
            with self.problem.clock.stage("walk"):
                descend(self.problem, case, network, relaxation, deadline)
            self._walked_from = incumbent.witness

    def climb(self) -> None:
        """Once for all cases, since it takes a second or more."""
        if not self._climbed:
            self._climbed = True
            come_nearer(self.problem)


@dataclass(frozen=True, eq=False)
class Trial:
    """A case by its number, the radius to prove for it, what is proven already, and when to give up.

    After `patience` seconds a tree must have proven more than was known to be worth the rest of its time.
    """

    case: int
    radius: float
    known: float
    patience: float
    deadline: float


@dataclass(frozen=True)
class Grown:
    """Why a tree was left: nothing open below `unproven`, a nearer incumbent, no time, or no nodes left."""

    end: Literal["done", "nearer", "given up", "nodes"]
    unproven: float = np.inf


class CaseSearch:
    """A trial, and all that it works with."""

    def __init__(self, kept: Kept, trial: Trial) -> None:
        self.kept, self.trial = kept, trial
        self.problem = kept.problem
        self.incumbent: Incumbent = self.problem.incumbent
        self.settings = self.problem.settings.lp
        self.counts = self.problem.domain.norm.name == "l0"

    @property
    def aim(self) -> float:
        """What is left of the radius to be proven; whole pixels in L0."""
        aim = min(self.trial.radius, self.incumbent.wanted)
        return float(np.floor(aim)) if self.counts and np.isfinite(aim) else aim

    @property
    def cutoff(self) -> float:
        """What a node must be above: in L0 a hair more than the aim is one pixel more."""
        return self.aim + CHANGED if self.counts else self.aim

    @property
    def proven(self) -> float:
        return self.incumbent.proven[self.trial.case]

    def run(self) -> bool:
        """Search for images that reach the case; False when the search was left before its end."""
        clock = self.problem.clock
        while True:
            aim = self.aim
            with clock.stage("bounds"):
                model = self.kept.within(aim)
                case = model.goal.cases[self.trial.case]
                if excluded(model.network, model.domain, case, model.bounds):
                    self.prove_all(aim)
                    return True
                known = model.relaxed(case, model.bounds)
            if aim >= self.incumbent.wanted:
                self.kept.walk(self.trial.case, model.network, known.relaxation, self.trial.deadline)
                if self.is_much_nearer(aim):
                    continue
            grown = self.grow_further(model, known)
            if grown.end == "done":
                self.prove_all(aim, grown.unproven)
                return True
            if grown.end != "nearer":
                return False

    def grow_further(self, model: LocalModel, known: Relaxed) -> Grown:
        """A small tree, then, as far as that leaves something open, what is dearer."""
        aim, began = self.aim, time.perf_counter()
        tree = self.plant(model, known.relaxation)
        grown = self.grow(tree, self.settings.small_tree)
        took = time.perf_counter() - began
        if grown.end != "nodes":
            return grown
        self.kept.climb()
        if self.is_much_nearer(aim):
            return Grown("nearer")
        tighter = self.tightened(model, known, min(self.trial.deadline, time.perf_counter() + took))
        if tighter is None:
            return Grown("done")
        return self.grow(tree if tighter is known else self.plant(model, tighter.relaxation), None)

    def prove(self, lower: float) -> None:
        if self.counts:
            lower = self.incumbent.proves_count(float(np.ceil(max(lower, 0.0) - CHANGED)))
        self.incumbent.prove(lower, self.trial.case)

    def prove_all(self, aim: float, unproven: float = np.inf) -> None:
        """Nothing lies within the aim, unless it is above what was left without a proof."""
        if self.counts:
            aim = min(aim, self.aim)  # an image may have been found on the way
            self.prove(aim + 1.0 if unproven > aim + CHANGED else unproven)
        else:
            self.prove(min(self.incumbent.proves(aim), unproven))

    def is_much_nearer(self, aim: float) -> bool:
        """Whether the incumbent has come so much nearer that tighter bounds pay."""
        if self.counts:
            return self.aim < aim
        return self.incumbent.wanted < self.settings.start_anew * aim

    def tightened(self, model: LocalModel, known: Relaxed, until: float) -> Relaxed | None:
        """What is known with much tighter bounds, or as it is; None if nothing beats the incumbent."""
        settings, case, first = self.settings, model.goal.cases[self.trial.case], known
        with self.problem.clock.stage("tighten"):
            for _ in range(settings.tightening_rounds):
                before = open_width(known.relaxation, known.bounds)
                tighter = tighten(
                    known.relaxation,
                    known.bounds,
                    deadline=until,
                    everything=False,
                    reached=settings.bound_reached,
                )
                if tighter.empty:
                    return None
                after = open_width(known.relaxation, tighter.bounds)
                known = model.relaxed(case, tighter.bounds)
                self.incumbent.tell_now_and_then()
                if after > settings.worth_another_round * before or out_of_time(until):
                    break
        wide = open_width(first.relaxation, first.bounds)
        return known if after <= settings.worth_a_new_tree * wide else first

    def plant(self, model: LocalModel, relaxation: Relaxation) -> Tree:
        """A tree for what is left of the aim; points that reach the case are offered."""
        case, network = model.goal.cases[self.trial.case], model.network

        def on_point(values: Vector) -> float:
            image = model.domain.clip(relaxation.image(values))
            if nearly_reached(network, case, image, self.settings):
                self.incumbent.offer_beyond(image)
            return self.cutoff

        return Tree(relaxation, self.cutoff, on_point, self.incumbent.statistics, self.settings)

    def grow(self, tree: Tree, nodes: int | None) -> Grown:
        """Search a tree: so many nodes, or until nothing that matters is open in it."""
        aim = self.aim
        trial, began = self.trial, time.perf_counter()

        def hopeless() -> bool:
            return time.perf_counter() - began >= trial.patience and self.proven <= trial.known

        def stop() -> bool:
            self.prove(min(tree.bound, self.incumbent.wanted))
            self.incumbent.tell_now_and_then()
            return self.incumbent.answered or self.is_much_nearer(aim) or hopeless()

        with self.problem.clock.stage("search"):
            threads = self.problem.threads
            done = tree.search(nodes=nodes, deadline=trial.deadline, threads=threads, stop=stop)
            stopped = stop()  # once more, for what the last nodes have proven
        if done:
            return Grown("done", tree.unproven)
        if self.is_much_nearer(aim):
            return Grown("nearer")
        return Grown("given up" if stopped or time.perf_counter() >= trial.deadline else "nodes")


def nearly_reached(network: Network, case: Case, image: Vector, settings: LinearPrograms) -> bool:
    """Whether an image is worth an offer, by the folded network, which is far smaller than the whole one."""
    return bool(case.slack(network.forward(image[None]))[0] >= -settings.worth_an_offer)


def likely_first(problem: Problem) -> list[int]:
    """The cases in the order of their slack at the incumbent (or the original): the likely ones first."""
    witness = problem.incumbent.witness
    scores = problem.simplified.forward((problem.domain.centre if witness is None else witness)[None])
    slacks = [float(case.slack(scores)[0]) for case in problem.goal.cases]
    return sorted(range(len(slacks)), key=lambda case: -slacks[case])


def descend(problem: Problem, case: int, network: Network, relaxation: Relaxation, deadline: float) -> None:
    """Lower the incumbent through linear regions of the relaxed network, when it reaches this very case."""
    incumbent = problem.incumbent
    if incumbent.witness is None:
        return
    scores = problem.simplified.forward(incumbent.witness[None])
    if problem.goal.cases[case].slack(scores)[0] < -problem.goal.tolerance:
        return
    picks = picks_at(relaxation, network, incumbent.witness)
    image = RegionDescent(relaxation, problem.settings.lp.single_flips).descend(picks, deadline)
    if image is not None:
        incumbent.offer_beyond(image)
