"""Our own branch and bound over the choices of a relaxation: the phases of ReLUs, the winners of poolings.

Each node fixes some gaps to 0 and solves an LP from its parent's basis. Branching is by pseudo-costs, tried
out by a few dual simplex steps until they are reliable; the search dives into the more promising child and
takes the open node of lowest bound when a dive ends. A node is left when weak duality, recomputed here,
proves that it holds nothing better than the incumbent. One that HiGHS calls infeasible without a proof that
can be checked is left too, but then its own bound is all that the tree claims.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from closecall.relaxation import Relaxation
from closecall.solvers.warm import Basis, WarmProgram

Vector = NDArray[np.float64]
Picks = NDArray[np.int32]  # for each choice the entry picked, −1 while it is open

TRIALS = 16  # candidates tried out at a node
RELIABLE = 8  # trials after which a pseudo-cost is believed
TRIAL_STEPS = 50  # dual simplex steps of a trial
OPEN_GAP = 1e-8  # a choice whose smallest relative gap is below this is made
LEAST_GAIN = 1e-6
BEYOND = 1e-8
LEAST_SECONDS = 0.01  # for an LP that is begun just before the deadline
NEARLY_MADE = 4  # points with at most so many open choices are worth a look as incumbents


@dataclass(frozen=True)
class Parent:
    """What is needed to learn from a child: the parent's value, the entry picked and its share of gap."""

    value: float
    entry: int
    share: float


@dataclass(order=True)
class Node:
    """A part of the search space and a proven lower bound on the objective over it."""

    bound: float
    number: int
    picks: Picks = field(compare=False)
    basis: Basis | None = field(compare=False)
    parent: Parent | None = field(compare=False, default=None)


@dataclass
class Tally:
    """What the search has cost so far."""

    nodes: int = 0


# Called with the points of LPs that may be incumbents; gives back the cutoff from now on.
OnPoint = Callable[[Vector], float]


