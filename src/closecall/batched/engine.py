"""Branch and bound over the signs of ReLUs, many parts at once, for wide and convolutional networks.

A part of the domain is closed when, in float64 and rounded outward, λ·(C·y − d) < 0 all over it: then none of its
images reaches its case. Its reach is the radius below which the same duals prove that: bounds at a larger radius
stay valid at a smaller one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from closecall.batched.ascent import Aim, Duals, Pace
from closecall.batched.ball import Ball
from closecall.batched.blocks import blocks_of
from closecall.batched.gradient import ascend
from closecall.batched.layer_bounds import UnitBounds, unit_bounds
from closecall.batched.prover import Prover
from closecall.batched.region import nearest_in_region
from closecall.batched.splitting import Part, child_of
from closecall.batched.tightening import Tightening
from closecall.domain import Domain
from closecall.network import Network
from closecall.query import Goal

Vector = NDArray[np.float64]
Status = Literal["proven", "witness", "limit", "interrupted"]

ROOT_PACE = Pace(20, slope_step=0.3, decay=0.95)
CASE_PACE = Pace(50, slope_step=0.2, decay=0.97)
PART_PACE = Pace(16, slope_step=0.1, decay=0.93)
PARTS_AT_ONCE = 64
CANDIDATES = 8
RESTARTS = 16
ATTACK_STEPS = 40
ATTACKED = 8


@dataclass(frozen=True)
class Outcome:
    """What is known at the end; `lower` is a proven radius: no image of the box within it reaches the goal."""

    status: Status
    witness: Vector | None
    lower: float
    nodes: int
    seconds: float


class OnProgress(Protocol):
    """Called now and then with the proven radius, the nearest witness's distance, the nodes and the seconds."""

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None: ...


