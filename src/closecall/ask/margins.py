"""The worst margin W within each of several radii, between two curves that come nearer to each other.

The margin of scores y is min over the cases of max over their rows of −row·y, so that W(r) ≤ w just where an
image within r reaches some case with the threshold −w. That is what the searches for a nearest image answer:
W(r) is no more than the margin of the image that they find, and more than w where they prove that there is
none. A proof holds for smaller radii, too, an image for larger ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from closecall.arrays import Image, Indices, Mask, Vector
from closecall.ask.nearest import replay_found
from closecall.bounds import linear_bounds, maximise
from closecall.clock import out_of_time
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.effort import Effort
from closecall.question.goal import Case, Goal, slack_and_gradient
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.search.auto import CHANGE
from closecall.search.methods import METHODS, search_by
from closecall.search.parts import part_of
from closecall.search.problem import Finding, Problem
from closecall.verdict.replay import image_in_float32

OnMargins = Callable[[int, int, float, float], object]  # closed points, points, widest gap, seconds


class Margins:
    """Radii, the first of which is 0, with the proven least and the found worst margin within each."""

    def __init__(
        self,
        problem: Problem,
        classifier: Classifier,
        question: Question,
        effort: Effort,
        radii: Vector,
        on_progress: OnMargins | None = None,
    ) -> None:
        self.problem, self.classifier, self.question, self.effort = problem, classifier, question, effort
        self.radii = np.concatenate([[0.0], radii])
        self.changed, self.on_progress = question.changed(), on_progress
        self.table = (
            CHANGE if self.changed is not None and effort.method == "auto" else METHODS[effort.method]
        )
        count = len(self.radii)
        self.lower, self.upper = np.full(count, -np.inf), np.full(count, np.inf)
        self.distances, self.images = (
            np.zeros(count),
            list[Image]([question.image.astype(np.float32)] * count),
        )
        self.points = [problem.domain.centre] * count  # the images again, or the numbers of a change
        self.portions = np.ones(count)  # how much of a gap the next proof is to close
        self.nearest: tuple[float, float] | None = None
        self.nodes = 0
        self.keep(problem.domain.centre, 0.0)
        self.lower[0] = self.upper[0]

    @property
    def tolerance(self) -> float:
        """What an interval may be wide, in margins."""
        return self.effort.gap * self.height

    @property
    def height(self) -> float:
        """The largest margin of the curve."""
        return float(np.abs(self.upper).max())

    @property
    def gaps(self) -> Vector:
        return np.asarray(self.upper - self.lower)

    @property
    def closed(self) -> Mask:
        return np.asarray(self.gaps <= self.tolerance)

    def run(self) -> None:
        """From cheap to dear: bounds and climbs at all radii, the nearest image, then gap by gap."""
        self.bound()
        self.climb()
        self.find_nearest()
        self.spread()
        self.narrow()

    def keep(self, point: Vector, radius: float) -> None:
        """Take an image, in float32, for all radii that it lies within."""
        domain = self.problem.domain.within(radius)
        point = domain.pulled_inside(domain.clip(point))
        if self.changed is None:
            image = image_in_float32(domain, point)
            exact = image.astype(np.float64)
        else:
            image, exact = self.changed.in_float32(point), point
        distance = domain.distance(exact)
        if distance > radius or not domain.affords(exact):
            return
        image = image.reshape(self.classifier.network.input_shape)
        margin = -float(at(self.problem.goal, 0.0).slack(self.scores(image))[0])
        better = (self.radii >= distance) & (margin < self.upper)
        self.upper[better], self.distances[better] = margin, distance
        for place in np.flatnonzero(better):
            self.images[place], self.points[place] = image, exact
        self.lower = np.minimum(self.lower, self.upper)  # a solver's proof holds up to its tolerances
        self.tell()

    def scores(self, image: Image) -> Vector:
        return self.classifier.network.forward(image[None].astype(np.float64))

    def prove(self, margin: float, which: Mask) -> None:
        """No image within some radii has a margin below this one."""
        for place in np.flatnonzero(which):
            self.lower[: place + 1] = np.maximum(self.lower[: place + 1], margin)
        self.lower = np.minimum(self.lower, self.upper)
        self.tell()

    def tell(self) -> None:
        if self.on_progress is not None:
            widest = float(self.gaps[1:].max(initial=0.0))
            self.on_progress(
                int(self.closed[1:].sum()), len(self.radii) - 1, widest, self.problem.clock.seconds
            )

    def bound(self) -> None:
        """Intervals at the largest radius, which hold for all; then linear bounds, from the smallest on."""
        problem, clock = self.problem, self.problem.clock
        until = clock.share(problem.settings.curve.share_for_bounds)
        places = np.arange(len(self.radii))
        with clock.stage("bounds"):
            for place in (places[-1], *places[1:]):
                clock.check()
                begun = math.isfinite(self.lower[-1])
                if begun and out_of_time(until):
                    return
                domain = problem.domain.within(float(self.radii[place]))
                least = least_margin(problem.simplified, domain, problem.goal, until if begun else -math.inf)
                self.prove(least, places == place)

    def climb(self) -> None:
        """Steps down the margin of each case within larger and larger radii, from where the last ended."""
        problem, clock, settings = self.problem, self.problem.clock, self.problem.settings.curve
        goal, network = at(problem.goal, 0.0), problem.simplified
        centre, cases = problem.domain.centre, len(goal.cases)
        # At the original itself slopes may vanish where any step leads on.
        random = np.random.default_rng(0).normal(size=(cases, len(centre)))
        aside = centre + problem.domain.within(float(self.radii[1])).furthest(random)
        points = np.vstack([np.repeat(centre[None], cases, axis=0), aside])
        until = clock.share(settings.share_for_climbs)
        with clock.stage("attack"):
            for radius in self.radii[1:]:
                domain = problem.domain.within(radius)
                points, best = descend(network, domain, goal, points, until, settings.steps)
                self.keep(best, radius)

    def find_nearest(self) -> None:
        """The nearest image that changes the verdict, if the first does not and some image does."""
        if self.nearest is not None or self.upper[0] <= 0 or self.upper[-1] > 0:
            return
        problem, margin = self.problem, self.question.margin
        domain = problem.domain.within(float(self.radii[-1]))
        share = problem.settings.curve.share_for_nearest
        found = self.search(share, problem.goal, domain, nearest=True, gap=Effort.gap)
        held = replay_found(self.classifier, self.question, replace(found, domain=domain))
        if found.witness is not None:
            self.keep(found.witness, domain.radius)
        end = math.inf if held is None else held.distance
        self.nearest = (min(found.lower, domain.radius, end), end)
        self.prove(-margin, self.radii < self.nearest[0])

    def spread(self) -> None:
        """What is good at one radius, scaled to the next ones, outwards and back."""
        problem, clock, last = self.problem, self.problem.clock, len(self.radii) - 1
        domain, until = problem.domain, clock.share(problem.settings.curve.share_for_climbs)
        ways = [*((k, k - 1) for k in range(2, last + 1)), *((k, k + 1) for k in range(last - 1, 0, -1))]
        with clock.stage("attack"):
            for place, beside in ways:
                if domain.sparse or out_of_time(until):
                    return
                clock.check()
                scale = float(self.radii[place] / self.radii[beside])
                within = domain.within(float(self.radii[place]))
                point = domain.clip(domain.centre + scale * (self.points[beside] - domain.centre))
                point = within.pulled_inside(point)
                self.keep(point, within.radius)
                self.refine(point, within, until)

    def narrow(self) -> None:
        """Gap by gap; what is not narrowed in a share of the time is tried again with more."""
        clock = self.problem.clock
        for share in self.problem.settings.curve.shares_of_time:
            failed = np.zeros(len(self.radii), dtype=bool)
            while not (self.closed | failed).all():
                if clock.left <= 0:
                    return
                place = self.next(~(self.closed | failed))
                failed[place] = not self.decide(place, share)

    def next(self, left: Mask) -> int:
        """The widest gap as long as it is wider than the curve is high; then the smallest radius."""
        wide = left & (self.gaps > self.height)
        if wide.any():
            return int(np.where(wide, self.gaps, -np.inf).argmax())
        return int(np.flatnonzero(left)[0])

    def decide(self, place: int, share: float) -> bool:
        """Ask for an image within a radius of some margin in the gap: at first next to what was found."""
        if math.isinf(self.lower[place]):
            return False
        low, high = float(self.lower[place]), float(self.upper[place])
        # A wide gap is halved. In another, what is proven is to close it: half of what it may be is left for
        # the image.
        portion = min(self.portions[place], 0.5 if high - low > self.height else 1.0)
        margin = low + portion * (high - self.tolerance / 2 - low)
        domain = self.problem.domain.within(float(self.radii[place]))
        found = self.search(share, at(self.problem.goal, margin), domain, nearest=False)
        if found.witness is not None:
            self.keep(found.witness, domain.radius)
            until = self.problem.clock.share(self.problem.settings.curve.share_for_climbs)
            self.refine(found.witness, domain, until)
            self.find_nearest()
            self.portions[place] = portion / 2
            return True
        proven = found.lower >= domain.radius
        self.prove(margin, self.radii <= domain.radius if proven else self.radii < found.lower)
        self.portions[place] = 1.0 if proven else portion / 2
        return proven

    def refine(self, point: Vector, domain: Domain, until: float) -> None:
        """Steps down the margin from an image that is good already."""
        settings, goal = self.problem.settings.curve, at(self.problem.goal, 0.0)
        points = np.repeat(point[None], len(goal.cases), axis=0)
        network = self.problem.simplified
        _, best = descend(network, domain, goal, points, until, settings.steps, settings.delay)
        self.keep(best, domain.radius)

    def search(self, share: float, goal: Goal, domain: Domain, **changed: Any) -> Finding:
        least = self.problem.settings.curve.least_seconds / max(self.problem.clock.left, 1e-9)
        part = part_of(self.problem, min(1.0, max(share, least)), goal=goal, domain=domain, **changed)
        found = search_by(part, self.table)
        self.nodes += found.nodes
        if found.interrupted:
            raise KeyboardInterrupt
        return found


def at(goal: Goal, margin: float) -> Goal:
    """The goal that images of no more than a margin reach."""
    cases = tuple(Case(case.matrix, np.full_like(case.threshold, -margin)) for case in goal.cases)
    return replace(goal, cases=cases)


def least_margin(network: Network, domain: Domain, goal: Goal, until: float) -> float:
    """No image of the domain has a margin below this one, by linear bounds."""
    bounds = linear_bounds(network, domain, until)
    rows = np.vstack([case.matrix for case in goal.cases])
    most = maximise(network, domain, bounds, len(network.nodes), rows)
    starts: Indices = np.cumsum([0, *(len(case.threshold) for case in goal.cases[:-1])])
    return -float(np.minimum.reduceat(most, starts).max())


def descend(
    network: Network, domain: Domain, goal: Goal, points: Vector, until: float, steps: int, delay: int = 0
) -> tuple[Vector, Vector]:
    """Frank-Wolfe steps down the margin of each case from a point each; the last points, and the worst image.

    With a delay the first steps are shorter, so that not all is lost of points that are good already.
    """
    best, most = domain.centre, -np.inf
    for step in range(steps + 1):
        slack, slopes = slack_and_gradient(network, goal, points)
        target = domain.centre + domain.furthest(slopes)
        if slack.max() > most:
            best, most = points[slack.argmax()].copy(), float(slack.max())
        if step == steps or out_of_time(until):
            break
        points = target if domain.sparse else points + (2.0 / (step + 2.0 + delay)) * (target - points)
    return points, best
