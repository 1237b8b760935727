"""Branch and bound over the signs of ReLUs, many parts at once, for wide and convolutional networks.

A part of the domain is closed when, in float64 and rounded outward, λ·(C·y − d) < 0 all over it: then none of
its images reaches its case. Its reach is the radius below which the same duals prove that: bounds at a larger
radius stay valid at a smaller one. Parts with all signs decided are left to an LP, whose bound is checked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import torch

from closecall.arrays import Vector
from closecall.bounds.dominated_pooling import without_losers
from closecall.clock import out_of_time
from closecall.milp import OnProgress
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.search.crown.ascent import Aim, Duals, Pace
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks, blocks_of
from closecall.search.crown.layer_bounds import UnitBounds, sums_of, unit_bounds
from closecall.search.crown.prover import Prover
from closecall.search.crown.region import nearest_in_region
from closecall.search.crown.relaxation import Sums
from closecall.search.crown.splitting import Part, child_of
from closecall.search.crown.tightening import Tightening
from closecall.search.crown.witnesses import Hunt

Status = Literal["proven", "witness", "limit", "interrupted"]

UNIT_PACE = Pace(20, slope_step=0.3, decay=0.95)
CASE_PACE = Pace(50, slope_step=0.2, decay=0.97)
PART_PACE = Pace(16, slope_step=0.1, decay=0.93)
PARTS_AT_ONCE = 64
QUICK_NODES = 2000  # that are tried before units are tightened by branching
CANDIDATES = 8
MOST_SLOPES = 5e8  # of all open parts together: a gigabyte
TOLERANCE = 1e-6  # scores that a solver's image may miss the goal by
CLIMBED, CLIMB_STEPS = 8, 10  # climbs from the relaxed solutions of a batch, and their steps
WORTH_A_SWEEP = 0.93  # sweeps go on while they leave less than this share of the cases' values
WORTH_A_TRY = 0.98  # the same for the first, cheap try to tighten for one case
SHARE_FOR_SWEEPS = 0.5  # of the time that is left
SHARE_FOR_A_STEP = 0.5  # of the time that is left, for a radius short of the nearest witness
FIRST_RADIUS, STEP_OF_RADIUS, LEAST_STEP = 0.3, 0.35, 0.07  # shares of the way to the nearest witness


@dataclass(frozen=True)
class Outcome:
    """What is known at the end; no image of the box within the distance `lower` reaches the goal."""

    status: Status
    witness: Vector | None
    lower: float
    nodes: int
    seconds: float


@dataclass(frozen=True)
class Watch:
    """Who is told of the interval, and of each nearer witness."""

    on_progress: OnProgress | None = None
    on_witness: Callable[[Vector], object] | None = None


class Search:
    """All that is known about one question: the open parts, the nearest witness and the proven radius."""

    def __init__(
        self,
        network: Network,
        domain: Domain,
        goal: Goal,
        seconds: float,
        watch: Watch,
        gap: float | None = None,
    ) -> None:
        self.began = time.perf_counter()
        self.until = self.began + seconds
        self.goal, self.domain, self.gap, self.watch = goal, domain, gap, watch
        self.network = network.simplified()
        self.whole = blocks_of(self.network)
        self.wide, self.narrow = self.whole, self.whole.to(torch.float32)
        self.ball = Ball.of(domain, torch.float64)
        self.hunt = Hunt(
            network,
            self.whole,
            (domain, goal),
            polish=gap is not None,
            until=self.until,
            on_witness=watch.on_witness,
        )
        self.bounds = UnitBounds(torch.zeros(0), torch.zeros(0))
        self.sums = Sums(torch.zeros(0), torch.zeros(0))
        self.open: list[Part] = []
        self.stuck: list[Part] = []
        self.floor = 0.0  # the largest radius that is proven
        self.nodes = 0

    @property
    def radius(self) -> float:
        """Nearer than this is all that matters."""
        return float(self.ball.radius)

    @property
    def lower(self) -> float:
        """The radius that is proven, here or by all open parts."""
        parts = [part.reach for part in (*self.open, *self.stuck)]
        return max(self.floor, min([self.radius, *parts])) if parts else self.floor

    def in_time(self) -> bool:
        return not out_of_time(self.until)

    def report(self) -> None:
        if self.watch.on_progress is not None:
            seconds = time.perf_counter() - self.began
            self.watch.on_progress(self.lower, self.hunt.distance, self.nodes, seconds)

    def run(self, method: Method) -> Outcome:
        try:
            status = method()
        except KeyboardInterrupt:
            status = "interrupted"
        seconds = time.perf_counter() - self.began
        return Outcome(status, self.hunt.witness, self.lower, self.nodes, seconds)

    def refute(self) -> Status:
        if self.hunt.everywhere(self.ball):
            return "witness"
        closed = self.prove(self.radius)
        if self.hunt.witness is not None:
            return "witness"
        return "proven" if closed else "limit"

    def shrink(self, witness: Vector) -> Status:
        """Prove larger and larger radii, up to the nearest witness.

        A radius short of it that is not proven in half of the time left is given up for a smaller one.
        """
        self.hunt.accept(witness)
        self.keep_below_witness()
        self.hunt.close_in(self.ball, 1.0 - (self.gap or 0.0))
        scale = 1.0
        while self.floor < self.needed:
            step = max(STEP_OF_RADIUS * (self.needed - self.floor), LEAST_STEP * self.needed)
            radius = self.floor + scale * (step if self.floor else FIRST_RADIUS * self.needed)
            whole_way = radius >= self.needed
            if self.prove(self.needed) if whole_way else self.prove_in_part(radius):
                continue
            if whole_way or self.stuck or not self.in_time():
                return "limit"
            self.floor = self.lower
            scale /= 2
        return "proven"

    def prove_in_part(self, radius: float) -> bool:
        """Try to close the ball of a radius in a part of the time that is left."""
        until, now = self.until, time.perf_counter()
        self.until = now + SHARE_FOR_A_STEP * (until - now)
        try:
            return self.prove(radius)
        finally:
            self.until = until

    @property
    def needed(self) -> float:
        """The radius whose proof would end the search."""
        return min(self.domain.radius, self.hunt.distance * (1.0 - (self.gap or 0.0)))

    @property
    def hunting_ground(self) -> Ball:
        """Where a witness would be of use, however small the radius of the proof at hand."""
        return self.ball.within(self.needed)

    def keep_below_witness(self) -> None:
        if self.gap is not None and self.needed < self.radius:
            self.ball = self.ball.within(self.needed)

    def prove(self, radius: float) -> bool:
        """Close the ball of a radius; False at a witness without a gap to close, or when time is over."""
        self.ball = self.ball.within(radius)
        self.wide = self.blocks_within(radius)
        self.narrow = self.wide.to(torch.float32)
        self.begin_anew()
        self.bound_units()
        self.bound_cases()
        self.branch(self.nodes + QUICK_NODES)
        if self.open and not self.over():
            self.begin_anew()
            self.bound_cases()
            self.tighten()
            self.branch(math.inf)
        if self.open or self.stuck:
            return False
        self.floor = max(self.floor, self.radius)
        self.report()
        return True

    def blocks_within(self, radius: float) -> Blocks:
        """The network as it is within a radius, where some entries of pooling windows never win."""
        smaller = without_losers(self.network, self.domain.within(radius), self.until)
        return self.whole if smaller is self.network else blocks_of(smaller)

    def over(self) -> bool:
        """Whether time is over, the open parts fill the memory, or a witness answers the question."""
        crowded = len(self.open) * self.wide.units > MOST_SLOPES
        return crowded or not self.in_time() or (self.gap is None and self.hunt.witness is not None)

    def branch(self, nodes: float) -> None:
        while self.open and self.nodes < nodes and not self.over():
            self.step()
            self.report()

    def begin_anew(self) -> None:
        """Open all cases again; in this order, so that Ctrl-C between the two finds no part missing."""
        self.open = self.roots()
        self.stuck = []

    def roots(self) -> list[Part]:
        """One part for each case, about which nothing is known yet."""
        rows = self.hunt.matrix.shape[1]
        duals = Duals(torch.zeros(0), torch.zeros(0), torch.full((rows,), 1.0 / rows))
        none = torch.zeros(0, dtype=torch.int64)
        cases = range(len(self.goal.cases))
        return [Part(case, none, torch.zeros(0), duals, math.inf, 0.0, self.bounds) for case in cases]

    def bound_units(self) -> None:
        """Bound all units over the ball, and leave out those that are zero all over it."""
        bounds = unit_bounds(self.wide, self.narrow, self.ball, UNIT_PACE, self.until)
        kept = ~(bounds.upper <= 0)  # NaN is no bound
        self.wide = self.wide.keeping(kept)
        self.narrow = self.wide.to(torch.float32)
        self.bounds = UnitBounds(bounds.lower[kept], bounds.upper[kept])
        self.sums = sums_of(self.wide, self.ball, self.bounds)

    def bound_cases(self) -> None:
        planes = self.bounds.planes
        slopes = torch.where(self.bounds.upper > -self.bounds.lower, planes.most, planes.least).float()
        parts = [
            replace(part, duals=replace(part.duals, slopes=slopes), bounds=self.bounds) for part in self.open
        ]
        self.open = self.bounded(parts, CASE_PACE)
        self.nodes += len(parts)

    def bounded(self, parts: list[Part], pace: Pace) -> list[Part]:
        """The parts that remain open; those that there is no time for remain as they are."""
        still_open: list[Part] = []
        prover, at_once = self.prover(), self.narrow.rows_at_once(2 * PARTS_AT_ONCE)
        for begin in range(0, len(parts), at_once):
            some = parts[begin : begin + at_once]
            still_open += prover.bounded(some, replace(pace, until=self.until)) if self.in_time() else some
        return still_open

    def prover(self) -> Prover:
        aims = Aim(self.wide.depth + 1, self.hunt.matrix, self.hunt.threshold)
        return Prover(self.wide, self.narrow, self.sums, self.ball, aims)

    def tighten(self) -> None:
        """Branch on the bounds of units for as long as that brings the cases nearer to their proofs."""
        tightening = Tightening((self.wide, self.narrow), self.sums)
        now = time.perf_counter()
        until = now + SHARE_FOR_SWEEPS * (self.until - now)
        before = math.inf
        while self.open and not out_of_time(until):
            left = sum(part.value for part in self.open)
            if left > WORTH_A_SWEEP * before:
                break
            before = left
            self.bounds = tightening.sweep(self.ball, self.bounds, until)
            self.bound_cases()
        for part in sorted(self.open, key=lambda part: part.value):
            if not self.tighten_case(part, until):
                break

    def tighten_case(self, part: Part, until: float) -> bool:
        """Tighten the bounds of units for the images of one case; False if a first try was in vain."""
        matrix, threshold = self.hunt.matrix[part.case], self.hunt.threshold[part.case]
        tightening = Tightening((self.wide, self.narrow), self.sums, (matrix, threshold))
        branch = False
        while not out_of_time(until):
            bounds = tightening.sweep(self.ball, part.bounds, until, branch=branch)
            left = self.bounded([replace(part, bounds=bounds)], CASE_PACE)
            self.open = [other for other in self.open if other.case != part.case] + left
            self.nodes += 1
            if not left:
                return True
            if left[0].value > (WORTH_A_SWEEP if branch else WORTH_A_TRY) * part.value:
                return branch
            part, branch = left[0], True
        return True

    def step(self) -> None:
        """Split some open parts, bound their children, and hunt where the bounds are attained."""
        self.open.sort(key=lambda part: part.value)  # nearest to a proof first, which keeps the list short
        count = max(1, self.narrow.rows_at_once(2 * CANDIDATES * PARTS_AT_ONCE) // (2 * CANDIDATES))
        batch, rest = self.open[:count], self.open[count:]
        choice = self.prover().chosen(batch, CANDIDATES)
        cases = torch.tensor([part.case for part in batch])
        self.hunt.climb(self.hunting_ground, choice.images[-CLIMBED:], cases[-CLIMBED:], CLIMB_STEPS)
        self.keep_below_witness()
        decided = list(zip(batch, choice.units.tolist(), strict=True))
        children = [child_of(part, unit, sign) for part, unit in decided if unit >= 0 for sign in (1.0, -1.0)]
        leaves = [part for part, unit in decided if unit < 0]
        still_open = self.bounded(children, PART_PACE)
        unproven = [part for part in leaves if not self.close_leaf(part)]
        self.nodes += len(children)
        self.stuck = self.stuck + unproven  # first, so that Ctrl-C in between finds no part missing
        self.open = rest + still_open

    def close_leaf(self, part: Part) -> bool:
        """All signs are known: ask an LP for the nearest image of the part."""
        active = part.bounds.lower >= 0
        active[part.units] = part.signs > 0
        kept = self.bounds.open  # by splits, or by bounds that hold for images of the case only
        case, domain = self.goal.cases[part.case], self.domain.within(self.radius)
        lower, image = nearest_in_region(self.wide, domain, case, (active, kept), self.until)
        if image is not None and not self.hunt.accept_beyond(image):
            firmer = Case(case.matrix, case.threshold + TOLERANCE)
            _, image = nearest_in_region(self.wide, domain, firmer, (active, kept), self.until)
            if image is not None:
                self.hunt.accept_beyond(image)
        self.keep_below_witness()
        return lower >= self.radius


class Method(Protocol):
    """A way to run the search."""

    def __call__(self) -> Status: ...
