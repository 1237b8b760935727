"""The open nodes of a tree that one or several threads search, and what all of them know."""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from closecall.arrays import Vector
from closecall.search.incumbent import Statistics
from closecall.search.lp.branches import Picks
from closecall.solvers.incremental_lp import Basis

# Called with the points of LPs that may be incumbents; gives back the cutoff from now on.
OnPoint = Callable[[Vector], float]

SECONDS_TO_WAIT = 0.05


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds of the first columns of a program."""

    lower: Vector
    upper: Vector


@dataclass(frozen=True)
class Parent:
    """What is needed to learn from a child: the parent's value, the entry picked and its share of gap."""

    value: float
    entry: int
    share: float


@dataclass(order=True)
class OpenNode:
    """A part of the search space and a proven lower bound on the objective over it.

    The basis is one of the program of the worker with the number `worker`, and of no use to another.
    """

    bound: float
    number: int
    picks: Picks = field(compare=False)
    basis: Basis | None = field(compare=False, default=None)
    parent: Parent | None = field(compare=False, default=None)
    worker: int = field(compare=False, default=0)


class OpenNodes:
    """Nodes to be searched, best first; all that changes while several threads search changes here."""

    def __init__(self, choices: int, cutoff: float, on_point: OnPoint, statistics: Statistics) -> None:
        self.cutoff = cutoff
        self.on_point = on_point
        self.statistics = statistics
        self.unproven = math.inf  # the lowest bound of a node that was left without a proof
        self.halted = False
        self.box: Box | None = None  # of the first columns, if it has become smaller than the program's
        self._open = [OpenNode(-math.inf, 0, np.full(choices, -1, dtype=np.int32))]
        self._taken: dict[int, float] = {}  # the bound of what each worker is searching
        self._numbers = 0
        self._changed = threading.Condition(threading.RLock())

    @property
    def bound(self) -> float:
        """No point that makes all its choices is below this."""
        with self._changed:
            nearest = [node.bound for node in self._open[:1]]
            return min([self.cutoff, self.unproven, *nearest, *self._taken.values()])

    @property
    def more(self) -> bool:
        """Whether a node below the cutoff is waiting."""
        with self._changed:
            return bool(self._open) and self._open[0].bound < self.cutoff

    def take(self, worker: int, *, wait: bool = False) -> OpenNode | None:
        """The node of lowest bound; none when none below the cutoff is left, or will come if one waits."""
        with self._changed:
            while wait and not self.halted and not self.more and self._taken:
                self._changed.wait(SECONDS_TO_WAIT)
            if self.halted or not self.more:
                return None
            node = heapq.heappop(self._open)
            self._taken[worker] = node.bound
            return node

    def finish(self, worker: int) -> None:
        """A worker has searched what it took, or put back what is left of it."""
        with self._changed:
            del self._taken[worker]
            self._changed.notify_all()

    def push(self, node: OpenNode) -> None:
        with self._changed:
            heapq.heappush(self._open, node)
            self._changed.notify()

    def clear(self) -> None:
        self._open = []

    def next_number(self) -> int:
        with self._changed:
            self._numbers += 1
            return self._numbers

    def count(self) -> None:
        with self._changed:
            self.statistics.nodes += 1

    def leave(self, bound: float) -> None:
        """Claim no more than the bound of a node that is left without a proof."""
        with self._changed:
            self.unproven = min(self.unproven, bound)

    def offer(self, values: Vector) -> None:
        """Show a point that may be an incumbent, and take over the new cutoff."""
        with self._changed:
            self.cutoff = min(self.cutoff, self.on_point(values))

    def halt(self) -> None:
        """Have every worker put back what it is searching."""
        with self._changed:
            self.halted = True
            self._changed.notify_all()