def refute(
    network: Network,
    domain: Domain,
    goal: Goal,
    *,
    seconds: float,
    threads: int = 1,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Find an image of the domain that reaches the goal, or prove that there is none."""
    with torch_threads(threads):
        search = Search(network, domain, goal, seconds, on_progress)
        return search.run(lambda: search.witness is not None)


def shrink(
    network: Network,
    domain: Domain,
    goal: Goal,
    witness: Vector,
    *,
    gap: float,
    seconds: float,
    threads: int = 1,
    on_progress: OnProgress | None = None,
) -> tuple[Vector, Outcome]:
    """From a known witness to the nearest one, up to a relative gap, as far as the time allows."""
    with torch_threads(threads):
        search = Search(network, domain, goal, seconds, on_progress, gap)
        search.accept(witness)
        outcome = search.run(lambda: False)
        assert search.witness is not None
        return search.witness, outcome


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)


class Search:
    """All that is known about one question: the open parts, the nearest witness and the radius still in doubt."""

    def __init__(
        self,
        network: Network,
        domain: Domain,
        goal: Goal,
        seconds: float,
        on_progress: OnProgress | None,
        gap: float | None = None,
    ) -> None:
        self.began = time.perf_counter()
        self.until = self.began + seconds
        self.network, self.domain, self.goal, self.gap = network, domain, goal, gap
        self.on_progress = on_progress
        self.wide = blocks_of(network)
        self.narrow = self.wide.to(torch.float32)
        self.ball = Ball.of(domain, torch.float64)
        self.matrix, self.threshold = goal_tensors(goal)
        self.witness: Vector | None = None
        self.upper = math.inf
        self.nodes = 0
        self.bounds = UnitBounds(torch.zeros(0), torch.zeros(0))
        self.generator = torch.Generator().manual_seed(0)
        weights = torch.full((self.matrix.shape[1],), 1.0 / self.matrix.shape[1])
        none = Duals(torch.zeros(0), torch.zeros(0), weights)
        empty = torch.zeros(0, dtype=torch.int64)
        self.open = [
            Part(case, empty, torch.zeros(0), none, math.inf, 0.0, self.bounds)
            for case in range(len(goal.cases))
        ]
        self.stuck: list[Part] = []

    @property
    def radius(self) -> float:
        return float(self.ball.radius)

    @property
    def lower(self) -> float:
        return min([self.radius, *(part.reach for part in self.open), *(part.reach for part in self.stuck)])

    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def run(self, finished: Finished) -> Outcome:
        try:
            self.attack_everywhere()
            if not finished():
                self.bound_units()
                self.bound_cases()
                self.tighten()
            while self.open and not finished() and time.perf_counter() < self.until:
                self.step()
                if self.on_progress is not None:
                    self.on_progress(self.lower, self.upper, self.nodes, self.seconds())
        except KeyboardInterrupt:
            return self.outcome("interrupted")
        if finished():
            return self.outcome("witness")
        return self.outcome("limit" if self.open or self.stuck else "proven")

    def outcome(self, status: Status) -> Outcome:
        return Outcome(status, self.witness, self.lower, self.nodes, self.seconds())

    # Witnesses

    def accept(self, image: Vector) -> bool:
        """Take an image as the nearest witness if it is one, and shrink the ball below it."""
        image = self.domain.clip(np.asarray(image, dtype=np.float64).ravel())
        distance = self.domain.distance(image)
        if distance > min(self.domain.radius, self.upper) or distance == self.upper:
            return False
        if not self.goal.slack(self.network.forward(image[None]))[0] >= 0:
            return False
        self.witness, self.upper = image, distance
        if self.gap is not None:
            self.ball = self.ball.within(min(self.radius, distance * (1.0 - self.gap)))
            self.polish()
        return True

    def polish(self) -> None:
        """Step to the nearest witness in the same linear region."""
        from closecall.batched.gradient import forward

        assert self.witness is not None
        scores, active = forward(self.wide, torch.from_numpy(self.witness)[None])
        slacks = [float(case.slack(scores.numpy())[0]) for case in self.goal.cases]
        case = self.goal.cases[int(np.argmax(slacks))]
        domain = self.domain.within(self.upper)
        kept = self.bounds.open if len(self.bounds.lower) else torch.ones_like(active[0])
        _, image = nearest_in_region(
            self.wide, domain, case, (active[0], kept), self.until - time.perf_counter()
        )
        if image is None:
            return
        # The solver's tolerance may leave the image just short of the goal: go a little beyond it.
        for beyond in (1.0, 1.0 + 1e-7, 1.0 + 1e-6, 1.0 + 1e-5):
            if self.accept(domain.centre + beyond * (image - domain.centre)):
                return

    def attack_everywhere(self) -> None:
        """Climb towards every case from random places of the domain."""
        cases = torch.arange(len(self.goal.cases)).repeat(RESTARTS)
        ball = self.ball.to(torch.float32)
        directions = torch.randn(len(cases), self.wide.pixels, generator=self.generator)
        shares = torch.rand(len(cases), 1, generator=self.generator)
        shares[: len(self.goal.cases)] = 0.0
        images = ball.centre + shares * ball.furthest(directions)
        self.attack(images, cases, ATTACK_STEPS)

    def attack(self, images: Tensor, cases: Tensor, steps: int) -> bool:
        ball = self.ball.to(torch.float32)
        matrix, threshold = self.matrix.float()[cases], self.threshold.float()[cases]
        found, slack = ascend(self.narrow, ball, matrix, threshold, images, steps)
        best = slack.argmax()
        return self.accept(self.inside(found[best])) if slack[best] > -1e-4 else False

    def inside(self, image: Tensor) -> Vector:
        """An image of float32 numbers, moved into the box and the ball."""
        image64 = self.domain.clip(image.double().numpy())
        if self.domain.norm.name == "linf":
            reach = min(self.radius, self.domain.radius)
            return np.clip(image64, self.domain.centre - reach, self.domain.centre + reach)
        distance = self.domain.distance(image64)
        if self.domain.norm.name == "l0" or distance <= self.domain.radius:
            return image64
        share = self.domain.radius / distance * (1 - 1e-9)
        return np.asarray(self.domain.centre + share * (image64 - self.domain.centre))

    # Bounds

    def prover(self) -> Prover:
        aims = Aim(self.wide.depth + 1, self.matrix, self.threshold)
        return Prover(self.wide, self.narrow, self.ball, aims)

    def bound_units(self) -> None:
        bounds = unit_bounds(self.wide, self.narrow, self.ball, ROOT_PACE, self.until)
        self.use(bounds)

    def tighten(self) -> None:
        """Branch on the bounds of units for as long as that brings the cases nearer to their proofs."""
        tightening = Tightening((self.wide, self.narrow))
        until = min(self.until, time.perf_counter() + 0.5 * (self.until - time.perf_counter()))
        before = math.inf
        while self.open and time.perf_counter() < until:
            left = sum(part.value for part in self.open)
            if left > 0.93 * before:
                break
            before = left
            self.bounds = tightening.sweep(self.ball, self.bounds, until)
            self.bound_cases()

    def use(self, bounds: UnitBounds) -> None:
        """Take bounds for the whole domain, and leave out the units that are zero all over it."""
        kept = bounds.upper > 0
        self.wide = self.wide.keeping(kept)
        self.narrow = self.wide.to(torch.float32)
        self.bounds = UnitBounds(bounds.lower[kept], bounds.upper[kept])

    def bound_cases(self) -> None:
        planes = self.bounds.planes
        slopes = torch.where(self.bounds.upper > -self.bounds.lower, planes.most, planes.least).float()
        parts = [
            replace(part, duals=replace(part.duals, slopes=slopes), bounds=self.bounds) for part in self.open
        ]
        self.open = self.prover().bounded(parts, CASE_PACE)
        self.nodes += len(parts)

    # Branching

    def step(self) -> None:
        """Split some open parts, bound their children, and look for witnesses where the bounds are attained."""
        batch = self.next_batch()
        choice = self.prover().chosen(batch, CANDIDATES)
        few = slice(-ATTACKED, None)
        self.attack(choice.images[few], torch.tensor([part.case for part in batch[few]]), 10)
        children: list[Part] = []
        for part, unit in zip(batch, choice.units.tolist(), strict=True):
            if unit < 0:
                self.close_leaf(part)
                continue
            for sign in (1.0, -1.0):
                children.append(child_of(part, unit, sign))
        still_open = self.prover().bounded(children, PART_PACE) if children else []
        self.nodes += len(children)
        taken = set(map(id, batch))
        self.open = [part for part in self.open if id(part) not in taken] + still_open

    def next_batch(self) -> list[Part]:
        """The parts nearest to a proof, which keeps the list short, and always the one with the least reach."""
        self.open.sort(key=lambda part: part.value)
        return self.open[:PARTS_AT_ONCE]

    def close_leaf(self, part: Part) -> None:
        """All signs are known: ask an LP for the nearest image of the part."""
        active = self.bounds.lower >= 0
        active[part.units] = part.signs > 0
        kept = torch.zeros_like(active)
        kept[part.units] = True
        lower, image = nearest_in_region(
            self.wide,
            self.domain.within(self.radius),
            self.goal.cases[part.case],
            (active, kept),
            self.until - time.perf_counter(),
        )
        found = image is not None and self.accept(self.inside(torch.from_numpy(image)))
        if lower < self.radius and not (found and self.gap is not None):
            self.stuck.append(part)


class Finished(Protocol):
    def __call__(self) -> bool: ...


def goal_tensors(goal: Goal) -> tuple[Tensor, Tensor]:
    """The rows of all cases (cases, rows, classes) and their thresholds, short cases filled with their first row."""
    most = max(len(case.threshold) for case in goal.cases)
    matrix = np.stack([case.matrix[fill(len(case.threshold), most)] for case in goal.cases])
    threshold = np.stack([case.threshold[fill(len(case.threshold), most)] for case in goal.cases])
    return torch.from_numpy(matrix), torch.from_numpy(threshold)


def fill(count: int, most: int) -> NDArray[np.int64]:
    places = np.arange(most)
    return np.where(places < count, places, 0)
