"""Our own branch and bound over the choices of a relaxation: the phases of ReLUs, the winners of poolings.

Each node fixes some gaps to 0. The search dives into the more promising child (see `node_solver`) and takes the open
node of lowest bound when a dive ends; several threads may dive at once, each with an LP of its own.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from closecall.search.lp.node_solver import Diver
from closecall.search.lp.open_nodes import Frontier, OnPoint, Tally
from closecall.search.lp.pseudo_costs import PseudoCosts
from closecall.search.lp.relaxation import Relaxation

SECONDS_BETWEEN_LOOKS = 0.05  # of the thread that waits for the divers


class Tree:
    """Minimise a relaxation's objective over all ways to make its choices, up to a cutoff."""

    def __init__(self, relaxation: Relaxation, cutoff: float, on_point: OnPoint, tally: Tally) -> None:
        self.relaxation = relaxation
        self.frontier = Frontier(relaxation.choices, cutoff, on_point, tally)
        self.gains = PseudoCosts(relaxation)
        self._ready: list[Diver] = []

    @property
    def bound(self) -> float:
        """No point of the relaxation that makes all its choices is below this."""
        return self.frontier.bound

    @property
    def floor(self) -> float:
        """The lowest bound of a node that was left without a proof."""
        return self.frontier.floor

    def search(
        self,
        *,
        nodes: int | None = None,
        deadline: float = math.inf,
        threads: int = 1,
        stop: Callable[[], bool],
    ) -> bool:
        """Work until nothing below the cutoff is open; False when stopped before."""
        tally = self.frontier.tally
        last = math.inf if nodes is None else tally.nodes + nodes

        def over() -> bool:
            return tally.nodes >= last or time.perf_counter() > deadline or stop()

        done = self._alone(over, deadline) if threads == 1 else self._together(over, deadline, threads)
        if done:
            self.frontier.clear()
        return done

    def _alone(self, over: Callable[[], bool], deadline: float) -> bool:
        (diver,) = self._divers(1)
        while self.frontier.more:
            if over():
                return False
            self._dive_once(diver, deadline, over)
        return True

    def _together(self, over: Callable[[], bool], deadline: float, threads: int) -> bool:
        """Dive in several threads while this one looks after them."""
        failures: list[Exception] = []

        def work(diver: Diver) -> None:
            try:
                while self._dive_once(diver, deadline, never, wait=True):
                    pass
            except Exception as failure:  # raised again below, where it can be seen
                failures.append(failure)
                self.frontier.halt()

        workers = [threading.Thread(target=work, args=(diver,)) for diver in self._divers(threads)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                while worker.is_alive():
                    worker.join(SECONDS_BETWEEN_LOOKS)
                    if over():
                        self.frontier.halt()
        finally:
            self.frontier.halt()
            for worker in workers:
                worker.join()
            self.frontier.halted = False
        if failures:
            raise failures[0]
        return not self.frontier.more

    def _divers(self, count: int) -> list[Diver]:
        for number in range(len(self._ready), count):
            self._ready.append(Diver(number, self.relaxation, self.frontier, self.gains))
        return self._ready[:count]

    def _dive_once(
        self, diver: Diver, deadline: float, over: Callable[[], bool], *, wait: bool = False
    ) -> bool:
        node = self.frontier.take(diver.number, wait=wait)
        if node is None:
            return False
        try:
            diver.dive(node, deadline, over)
        finally:
            self.frontier.finish(diver.number)
        return True


def never() -> bool:
    """Several threads are halted by the one that looks after them."""
    return False
