"""L∞ when batched bounds have come as far as they can: close the box of a radius by LPs with cuts.

For each case: linear bounds, then rounds of cuts (see `envelope_cuts`) and a small tree; where that leaves
something open, bounds tightened over what could still reach the case, and the whole tree. Any image that
turns up is nearer than the last one: the tree goes on in the box that shrinks to it, or all begins again in a
much smaller one, where bounds are tighter.
"""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds, excluded, linear_bounds
from closecall.bounds.envelope_cuts import Cut, Envelopes
from closecall.clock import out_of_time
from closecall.question.domain import Domain
from closecall.search.lp.cut_rows import CutRows
from closecall.search.lp.obbt import open_width, tighten
from closecall.search.lp.one_case import descend, likely_first, nearly_reached
from closecall.search.lp.relaxation import LaidOut, Relaxation, lay_out, relax, relax_box
from closecall.search.lp.tree import Tree
from closecall.search.presolve import Presolved
from closecall.search.problem import Problem
from closecall.search.radii import Attempt, prove_by_radii
from closecall.solvers.incremental_lp import WarmProgram

Ended = Literal["closed", "nearer", "open"]

CARRIES = 1e-9  # a cut whose multiplier is smaller carries nothing of the bound, and is dropped


def close_boxes(problem: Problem) -> None:
    """From the incumbent and what is proven to the nearest image, or as near to it as the time allows."""
    incumbent, clock, kept = problem.incumbent, problem.clock, Kept()
    cases = likely_first(problem)
    for case in cases:
        if clock.left > 0 and not incumbent.answered:
            radius = incumbent.wanted
            if Box(problem, case, radius, clock.deadline, kept).close_at_once():
                incumbent.prove(incumbent.proves(radius), case)

    def attempt(radius: float, until: float) -> Attempt:
        closed = [close(problem, case, radius, until, kept) for case in cases]
        if all(closed):
            return "proven"
        return "given up" if out_of_time(until) and not incumbent.answered else "stuck"

    prove_by_radii(problem, problem.settings.box_radii, attempt)


class Kept:
    """What the boxes of a question have in common: the last network laid out, and each case's last cuts."""

    def __init__(self) -> None:
        self._laid_out: tuple[Bounds, LaidOut] | None = None
        self.cuts: dict[int, tuple[Presolved, list[Cut]]] = {}

    def lay_out(self, local: Presolved, bounds: Bounds) -> LaidOut:
        if self._laid_out is None or self._laid_out[0] is not bounds:
            self._laid_out = bounds, lay_out(local.network, local.domain, bounds)
        return self._laid_out[1]

    def cuts_for(self, case: int, local: Presolved) -> list[Cut]:
        """The cuts of a case that were made in this very box."""
        made_in, cuts = self.cuts.get(case, (None, []))
        return cuts if made_in is local else []


def close(problem: Problem, case: int, radius: float, until: float, kept: Kept) -> bool:
    """Close the box of a radius for one case; when that turns up nearer images, up to the nearest of them."""
    incumbent = problem.incumbent
    while incumbent.proven[case] < min(radius, incumbent.wanted):
        if out_of_time(until) or incumbent.answered:
            return False
        aim = min(radius, incumbent.wanted)
        ended = Box(problem, case, aim, until, kept).close()
        if ended == "closed":
            incumbent.prove(incumbent.proves(aim), case)
        elif ended == "open":
            return False
    return True


