"""What a method is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from closecall.arrays import Vector
from closecall.bounds import Bounds, linear_bounds
from closecall.bounds.dominated_pooling import without_losers
from closecall.clock import Clock
from closecall.encoding.encode import Costs
from closecall.milp import Limits, OnProgress
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal
from closecall.search.incumbent import Incumbent, OnWitness
from closecall.search.level_incumbent import LevelIncumbent
from closecall.search.presolve import Presolved, presolve
from closecall.settings import DEFAULT, Settings


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a method needs; `nearest` is False when any witness in the domain will do.

    Of images of levels any will do also where `first_of_levels` says so: not all that engines find are such.

    Methods write what they find and prove to `incumbent`, remarks to `notes`, which engines they asked to
    `asked`, and why these to `why`.
    """

    network: Network
    domain: Domain
    goal: Goal
    clock: Clock
    nearest: bool = True
    first_of_levels: bool = False
    gap: float = 1e-4
    solver: str = "highs"
    threads: int = 1
    costs: Costs | None = None
    on_progress: OnProgress | None = None
    on_witness: OnWitness | None = None
    settings: Settings = DEFAULT
    notes: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _bounded: list[tuple[float, Bounds]] = field(default_factory=list, repr=False)
    _within: list[Presolved] = field(default_factory=list, repr=False)

    @property
    def limits(self) -> Limits:
        return Limits(seconds=self.clock.left, threads=self.threads, relative_gap=self.gap / 2)

    @cached_property
    def simplified(self) -> Network:
        """The network as searches see it."""
        return self.network.simplified()

    def bounds_within(self, radius: float) -> Bounds:
        """Linear bounds of the simplified network; the last ones are kept, since many ask for the same."""
        domain = self.domain.within(radius)
        if not self._bounded or self._bounded[-1][0] != domain.radius:
            until = self.clock.share(self.settings.auto.share_for_bounds)
            bounds = linear_bounds(self.simplified, domain, until, self.settings.linear_bounds)
            self._bounded[:] = [(domain.radius, bounds)]
        return self._bounded[-1][1]

    def within(self, radius: float) -> Presolved:
        """The network as it is within a radius; the last one is kept, too."""
        domain = self.domain.within(radius)
        if not self._within or self._within[-1].domain.radius != domain.radius:
            until, settings = self.clock.share(self.settings.auto.share_for_bounds), self.settings
            network = without_losers(self.simplified, domain, until, settings.linear_bounds)
            same = network is self.simplified
            bounds = (
                self.bounds_within(radius)
                if same
                else linear_bounds(network, domain, until, settings.linear_bounds)
            )
            self._within[:] = [presolve(network, domain, self.goal, bounds, until, settings.sizes)]
        return self._within[-1]

    @cached_property
    def incumbent(self) -> Incumbent:
        """What all stages of the search have found and proven so far."""
        known = self.simplified, self.domain, self.goal, self.clock
        shown: dict[str, Any] = {"on_progress": self.on_progress, "on_witness": self.on_witness}
        if self.domain.levels is None:
            return Incumbent(*known, gap=self.gap, nearest=self.nearest, **shown)
        rounding = self.settings.rounding
        nearest = not self.any_will_do
        return LevelIncumbent(*known, rounding=rounding, gap=self.gap, nearest=nearest, **shown)

    @property
    def any_will_do(self) -> bool:
        return not self.nearest or self.first_of_levels


@dataclass(frozen=True)
class Finding:
    """A witness (if any) and the proven distance below which there is none; infinity: none in the domain.

    `engine` is what answered, or what was at work when the search ended; `why` says how it was chosen.
    """

    witness: Vector | None
    lower: float
    nodes: int = 0
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    engine: str = ""
    why: tuple[str, ...] = ()
    domain: Domain | None = None  # where the witness was looked for, if in a part of the question's domain
