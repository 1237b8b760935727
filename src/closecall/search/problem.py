"""What a method is given and what it gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from closecall.arrays import Vector
from closecall.clock import Clock
from closecall.encoding.encode import Costs
from closecall.milp import Limits, OnProgress
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a method needs; `nearest` is False when any witness in the domain will do."""

    network: Network
    domain: Domain
    goal: Goal
    clock: Clock
    nearest: bool = True
    gap: float = 1e-4
    solver: str = "highs"
    threads: int = 1
    costs: Costs | None = None
    on_progress: OnProgress | None = None

    @property
    def limits(self) -> Limits:
        return Limits(seconds=self.clock.left, threads=self.threads, relative_gap=self.gap / 2)

    @cached_property
    def simplified(self) -> Network:
        """The network as searches see it."""
        return self.network.simplified()

    @cached_property
    def known(self) -> Known:
        """What all stages of the search have found and proven so far."""
        return Known(self.domain, self.clock, self.on_progress)


@dataclass(frozen=True)
class Finding:
    """A witness (if any) and the proven distance below which there is none; infinity: none in the domain."""

    witness: Vector | None
    lower: float
    nodes: int = 0
    interrupted: bool = False
    notes: tuple[str, ...] = ()


class Known:
    """The interval so far: shown to whoever watches, and still there when a search is cut off anywhere."""

    def __init__(self, domain: Domain, clock: Clock, on_progress: OnProgress | None) -> None:
        self.domain, self.clock, self.on_progress = domain, clock, on_progress
        self.witness: Vector | None = None
        self.distance = math.inf
        self.lower = 0.0
        self.nodes = 0

    def offer(self, witness: Vector | None) -> None:
        """Keep an image that reaches the goal if it is the nearest so far."""
        distance = math.inf if witness is None else self.domain.distance(witness)
        if distance < self.distance:
            self.witness, self.distance = witness, distance
            self.show(self.lower, distance, self.nodes, self.clock.seconds)

    def prove(self, lower: float) -> None:
        """Keep a distance below which no image reaches the goal."""
        if math.isfinite(lower) and lower > self.lower:
            self.lower = lower
            self.show(lower, self.distance, self.nodes, self.clock.seconds)

    def report(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        """The `on_progress` of our own searches, which only report what is proven for the whole question."""
        if math.isfinite(lower):
            self.lower = max(self.lower, lower)
        self.nodes = max(self.nodes, nodes)
        self.show(lower, upper, nodes, seconds)

    def show(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        self.clock.check()
        if self.on_progress is not None:
            upper = min(upper, self.distance)
            self.on_progress(min(max(lower, self.lower), upper), upper, nodes, seconds)

    def joined(self, found: Finding) -> Finding:
        """A finding with the better of its witness and ours, and of both lower bounds."""
        lower = max(self.lower, found.lower)
        witness = found.witness
        if witness is None or self.distance < self.domain.distance(witness):
            witness = self.witness
        return Finding(witness, lower, max(found.nodes, self.nodes), found.interrupted, found.notes)
