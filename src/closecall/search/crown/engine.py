"""Branch and bound over the signs of ReLUs, many parts at once, for wide and convolutional networks.

A part of the domain is closed when, in float64 and rounded outward, λ·(C·y − d) < 0 all over it: then none of
its images reaches its case. Its radius is that below which the same duals prove that: bounds at a larger
radius stay valid at a smaller one. Parts with all signs decided are left to an LP, whose bound is checked.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace

import torch
from torch import Tensor

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.question.goal import Case
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.case_rows import CaseRows
from closecall.search.crown.dense_network import TwoPrecisions, dense_network_of
from closecall.search.crown.intermediate_bounds import IntermediateBounds, intermediate_bounds, sums_of
from closecall.search.crown.prover import Prover
from closecall.search.crown.region import UnitPhases, nearest_in_region
from closecall.search.crown.relaxation import Sums
from closecall.search.crown.splitting import Part, child_of
from closecall.search.crown.subproblems import Duals, Objective
from closecall.search.crown.tightening import Tightening
from closecall.search.crown.witnesses import WitnessSearch
from closecall.search.problem import Problem
from closecall.search.radii import Attempt, prove_by_radii
from closecall.settings import Pace

log = logging.getLogger(__name__)


class BatchedSearch:
    """The open parts of one question."""

    def __init__(self, problem: Problem, until: float) -> None:
        self.problem, self.until = problem, until
        self.goal, self.domain, self.settings = problem.goal, problem.domain, problem.settings
        self.incumbent, self.statistics = problem.incumbent, problem.incumbent.statistics
        self.crown = self.settings.crown
        presolved = problem.within(problem.incumbent.distance)
        self.whole = TwoPrecisions.of(dense_network_of(presolved.network, self.settings.sizes))
        self.networks = self.whole  # as it is within the radius at hand
        self.cases = CaseRows.of(presolved.goal)
        self.ball = TorchBall.of(self.domain, torch.float64)
        self.witnesses = WitnessSearch(problem, self.whole.double, until)
        self.any_will_do = True
        self.bounds = IntermediateBounds(torch.zeros(0), torch.zeros(0))
        self.sums = Sums(torch.zeros(0), torch.zeros(0))
        self.open: list[Part] = []
        self.stuck: list[Part] = []

    @property
    def radius(self) -> float:
        """Nearer than this is all that matters."""
        return float(self.ball.radius)

    @property
    def lower(self) -> float:
        """The radius that is proven by all open parts, if there are any."""
        return min((part.radius for part in (*self.open, *self.stuck)), default=0.0)

    def in_time(self) -> bool:
        return not out_of_time(self.until)

    def report(self) -> None:
        self.incumbent.prove(min(self.lower, self.radius))
        self.incumbent.tell_now_and_then()

    def refute(self) -> None:
        """Find a witness anywhere, or prove that there is none."""
        if not self.witnesses.everywhere(self.ball):
            self.prove(self.radius)

    def shrink(self) -> None:
        """Prove larger and larger radii, up to the incumbent."""
        self.any_will_do = False
        self.begin_nowhere()
        self.keep_below_incumbent()
        self.witnesses.polish()
        self.witnesses.close_in(self.ball)
        prove_by_radii(self.problem, self.crown.radii, self.attempt, until=self.until)

    def attempt(self, radius: float, until: float) -> Attempt:
        """Try to close the ball of a radius until a perf_counter time."""
        last, self.until = self.until, until
        whole_way = radius >= self.incumbent.wanted
        try:
            proven = self.prove(radius)
        finally:
            self.until = last
        if proven:
            return "proven"
        self.report()
        return "stuck" if whole_way or self.stuck else "given up"

    @property
    def ball_of_use(self) -> TorchBall:
        """Where a witness would be of use, however small the radius of the proof at hand."""
        return self.ball.within(self.incumbent.wanted)

    def keep_below_incumbent(self) -> None:
        if not self.any_will_do and self.incumbent.wanted < self.radius:
            self.ball = self.ball.within(self.incumbent.wanted)

    def prove(self, radius: float) -> bool:
        """Close the ball of a radius; False at a witness without a gap to close, or when time is over."""
        self.ball = self.ball.within(radius)
        self.fold_within(radius)
        self.begin_anew()
        self.bound_units()
        self.bound_cases()
        units = int(self.bounds.open.sum())
        log.debug("radius %g: %d open units, %d open cases", radius, units, len(self.open))
        self.branch(self.statistics.nodes + self.crown.quick_nodes)
        if self.open and not self.over():
            log.debug(
                "%d parts open after %d nodes: tightening begins", len(self.open), self.statistics.nodes
            )
            self.begin_anew()
            self.bound_cases()
            self.tighten()
            self.branch(math.inf)
        if self.open or self.stuck:
            return False
        log.debug("radius %g proven after %d nodes", self.radius, self.statistics.nodes)
        self.incumbent.prove(self.incumbent.proves(self.radius))
        return True

    def fold_within(self, radius: float) -> None:
        """Go on with the network as it is within a radius, where most units are decided."""
        presolved = self.problem.within(radius)
        self.networks = TwoPrecisions.of(dense_network_of(presolved.network, self.settings.sizes))
        self.goal, self.cases = presolved.goal, CaseRows.of(presolved.goal)

    def over(self) -> bool:
        """Whether time is over, the open parts fill the memory, or a witness answers the question."""
        crowded = len(self.open) * self.networks.double.units > self.settings.sizes.most_slopes
        found = self.incumbent.answered or (self.any_will_do and self.incumbent.witness is not None)
        return crowded or not self.in_time() or found

    def branch(self, nodes: float) -> None:
        while self.open and self.statistics.nodes < nodes and not self.over():
            self.step()
            self.report()

    def begin_anew(self) -> None:
        """Open all cases again; in this order, so that Ctrl-C between the two finds no part missing."""
        self.open = self.roots()
        self.stuck = []

    def begin_nowhere(self) -> None:
        """Nothing is open of a proof that was left."""
        self.open, self.stuck = [], []

    def roots(self) -> list[Part]:
        """One part for each case that is not proven yet."""
        rows = self.cases.matrix.shape[1]
        duals = Duals(torch.zeros(0), torch.zeros(0), torch.full((rows,), 1.0 / rows))
        proven = self.incumbent.proven
        return [
            Part.root(case, duals, math.inf, self.bounds)
            for case in range(len(proven))
            if proven[case] < self.radius
        ]

    def bound_units(self) -> None:
        """Bound all units over the ball, and leave out those that are zero all over it."""
        bounds = intermediate_bounds(self.networks, self.ball, self.until, self.crown)
        kept = ~(bounds.upper <= 0)  # NaN is no bound
        self.networks = TwoPrecisions.of(self.networks.double.keeping(kept))
        self.bounds = IntermediateBounds(bounds.lower[kept], bounds.upper[kept])
        self.sums = sums_of(self.networks.double, self.ball, self.bounds)

    def bound_cases(self) -> None:
        slopes = self.bounds.first_slopes.float()
        parts = [
            replace(part, duals=replace(part.duals, slopes=slopes), bounds=self.bounds) for part in self.open
        ]
        self.open = self.bounded(parts, self.crown.case_pace)
        self.statistics.nodes += len(parts)

    def bounded(self, parts: list[Part], pace: Pace) -> list[Part]:
        return self.prover().bounded_in_time(parts, pace, self.until)

    def prover(self) -> Prover:
        cases = self.cases
        objectives = Objective(self.networks.double.depth + 1, cases.matrix, cases.threshold)
        return Prover(self.networks, self.sums, self.ball, objectives, self.crown)

    def tighten(self) -> None:
        """Branch on the bounds of units for as long as that brings the cases nearer to their proofs."""
        sweeps, tightening = self.crown.sweeps, Tightening(self.networks, self.sums, None, self.crown)
        now = time.perf_counter()
        until = now + sweeps.share * (self.until - now)
        before = math.inf
        while self.open and not out_of_time(until):
            left = sum(part.value for part in self.open)
            log.debug("%d cases open, their bounds add up to %g", len(self.open), left)
            if left > sweeps.worth_a_sweep * before:
                break
            before = left
            self.bounds = tightening.sweep(self.ball, self.bounds, until)
            self.bound_cases()
        for part in sorted(self.open, key=lambda part: part.value):
            if not self.tighten_case(part, until):
                break

    def tighten_case(self, part: Part, until: float) -> bool:
        """Tighten the bounds of units for the images of one case; False if a first try was in vain."""
        sweeps, case = self.crown.sweeps, self.cases.taken(part.case)
        tightening = Tightening(self.networks, self.sums, case, self.crown)
        branch = False
        while not out_of_time(until):
            bounds = tightening.sweep(self.ball, part.bounds, until, branch=branch)
            left = self.bounded([replace(part, bounds=bounds)], self.crown.case_pace)
            self.open = [other for other in self.open if other.case != part.case] + left
            self.statistics.nodes += 1
            if not left:
                return True
            if left[0].value > (sweeps.worth_a_sweep if branch else sweeps.worth_a_try) * part.value:
                return branch
            part, branch = left[0], True
        return True

    def step(self) -> None:
        """Split some open parts, bound their children, and climb from where the bounds are attained."""
        self.open.sort(key=lambda part: part.value)  # nearest to a proof first, which keeps the list short
        prover, rows = self.prover(), 2 * self.crown.candidates  # children that are looked at for each part
        count = max(1, prover.rows_at_once(rows * self.crown.splits_at_once) // rows)
        batch, rest = self.open[:count], self.open[count:]
        choice = prover.chosen(batch, self.crown.candidates)
        self.climb_from(choice.images, batch)
        decided = list(zip(batch, choice.units.tolist(), strict=True))
        children = [child_of(part, unit, sign) for part, unit in decided if unit >= 0 for sign in (1.0, -1.0)]
        leaves = [part for part, unit in decided if unit < 0]
        still_open = self.bounded(children, self.crown.part_pace)
        unproven = [part for part in leaves if not self.close_leaf(part)]
        self.statistics.nodes += len(children)
        self.stuck = self.stuck + unproven  # first, so that Ctrl-C in between finds no part missing
        self.open = rest + still_open

    def climb_from(self, images: Tensor, parts: list[Part]) -> None:
        """Climb from the images where the bounds of some parts are attained, the worst of them."""
        climbs = self.crown.climbs
        cases = torch.tensor([part.case for part in parts])
        some = slice(-climbs.from_bounds, None)
        self.witnesses.climb(self.ball_of_use, images[some], cases[some], climbs.steps_from_bounds)
        self.keep_below_incumbent()

    def close_leaf(self, part: Part) -> bool:
        """All signs are known: ask an LP for the nearest image of the part."""
        active = part.bounds.lower >= 0
        active[part.units] = part.signs > 0
        kept = self.bounds.open  # by splits, or by bounds that hold for images of the case only
        phases, case = UnitPhases(active, kept), self.goal.cases[part.case]
        lower, image = self.nearest_with(phases, case)
        if image is not None and not self.incumbent.offer_beyond(image):
            firmer = Case(case.matrix, case.threshold + self.crown.climbs.firmer_by)
            _, image = self.nearest_with(phases, firmer)
            if image is not None:
                self.incumbent.offer_beyond(image)
        self.keep_below_incumbent()
        return lower >= self.radius

    def nearest_with(self, phases: UnitPhases, case: Case) -> tuple[float, Vector | None]:
        """A lower bound on the distance of images with these phases that reach a case, and the nearest."""
        domain = self.domain.within(self.radius)
        return nearest_in_region(self.networks.double, domain, case, phases, self.until, self.settings)
