"""One thread's part in searching a tree: plunges from open nodes, each an LP from its parent's basis.

Branching is by pseudo-costs, tried out by a few dual simplex steps until they are reliable; a plunge follows
the more promising child until there is none. A node is left when weak duality, recomputed here, proves that
it holds nothing better than the incumbent. One that HiGHS calls infeasible without a proof that can be
checked is left too, but then its own bound is all that the tree claims.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from closecall.arrays import Vector
from closecall.search.lp.branches import Picks
from closecall.search.lp.open_nodes import Box, OpenNode, OpenNodes, Parent
from closecall.search.lp.pseudo_costs import PseudoCosts
from closecall.search.lp.readings import Tangents
from closecall.search.lp.relaxation import Relaxation
from closecall.settings import LinearPrograms
from closecall.solvers.incremental_lp import Basis, WarmStatus

if TYPE_CHECKING:
    from closecall.search.lp.nearest_point import NearestPoint

OPEN_GAP = 1e-8  # a choice whose smallest relative gap is below this is made
BEYOND = 1e-8  # of the cutoff: where HiGHS may stop, so that its rounding does not spoil the proof


class NodeSolver:
    """A program of its own, the open nodes and the pseudo-costs of all."""

    def __init__(
        self,
        number: int,
        relaxation: Relaxation,
        open_nodes: OpenNodes,
        gains: PseudoCosts,
        settings: LinearPrograms,
    ) -> None:
        self.number, self.settings = number, settings
        self.relaxation = relaxation
        self.open_nodes = open_nodes
        self.gains = gains
        self.program = relaxation.warm()
        self.tangents = relaxation.tangents
        self.nearest_point = None if self.tangents is None else nearest_point(relaxation, self.tangents)
        self._box: Box | None = None
        fewer = max(1, settings.trials_of_all // max(1, relaxation.branches.count))
        self.reliable = min(settings.reliable_after, fewer)

    @property
    def beyond(self) -> float:
        """Where HiGHS may stop: a little above the cutoff."""
        cutoff = self.open_nodes.cutoff
        return cutoff + BEYOND * max(1.0, abs(cutoff))

    def plunge(self, node: OpenNode, deadline: float, over: Callable[[], bool]) -> None:
        """Search a node that was taken; what is left of it when the search is over goes back."""
        if node.basis is not None and node.worker == self.number:
            self.program.set_basis(node.basis)
        following: OpenNode | None = node
        while following is not None:
            node = following
            try:
                following = self._expand(node, deadline)
            except KeyboardInterrupt:
                self.open_nodes.push(node)
                raise
            if following is not None and (self.open_nodes.halted or time.perf_counter() > deadline or over()):
                self.open_nodes.push(following)
                return

    def _expand(self, node: OpenNode, deadline: float) -> OpenNode | None:
        """Solve a node; open its children but for the one to go on with."""
        while True:
            self._fix(node.picks)
            self.open_nodes.count()
            status, value, values = self._solve(deadline)
            if status == "limit":
                self.open_nodes.push(node)
                return None
            self._learn_from(node, status, value)
            if status != "optimal" or values is None:
                self._close(node, status)
                return None
            bound = max(node.bound, self.program.safe_bound())
            if bound >= self.open_nodes.cutoff:
                return None
            shares = self.relaxation.branches.shares(values)
            openness = self.gains.openness(shares, node.picks)
            self.open_nodes.offer(values)
            if bound >= self.open_nodes.cutoff:
                return None
            if self.open_nodes.box is not self._box:
                continue  # the point was taken, and lies outside of what is left: what else is here?
            if openness.max(initial=0.0) <= OPEN_GAP:
                # Every choice is made, yet the point was not taken: rounding; its bound is kept, not lost.
                self.open_nodes.leave(bound)
                return None
            choice, forced = self._choose(node, value, shares, openness, deadline)
            if choice < 0:
                return None
            if forced < 0:
                return self._split(OpenNode(bound, node.number, node.picks, None), choice, shares, value)
            node = OpenNode(bound, node.number, picked(node.picks, choice, forced), None)

    def _solve(self, deadline: float) -> tuple[WarmStatus, float, Vector | None]:
        """Minimise; in L2 again with the tangent at the nearest point, by which the node is judged."""
        self.relaxation.sharpen(self.program)
        left = max(self.settings.least_seconds, deadline - time.perf_counter())
        status, value, values = self.program.solve(cutoff=self.beyond, seconds=left)
        if values is None or self.nearest_point is None or self.tangents is None:
            return status, value, values
        found = self.nearest_point.solve(self.program.lower, self.program.upper, self.beyond)
        if self.tangents.place(found.multipliers, found.length, values):
            self.relaxation.sharpen(self.program)
            left = max(self.settings.least_seconds, deadline - time.perf_counter())
            status, value, values = self.program.solve(cutoff=self.beyond, seconds=left)
        if values is not None:
            values = np.concatenate([found.values if found.close else values, found.shift])
        return status, value, values

    def _learn_from(self, node: OpenNode, status: str, value: float) -> None:
        if node.parent is None:
            return
        ceiling = self.open_nodes.cutoff if math.isfinite(self.open_nodes.cutoff) else node.parent.value + 1.0
        reached = min(value, ceiling) if status == "optimal" else ceiling
        self.gains.learn(node.parent.entry, max(reached - node.parent.value, 0.0), node.parent.share)

    def _close(self, node: OpenNode, status: str) -> None:
        """Close a node that HiGHS calls infeasible or above the cutoff; without a proof its bound is kept."""
        if status == "infeasible":
            proven = self.program.farkas_proves_infeasible()
        else:
            proven = self.program.safe_bound() >= self.open_nodes.cutoff
        if not proven:
            self.open_nodes.leave(node.bound)

    def _fix(self, picks: Picks) -> None:
        box = self.open_nodes.box
        if box is not None and box is not self._box:
            self.program.set_column_bounds(np.arange(len(box.lower)), box.lower, box.upper)
            self._box = box
        self.relaxation.branches.fix(self.program, picks)

    def _choose(
        self, node: OpenNode, value: float, shares: Vector, openness: Vector, deadline: float
    ) -> tuple[int, int]:
        """The choice to branch on and −1; a choice and its only entry left; or −1, −1 when none is left."""
        scores = self.gains.scores(shares)
        candidates = np.flatnonzero(openness > OPEN_GAP)
        order = candidates[np.argsort(-scores[candidates])][: self.settings.trials]
        basis: Basis | None = None
        best, most = int(order[0]), -1.0
        for choice in order:
            if time.perf_counter() > deadline:  # trials of a large program take longer than most searches
                break
            members = self.relaxation.branches.members[choice]
            score = float(scores[choice])
            if self.gains.trials[members].min() < self.reliable:
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

    def _try(
        self, node: OpenNode, value: float, choice: int, entry: int, shares: Vector, basis: Basis
    ) -> bool:
        """A few simplex steps into a child; False when the child is proven to hold nothing."""
        self.program.set_basis(basis)
        self._fix(picked(node.picks, choice, entry))
        status, reached, _ = self.program.solve(cutoff=self.beyond, iterations=self.settings.trial_steps)
        closed = (status == "infeasible" and self.program.farkas_proves_infeasible()) or (
            status == "cutoff" and self.program.safe_bound() >= self.open_nodes.cutoff
        )
        ceiling = self.open_nodes.cutoff if math.isfinite(self.open_nodes.cutoff) else value + 1.0
        gain = ceiling - value if status in ("infeasible", "cutoff") else min(reached, ceiling) - value
        self.gains.learn(entry, max(gain, 0.0), float(shares[entry]))
        return not closed

    def _split(self, node: OpenNode, choice: int, shares: Vector, value: float) -> OpenNode:
        """One child for each entry of the choice; go on with the entry of the smallest share."""
        members = self.relaxation.branches.members[choice]
        order = members[np.argsort(shares[members])]
        basis = self.program.get_basis()
        children = []
        for entry in order:
            parent = Parent(value, int(entry), float(shares[entry]))
            picks, number = picked(node.picks, choice, int(entry)), self.open_nodes.next_number()
            children.append(OpenNode(node.bound, number, picks, basis, parent, self.number))
        for child in children[1:]:
            self.open_nodes.push(child)
        return replace(children[0], basis=None)


def nearest_point(relaxation: Relaxation, tangents: Tangents) -> NearestPoint:
    from closecall.search.lp.nearest_point import NearestPoint  # only in L2, since scipy.linalg loads slowly

    return NearestPoint(relaxation.program, tangents.readings, tangents.domain)


def picked(picks: Picks, choice: int, entry: int) -> Picks:
    copy = picks.copy()
    copy[choice] = entry
    return copy
