"""The nearest image that differs from the original in one of many sets of pixels, such as a square anywhere.

Each set is a domain of its own, and all share one incumbent. What the slopes at the original promise most of
is attacked first; then every set is searched within the incumbent's distance, where bounds rule most of them
out at once. Whatever is proven for the whole image holds for each set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from closecall.arrays import Mask, Vector
from closecall.question.domain import Domain
from closecall.question.goal import slack_and_gradient
from closecall.search.auto import ATTACK
from closecall.search.first_bound import first_bound
from closecall.search.incumbent import is_closed
from closecall.search.methods import search_by
from closecall.search.parts import Searcher, part_of
from closecall.search.problem import Finding, Problem


def search_patches(problem: Problem, patches: Sequence[Mask], search: Searcher) -> Finding:
    """Search each set of pixels; cut off anywhere, keep what is known."""
    patched = Patched(problem, patches, search)
    interrupted = False
    with problem.clock.noting_interrupts():
        try:
            patched.run()
        except KeyboardInterrupt:
            interrupted = True
    return Finding(
        patched.witness,
        patched.lower,
        patched.nodes,
        interrupted,
        tuple(dict.fromkeys(problem.notes)),
        patched.engine,
        tuple(dict.fromkeys(problem.why)),
        patched.domain,
    )


class Patched:
    """The nearest image so far, in which set it is, and what is proven for each of them."""

    def __init__(self, problem: Problem, patches: Sequence[Mask], search: Searcher) -> None:
        self.problem, self.search = problem, search
        domains = [problem.domain.only(patch) for patch in patches]
        self.domains = [domains[place] for place in most_promising(problem, np.array(patches))]
        self.proven = np.zeros(len(domains))
        self.witness: Vector | None = None
        self.domain: Domain | None = None
        self.distance, self.nodes, self.engine = math.inf, 0, ""

    @property
    def lower(self) -> float:
        proven, domain = float(self.proven.min()), self.problem.domain
        return proven if domain.levels is None else domain.distances.at_least(proven)

    @property
    def wanted(self) -> float:
        """Within which distance of one set of pixels an image would be nearer than the incumbent."""
        domain, gap = self.problem.domain, self.problem.gap
        if domain.levels is None or math.isinf(self.distance):
            return min(self.distance * (1.0 - gap), domain.radius)
        return min(domain.distances.enough_for(self.distance, gap), domain.radius)

    @property
    def settled(self) -> bool:
        if self.witness is None:
            return self.lower >= self.problem.domain.radius
        return self.problem.any_will_do or is_closed(self.lower, self.distance, self.problem.gap)

    def run(self) -> None:
        settings = self.problem.settings.patches
        self.bound_all(settings.share_for_first_bound)
        for domain in self.domains[: settings.attacked_first]:
            found = search_by(part_of(self.problem, settings.share_for_attack, domain=domain), ATTACK)
            self.keep(found, domain)
        for share in settings.shares_of_time:
            for place in np.argsort(self.proven, kind="stable"):
                if self.settled or self.problem.clock.left <= 0:
                    return
                self.settle(int(place), share)

    def bound_all(self, share: float) -> None:
        """What linear bounds prove for changes anywhere."""
        whole = part_of(self.problem, share)
        first_bound(whole, whole.clock.deadline)
        self.proven[:] = whole.incumbent.lower

    def settle(self, place: int, share: float) -> None:
        """Search one set of pixels nearer than the incumbent, unless that is proven."""
        aim = self.wanted
        if self.proven[place] >= aim:
            return
        domain = self.domains[place]
        found = self.search(part_of(self.problem, share, domain=domain.within(aim)))
        proven = found.lower if found.lower < aim or math.isinf(self.distance) else aim
        self.proven[place] = max(self.proven[place], proven)
        self.engine = found.engine
        self.keep(found, domain)
        if found.interrupted:
            raise KeyboardInterrupt

    def keep(self, found: Finding, domain: Domain) -> None:
        self.nodes += found.nodes
        if found.witness is not None and domain.distance(found.witness) < self.distance:
            self.witness, self.domain = found.witness, domain
            self.distance = domain.distance(found.witness)
            if self.problem.on_witness is not None:
                self.problem.on_witness(found.witness, self.distance)
        if self.problem.on_progress is not None:
            clock = self.problem.clock
            self.problem.on_progress(min(self.lower, self.distance), self.distance, self.nodes, clock.seconds)


def most_promising(problem: Problem, patches: Mask) -> list[int]:
    """The sets in the order of what the linear model at the original gains in each, for the best case."""
    domain = replace(problem.domain, radius=math.inf)
    centre = np.repeat(domain.centre[None], len(problem.goal.cases), axis=0)
    slack, slopes = slack_and_gradient(problem.network, problem.goal, centre)
    gains = np.abs(slopes) * np.where(slopes > 0, domain.up, domain.down)
    promised = (slack[:, None] + gains @ patches.T).max(axis=0)
    return [int(place) for place in np.argsort(-promised, kind="stable")]
