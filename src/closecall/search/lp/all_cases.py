"""`auto` for L1 on small networks: every class that could win is settled against the same incumbent.

At first within the incumbent's distance (see `one_case`). The cases that this leaves open are then proven for
smaller radii, where all bounds are tighter: larger and larger ones, as far as the time allows.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress

from closecall.arrays import Vector
from closecall.clock import OutOfTimeError
from closecall.search.first_bound import first_floor
from closecall.search.lp.one_case import Hunt, Trial, nearest_first, settle
from closecall.search.problem import Finding, Problem

MANY_UNITS = 250  # from here on climbs from many places pay
SHARE_FOR_CLIMBS = 0.2  # of the time left
SHARE_FOR_THE_FLOOR = 0.4  # of the time left, for what linear bounds alone prove
PATIENCE = 0.3  # of its time, in which a tree over the whole distance must prove something new
SHARE_FOR_A_STEP = 0.5  # of the time left, for one radius
LEAST_STEP = 0.15  # of the distance, at first
LEAST_SCALE = 1 / 64
NEARLY_THERE = 0.9  # of the distance: the next step goes the whole way


def search_by_branching(problem: Problem, witness: Vector | None) -> Finding:
    """Settle every case, beginning with a witness if there is one; the proven distance is the smallest."""
    hunt = Hunt(problem)
    hunt.take_over(witness)
    progress = Progress(hunt)
    interrupted = False
    try:
        progress.begin()
        # Who asks for a radius is not helped by the proof of a smaller one.
        at_first = (SHARE_FOR_A_STEP if problem.nearest else 1.0) * problem.clock.left
        progress.settle_each(math.inf, at_first, patience=PATIENCE * at_first / len(progress.cases))
        progress.climb()
    except KeyboardInterrupt:
        interrupted = True
    except OutOfTimeError:
        pass
    return Finding(hunt.best, progress.lower, hunt.tally.nodes, interrupted)


def come_nearer(hunt: Hunt) -> None:
    """Climb from many places and step through linear regions, which takes a second or more."""
    from closecall.search.crown import TooLargeError, Watch, approach  # waits for torch

    problem = hunt.problem
    if hunt.best is None:
        return
    with problem.clock.stage("attack"), suppress(TooLargeError):
        found = approach(
            problem.network,
            problem.domain,
            problem.goal,
            hunt.best,
            gap=problem.gap,
            seconds=SHARE_FOR_CLIMBS * problem.clock.left,
            threads=problem.threads,
            watch=Watch(on_witness=problem.known.offer),
        )
        hunt.take_over(found)


class Progress:
    """How far each case is proven, and how many seconds it took the last time, infinity if in vain."""

    def __init__(self, hunt: Hunt) -> None:
        self.hunt = hunt
        self.cases = list(hunt.problem.goal.cases)
        self.proven = [0.0] * len(self.cases)
        self.seconds = [0.0] * len(self.cases)
        self.stuck: set[int] = set()  # cases searched to their end without a proof, by the rounding of LPs

    def begin(self) -> None:
        """A good incumbent, the likely cases first, and what linear bounds prove for all of them."""
        hunt, problem = self.hunt, self.hunt.problem
        hunt.floor = first_floor(problem, hunt.network, hunt.best, problem.clock.share(SHARE_FOR_THE_FLOOR))
        if hunt.network.units > MANY_UNITS:
            come_nearer(hunt)
        self.cases = nearest_first(hunt, problem.goal)
        self.proven = [hunt.floor] * len(self.cases)

    @property
    def lower(self) -> float:
        """What is proven for all cases."""
        return min(self.proven)

    def lacking(self, reach: float) -> list[int]:
        """The cases that a radius is still to be proven for, the quickest of the last time first."""
        aim = self.hunt.aim(reach)
        open_cases = [case for case, proven in enumerate(self.proven) if proven < aim]
        return sorted(set(open_cases) - self.stuck, key=lambda case: (self.seconds[case], case))

    def over(self) -> bool:
        """Whether there is nothing left to prove, or no way or no time to prove it."""
        hunt = self.hunt
        return hunt.answered or hunt.problem.clock.left <= 0 or not self.lacking(math.inf)

    def settle_each(self, reach: float, seconds: float, *, patience: float = math.inf) -> bool:
        """Try to prove a radius for every case that lacks it; time not needed for one is left to the others.

        A finite radius is given up at the first failure, the whole distance where nothing new is proven.
        """
        until = time.perf_counter() + seconds
        lacking = self.lacking(reach)
        for place, case in enumerate(lacking):
            now = time.perf_counter()
            deadline = now + max(0.0, until - now) / (len(lacking) - place)
            known = self.proven[case]
            self.settle_one(case, Trial(self.cases[case], reach, known, patience, deadline))
            hopeless = math.isfinite(reach) or self.proven[case] <= known
            if self.over() or (hopeless and case in self.lacking(reach)):
                break
        return not self.lacking(reach)

    def settle_one(self, case: int, trial: Trial) -> None:
        hunt = self.hunt
        others = (proven for other, proven in enumerate(self.proven) if other != case)
        hunt.others = min(others, default=math.inf)
        began = time.perf_counter()
        settled = settle(hunt, trial)
        self.proven[case] = max(trial.known, settled.proven)
        reached = self.proven[case] >= hunt.aim(trial.reach)
        self.seconds[case] = time.perf_counter() - began if reached else math.inf
        if settled.searched and not reached:
            self.stuck.add(case)

    def climb(self) -> None:
        """Prove larger and larger radii; one that takes too long gives way to a smaller one."""
        scale = 1.0
        while not self.over():
            wanted, left = self.hunt.wanted, self.hunt.problem.clock.left
            lower = min(self.proven[case] for case in self.lacking(math.inf))
            reach = lower + scale * max(lower, LEAST_STEP * wanted)
            reach = reach if reach < NEARLY_THERE * wanted else wanted
            if not self.settle_each(reach, SHARE_FOR_A_STEP * left if math.isfinite(reach) else left):
                scale = max(scale / 2, LEAST_SCALE)
