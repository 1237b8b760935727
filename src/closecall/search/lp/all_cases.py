"""L1, and L∞ on small networks: every class that could win is settled against the same incumbent.

At first within the incumbent's distance (see `one_case`). The cases that this leaves open are then proven for
smaller radii, where all bounds are tighter: larger and larger ones, as far as the time allows.
"""

from __future__ import annotations

import math
import time

from closecall.search.first_bound import first_bound
from closecall.search.lp.coming_nearer import climbs_pay, step_through_regions
from closecall.search.lp.one_case import CaseSearch, Kept, Trial, likely_first
from closecall.search.problem import Problem
from closecall.search.radii import Attempt, prove_by_radii


def settle_all_cases(problem: Problem) -> None:
    """Settle every case, beginning with the incumbent if there is one."""
    settings, clock, cases = problem.settings.lp, problem.clock, AllCases(problem)
    first_bound(problem, clock.share(settings.share_for_first_bound))
    if climbs_pay(problem):
        step_through_regions(problem)
    cases.order = likely_first(problem)
    # Who asks for a radius is not helped by the proof of a smaller one.
    share = problem.settings.lp_radii.share_of_time if problem.nearest else 1.0
    cases.settle_each(math.inf, share * clock.left, patience=settings.patience * share * clock.left)
    prove_by_radii(problem, problem.settings.lp_radii, cases.attempt, lower=cases.lower)


def settle_by_few_nodes(problem: Problem) -> None:
    """Search each case over the whole distance, up to the first that a share of the time leaves open."""
    settings, clock, cases = problem.settings.lp, problem.clock, AllCases(problem)
    until = clock.share(settings.share_for_few_nodes)
    cases.order = likely_first(problem)
    for case in cases.order:
        cases.settle_one(Trial(case, math.inf, problem.incumbent.proven[case], math.inf, until))
        if case in cases.lacking(math.inf) or cases.over:
            break


class AllCases:
    """The order of the cases, and how many seconds each took the last time, infinity if in vain."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.incumbent = problem, problem.incumbent
        self.kept = Kept(problem)
        self.order = list(range(len(problem.goal.cases)))
        self.seconds = [0.0] * len(self.order)
        self.stuck: set[int] = set()  # cases searched to their end without a proof, by the rounding of LPs

    def aim(self, radius: float) -> float:
        return min(radius, self.incumbent.wanted)

    def lacking(self, radius: float) -> list[int]:
        """The cases that a radius is still to be proven for, the quickest of the last time first."""
        aim = self.aim(radius)
        able = (case for case in self.order if case not in self.stuck)
        lacking = (case for case in able if self.incumbent.proven[case] < aim)
        return sorted(lacking, key=lambda case: self.seconds[case])

    def lower(self) -> float:
        """What is proven for all cases that more can be proven for."""
        return min((self.incumbent.proven[case] for case in self.lacking(math.inf)), default=math.inf)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to prove, or no way or no time to prove it."""
        return self.incumbent.answered or self.problem.clock.left <= 0 or not self.lacking(math.inf)

    def attempt(self, radius: float, until: float) -> Attempt:
        """Prove a radius for every case until a perf_counter time."""
        proven = self.settle_each(radius, until - time.perf_counter())
        if self.over:
            return "stuck"
        return "proven" if proven else "given up"

    def settle_each(self, radius: float, seconds: float, *, patience: float = math.inf) -> bool:
        """Try to prove a radius for every case that lacks it; time not needed for one is left to the others.

        A finite radius is given up at the first failure, the whole distance where nothing new is proven.
        """
        until = time.perf_counter() + seconds
        lacking = self.lacking(radius)
        for place, case in enumerate(lacking):
            now = time.perf_counter()
            deadline = now + max(0.0, until - now) / (len(lacking) - place)
            known = self.incumbent.proven[case]
            self.settle_one(Trial(case, radius, known, patience / len(self.order), deadline))
            hopeless = math.isfinite(radius) or self.incumbent.proven[case] <= known
            if self.over or (hopeless and case in self.lacking(radius)):
                break
        return not self.lacking(radius)

    def settle_one(self, trial: Trial) -> None:
        began = time.perf_counter()
        searched = CaseSearch(self.kept, trial).run()
        reached = self.incumbent.proven[trial.case] >= self.aim(trial.radius)
        self.seconds[trial.case] = time.perf_counter() - began if reached else math.inf
        if searched and not reached:
            self.stuck.add(trial.case)