class Box:
    """All images within a radius, of which none may reach a case; given up at a perf_counter time."""

    def __init__(self, problem: Problem, case: int, radius: float, until: float, kept: Kept) -> None:
        self.problem, self.number, self.until, self.kept = problem, case, until, kept
        with problem.clock.stage("bounds"):
            self.local = problem.within(radius)
        self.network, self.case = self.local.network, self.local.goal.cases[case]
        self.domain: Domain = self.local.domain
        self.envelopes = Envelopes(self.network, self.domain, problem.settings.linear_bounds)
        self.settings = problem.settings.lp
        self.cuts = kept.cuts_for(case, self.local)

    def close_at_once(self) -> bool:
        """Whether linear bounds and cuts alone prove that no image reaches the case."""
        with self.problem.clock.stage("bounds"):
            bounds = self.first_bounds()
            return bounds is None or self.cut(bounds)

    def close(self) -> Ended:
        """Prove that no image reaches the case, or find one that is much nearer than the incumbent."""
        with self.problem.clock.stage("bounds"):
            bounds = self.first_bounds()
            if bounds is None or self.cut(bounds):
                return "closed"
        began = time.perf_counter()
        tree = self.plant(bounds)
        ended = self.grow(tree, self.settings.small_tree)
        took = time.perf_counter() - began
        if ended != "open" or out_of_time(self.until):
            return ended
        tighter = self.tightened(bounds, min(self.until, time.perf_counter() + took))
        if tighter is None:
            return "closed"
        return self.grow(tree if tighter is bounds else self.plant(tighter))

    def tightened(self, bounds: Bounds, until: float) -> Bounds | None:
        """Much tighter bounds, or the same; None when they prove that the case is out of reach."""
        settings, first = self.settings, bounds
        with self.problem.clock.stage("tighten"):
            for _ in range(settings.tightening_rounds):
                relaxation, _ = self.relaxed(bounds)
                tighter = tighten(
                    relaxation, bounds, deadline=until, everything=False, reached=settings.bound_reached
                )
                if tighter.empty:
                    return None
                before, after = open_width(relaxation, bounds), open_width(relaxation, tighter.bounds)
                bounds = tighter.bounds
                self.problem.incumbent.tell_now_and_then()
                if after > settings.worth_another_round * before or out_of_time(until):
                    break
            relaxation, _ = self.relaxed(first)
            if open_width(relaxation, bounds) > settings.worth_a_new_tree * open_width(relaxation, first):
                return first
            return None if self.cut(bounds) else bounds

    def first_bounds(self) -> Bounds | None:
        """Linear bounds; None when they alone prove that the case is out of reach."""
        bounds = self.local.bounds
        return None if excluded(self.network, self.domain, self.case, bounds) else bounds

    def relaxed(self, bounds: Bounds) -> tuple[Relaxation, float]:
        """The relaxation with all cuts, and the objective above which the case is out of reach."""
        laid_out = self.kept.lay_out(self.local, bounds)
        relaxation, cutoff = relax_box(self.network, self.domain, self.case, laid_out)
        return CutRows(self.envelopes, relaxation).added(self.cuts), cutoff

    def cut(self, bounds: Bounds) -> bool:
        """Add cuts round by round, and keep those that carry the last bound; True when nothing is left."""
        nothing_left = self.cut_round_by_round(bounds)
        self.kept.cuts[self.number] = self.local, self.cuts
        return nothing_left

    def cut_round_by_round(self, bounds: Bounds) -> bool:
        relaxation, cutoff = self.relaxed(bounds)
        rows, ranges = CutRows(self.envelopes, relaxation), self.envelopes.ranges(bounds)
        cuts = rows.rows(self.cuts).cuts
        program = WarmProgram(relaxation.program)
        multipliers: Vector = np.zeros(0)
        before = -np.inf
        for _ in range(self.settings.cut_rounds):
            status, value, values = program.solve(seconds=max(0.0, self.until - time.perf_counter()))
            if status != "optimal" or values is None:
                self.cuts = cuts
                return status == "infeasible" and program.farkas_proves_infeasible()
            if program.safe_bound() > cutoff:
                self.cuts = cuts
                return True
            multipliers = program.duals()[program.rows - len(cuts) :]
            more = rows.rows(rows.violated(values, ranges))
            if not more.cuts or value - before < self.settings.worth_another_cut * (cutoff - value):
                break
            before = value
            program.add_rows(more.matrix, more.unlimited, more.heights)
            cuts = cuts + more.cuts
        carried = np.abs(multipliers) > CARRIES
        kept = [cut for cut, carries in zip(cuts, carried, strict=False) if carries]
        self.cuts = kept + cuts[len(carried) :]
        return False

    def plant(self, bounds: Bounds) -> Tree:
        """A tree for what is left of the box; it goes on in a smaller one when an image turns up."""
        incumbent, (relaxation, cutoff) = self.problem.incumbent, self.relaxed(bounds)

        def on_point(values: Vector) -> float:
            before, image = incumbent.distance, self.domain.clip(relaxation.pixels.at(values))
            reached = nearly_reached(self.network, self.case, image, self.settings)
            # One that is nearer by the tolerance of goals alone would be followed by thousands like it.
            if reached and incumbent.offer_beyond(image) and incumbent.is_nearer_than(before):
                step_nearer(self.problem, self.number, self.local, self.until)
                self.shrink(tree)
            return cutoff

        tree = Tree(relaxation, cutoff, on_point, incumbent.statistics, self.settings)
        self.shrink(tree)
        return tree

    def shrink(self, tree: Tree) -> None:
        domain = self.problem.domain.within(min(self.domain.radius, self.problem.incumbent.wanted))
        tree.shrink(-domain.down, domain.up)

    def grow(self, tree: Tree, nodes: int | None = None) -> Ended:
        """Search a tree: so many nodes, or all."""
        incumbent, enough = self.problem.incumbent, self.settings.smaller_box * self.domain.radius

        def stop() -> bool:
            incumbent.tell_now_and_then()
            return incumbent.answered or incumbent.wanted < enough

        with self.problem.clock.stage("search"):
            done = tree.search(nodes=nodes, deadline=self.until, threads=self.problem.threads, stop=stop)
        if done and tree.unproven >= tree.open_nodes.cutoff:
            return "closed"
        return "nearer" if incumbent.answered or incumbent.wanted < enough else "open"


def step_nearer(problem: Problem, case: int, local: Presolved, until: float) -> None:
    """From the incumbent to the nearest image of its linear region, and of those beside it."""
    nearer = problem.domain.within(problem.incumbent.distance)
    bounds = linear_bounds(local.network, nearer, until, problem.settings.linear_bounds)
    relaxation = relax(local.network, nearer, local.goal.cases[case], bounds)
    descend(problem, case, local.network, relaxation, until)
