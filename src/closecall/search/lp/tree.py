"""Our own branch and bound over the choices of a relaxation: the phases of ReLUs, the winners of poolings.

Each node fixes some gaps to 0. The search plunges into the more promising child (see `node_solver`) and takes
the open node of lowest bound when a plunge ends; several threads may plunge at once, each with its own LP.
Over a box, the tree goes on in a smaller one when an incumbent turns up.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from closecall.arrays import Vector
from closecall.search.incumbent import Statistics
from closecall.search.lp.node_solver import NodeSolver
from closecall.search.lp.open_nodes import Box, OnPoint, OpenNodes
from closecall.search.lp.pseudo_costs import PseudoCosts
from closecall.search.lp.relaxation import Relaxation
from closecall.settings import DEFAULT, LinearPrograms

SECONDS_BETWEEN_LOOKS = 0.05  # of the thread that waits for the workers


class Tree:
    """Minimise a relaxation's objective over all ways to make its choices, up to a cutoff."""

    def __init__(
        self,
        relaxation: Relaxation,
        cutoff: float,
        on_point: OnPoint,
        statistics: Statistics,
        settings: LinearPrograms = DEFAULT.lp,
    ) -> None:
        self.relaxation, self.settings = relaxation, settings
        self.open_nodes = OpenNodes(relaxation.branches.count, cutoff, on_point, statistics)
        self.gains = PseudoCosts(relaxation)
        self._ready: list[NodeSolver] = []

    @property
    def bound(self) -> float:
        """No point of the relaxation that makes all its choices is below this."""
        return self.open_nodes.bound

    @property
    def unproven(self) -> float:
        """The lowest bound of a node that was left without a proof."""
        return self.open_nodes.unproven

    def shrink(self, lower: Vector, upper: Vector) -> None:
        """Confine the first columns to a smaller box from now on: what was closed stays closed."""
        self.open_nodes.box = Box(lower, upper)

    def search(
        self,
        *,
        nodes: int | None = None,
        deadline: float = math.inf,
        threads: int = 1,
        stop: Callable[[], bool],
    ) -> bool:
        """Work until nothing below the cutoff is open; False when stopped before."""
        statistics = self.open_nodes.statistics
        last = math.inf if nodes is None else statistics.nodes + nodes

        def over() -> bool:
            return statistics.nodes >= last or time.perf_counter() > deadline or stop()

        done = self._alone(over, deadline) if threads == 1 else self._together(over, deadline, threads)
        if done:
            self.open_nodes.clear()
        return done

    def _alone(self, over: Callable[[], bool], deadline: float) -> bool:
        (solver,) = self._node_solvers(1)
        while self.open_nodes.more:
            if over():
                return False
            self._plunge_once(solver, deadline, over)
        return True

    def _together(self, over: Callable[[], bool], deadline: float, threads: int) -> bool:
        """Plunge in several threads while this one looks after them."""
        failures: list[Exception] = []

        def work(solver: NodeSolver) -> None:
            try:
                while self._plunge_once(solver, deadline, never, wait=True):
                    pass
            except Exception as failure:  # raised again below, where it can be seen
                failures.append(failure)
                self.open_nodes.halt()

        workers = [threading.Thread(target=work, args=(solver,)) for solver in self._node_solvers(threads)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                while worker.is_alive():
                    worker.join(SECONDS_BETWEEN_LOOKS)
                    if over():
                        self.open_nodes.halt()
        finally:
            self.open_nodes.halt()
            for worker in workers:
                worker.join()
            self.open_nodes.halted = False
        if failures:
            raise failures[0]
        return not self.open_nodes.more

    def _node_solvers(self, count: int) -> list[NodeSolver]:
        for number in range(len(self._ready), count):
            self._ready.append(
                NodeSolver(number, self.relaxation, self.open_nodes, self.gains, self.settings)
            )
        return self._ready[:count]

    def _plunge_once(
        self, solver: NodeSolver, deadline: float, over: Callable[[], bool], *, wait: bool = False
    ) -> bool:
        node = self.open_nodes.take(solver.number, wait=wait)
        if node is None:
            return False
        try:
            solver.plunge(node, deadline, over)
        finally:
            self.open_nodes.finish(solver.number)
        return True


def never() -> bool:
    """Several threads are halted by the one that looks after them."""
    return False