class Tree:
    """Minimise a relaxation's objective over all ways to make its choices, up to a cutoff."""

    def __init__(self, relaxation: Relaxation, cutoff: float, on_point: OnPoint, tally: Tally) -> None:
        self.relaxation = relaxation
        self.program = WarmProgram(relaxation.program, lazy=relaxation.lazy)
        self.cutoff = cutoff
        self.on_point = on_point
        self.tally = tally
        self.gains = PseudoCosts(relaxation)
        root = Node(-math.inf, 0, np.full(relaxation.choices, -1, dtype=np.int32), None)
        self.open = [root]
        self.floor = math.inf
        self._numbers = 0

    @property
    def bound(self) -> float:
        """No point of the relaxation that makes all its choices is below this."""
        return min([self.cutoff, self.floor, *(node.bound for node in self.open[:1])])

    @property
    def beyond(self) -> float:
        """Where HiGHS may stop: so far above the cutoff that its rounding does not spoil the proof."""
        return self.cutoff + BEYOND * max(1.0, abs(self.cutoff))

    def search(
        self, *, nodes: int | None = None, deadline: float = math.inf, stop: Callable[[], bool]
    ) -> bool:
        """Work until nothing below the cutoff is open; False when stopped before."""
        last = math.inf if nodes is None else self.tally.nodes + nodes
        while self.open and self.open[0].bound < self.cutoff:
            if self.tally.nodes >= last or time.perf_counter() > deadline or stop():
                return False
            node = heapq.heappop(self.open)
            if node.basis is not None:
                self.program.set_basis(node.basis)
            self._dive(node, deadline)
        self.open = []
        return True

    def _dive(self, node: Node | None, deadline: float) -> None:
        """Follow the more promising child until there is none left; an interrupted node goes back."""
        while node is not None:
            try:
                following = self._expand(node, deadline)
            except KeyboardInterrupt:
                heapq.heappush(self.open, node)
                raise
            if following is not None and time.perf_counter() > deadline:
                heapq.heappush(self.open, following)
                return
            node = following

    def _expand(self, node: Node, deadline: float) -> Node | None:
        """Solve a node; open its children but for the one to go on with."""
        while True:
            self._fix(node.picks)
            self.tally.nodes += 1
            left = max(LEAST_SECONDS, deadline - time.perf_counter())
            status, value, values = self.program.solve(cutoff=self.beyond, seconds=left)
            if status == "limit":
                heapq.heappush(self.open, node)
                return None
            self._learn_from(node, status, value)
            if status != "optimal" or values is None:
                self._leave(node, status)
                return None
            bound = max(node.bound, self.program.safe_bound())
            if bound >= self.cutoff:
                return None
            shares = self._shares(values)
            openness = self.gains.openness(shares, node.picks)
            if np.count_nonzero(openness > OPEN_GAP) <= NEARLY_MADE:
                self.cutoff = min(self.cutoff, self.on_point(values))
                if bound >= self.cutoff:
                    return None
            if openness.max(initial=0.0) <= OPEN_GAP:
                # Every choice is made, yet the point was not taken: rounding; its bound is kept, not lost.
                self.floor = min(self.floor, bound)
                return None
            choice, forced = self._choose(node, value, shares, openness)
            if choice < 0:
                return None
            if forced < 0:
                return self._split(Node(bound, node.number, node.picks, None), choice, shares, value)
            node = Node(bound, node.number, picked(node.picks, choice, forced), None)

    def _learn_from(self, node: Node, status: str, value: float) -> None:
        if node.parent is None:
            return
        ceiling = self.cutoff if math.isfinite(self.cutoff) else node.parent.value + 1.0
        reached = min(value, ceiling) if status == "optimal" else ceiling
        self.gains.learn(node.parent.entry, max(reached - node.parent.value, 0.0), node.parent.share)

    def _leave(self, node: Node, status: str) -> None:
        """Close a node that HiGHS calls infeasible or above the cutoff; without a proof its bound is kept."""
        if status == "infeasible":
            proven = self.program.farkas_proves_infeasible()
        else:
            proven = self.program.safe_bound() >= self.cutoff
        if not proven:
            self.floor = min(self.floor, node.bound)

    def _fix(self, picks: Picks) -> None:
        entries = self.relaxation.entries
        upper = entries.most.copy()
        upper[picks[picks >= 0]] = 0.0
        self.program.set_column_bounds(entries.gap, np.zeros(len(upper)), upper)

    def _shares(self, values: Vector) -> Vector:
        entries = self.relaxation.entries
        return np.asarray(np.maximum(values[entries.gap], 0.0) / entries.most)

    def _choose(self, node: Node, value: float, shares: Vector, openness: Vector) -> tuple[int, int]:
        """The choice to branch on and −1; a choice and its only entry left; or −1, −1 when none is left."""
        scores = self.gains.scores(shares)
        candidates = np.flatnonzero(openness > OPEN_GAP)
        order = candidates[np.argsort(-scores[candidates])][:TRIALS]
        basis: Basis | None = None
        best, most = int(order[0]), -1.0
        for choice in order:
            members = self.relaxation.members[choice]
            score = float(scores[choice])
            if self.gains.trials[members].min() < RELIABLE:
                basis = self.program.get_basis() if basis is None else basis
                alive = [
                    entry
                    for entry in members
                    if self._try(node, value, int(choice), int(entry), shares, basis)
                ]
                if len(alive) <= 1:
                    self.program.set_basis(basis)
                    return (int(choice), int(alive[0])) if alive else (-1, -1)
                score = self.gains.score_of_last_trials(members)
            if score > most:
                best, most = int(choice), score
        if basis is not None:
            self.program.set_basis(basis)
        return best, -1

    def _try(self, node: Node, value: float, choice: int, entry: int, shares: Vector, basis: Basis) -> bool:
        """A few simplex steps into a child; False when the child is proven to hold nothing."""
        self.program.set_basis(basis)
        self._fix(picked(node.picks, choice, entry))
        status, reached, _ = self.program.solve(cutoff=self.beyond, iterations=TRIAL_STEPS)
        closed = (status == "infeasible" and self.program.farkas_proves_infeasible()) or (
            status == "cutoff" and self.program.safe_bound() >= self.cutoff
        )
        ceiling = self.cutoff if math.isfinite(self.cutoff) else value + 1.0
        gain = ceiling - value if status in ("infeasible", "cutoff") else min(reached, ceiling) - value
        self.gains.learn(entry, max(gain, 0.0), float(shares[entry]))
        return not closed

    def _split(self, node: Node, choice: int, shares: Vector, value: float) -> Node:
        """One child for each entry of the choice; go on with the entry of the smallest share."""
        members = self.relaxation.members[choice]
        order = members[np.argsort(shares[members])]
        basis = self.program.get_basis()
        children = []
        for entry in order:
            self._numbers += 1
            parent = Parent(value, int(entry), float(shares[entry]))
            children.append(
                Node(node.bound, self._numbers, picked(node.picks, choice, int(entry)), basis, parent)
            )
        for child in children[1:]:
            heapq.heappush(self.open, child)
        return replace(children[0], basis=None)


class PseudoCosts:
    """How much the bound rose for each entry when its gap was closed, per share of gap closed."""

    def __init__(self, relaxation: Relaxation) -> None:
        count = len(relaxation.entries.choice)
        self.order = np.argsort(relaxation.entries.choice, kind="stable")  # entries, choice by choice
        self.starts = np.flatnonzero(np.diff(relaxation.entries.choice[self.order], prepend=-1))
        self.sums = np.zeros(count)
        self.trials = np.zeros(count)
        self.last = np.zeros(count)

    def learn(self, entry: int, gain: float, share: float) -> None:
        self.sums[entry] += gain / max(share, 1e-6)
        self.trials[entry] += 1
        self.last[entry] = gain

    def openness(self, shares: Vector, picks: Picks) -> Vector:
        """How far each open choice is from being made: the smallest share of its entries."""
        smallest = np.minimum.reduceat(shares[self.order], self.starts)
        return np.asarray(np.where(picks >= 0, 0.0, smallest))

    def scores(self, shares: Vector) -> Vector:
        """For each choice the product of its smallest and its largest expected gain."""
        average = self.sums.sum() / max(self.trials.sum(), 1.0)
        rates = np.where(self.trials > 0, self.sums / np.maximum(self.trials, 1.0), average + 1e-9)
        expected = np.maximum(rates * shares, LEAST_GAIN)[self.order]
        return np.asarray(
            np.minimum.reduceat(expected, self.starts) * np.maximum.reduceat(expected, self.starts)
        )

    def score_of_last_trials(self, members: NDArray[np.int64]) -> float:
        gains = np.maximum(self.last[members], LEAST_GAIN)
        return float(gains.min() * gains.max())


def picked(picks: Picks, choice: int, entry: int) -> Picks:
    copy = picks.copy()
    copy[choice] = entry
    return copy
