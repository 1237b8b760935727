"""universal(): one perturbation that turns a handful of images at once, the smallest, or the most images.

One network reads the perturbation (see `question/universal.py`), so that all engines that find nearest images
search it as it is. Each image is first asked about alone: clipping only shortens what happens to it, so no
perturbation turns it that is nearer than its own nearest image.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from closecall.arrays import Vector
from closecall.ask.capsules import check_piecewise_linear
from closecall.ask.nearest import SAFETY, answer
from closecall.attacks.joint import most_at_once
from closecall.bounds.balance import balanced
from closecall.clock import Clock, out_of_time, usable_threads
from closecall.errors import QueryError
from closecall.milp import OnProgress
from closecall.question.checks import check, check_classes, check_number, whole_number
from closecall.question.effort import Effort
from closecall.question.images import fitted, pixels_of
from closecall.question.names import MethodName, NormName, SolverName
from closecall.question.question import DEFAULT_MARGIN, Question
from closecall.question.universal import Together
from closecall.readers import Classifier, read
from closecall.search.incumbent import is_closed
from closecall.search.methods import search
from closecall.search.parts import PartOfClock
from closecall.search.problem import Finding, Problem
from closecall.settings import DEFAULT
from closecall.verdict.together import TogetherReplay, replay_together
from closecall.verdict.universal import Universal, UniversalOutcome, finite
from closecall.verdict.verdict import Verdict

log = logging.getLogger(__name__)


class Asked(TypedDict, total=False):
    """What is asked beside the images; whatever is left out is as `universal` has it."""

    norm: NormName | float
    target: int | None
    most: bool
    radius: float | None
    margin: float


MOST_IMAGES = 10  # so that "at least so many of them" is at most 252 cases


def universal(
    model: object,
    images: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    norm: NormName | float = "linf",
    target: int | None = None,
    most: bool = False,
    radius: float | None = None,
    margin: float = DEFAULT_MARGIN,
    pixel_range: tuple[float, float] = (0.0, 1.0),
    solver: SolverName = "highs",
    method: MethodName = "auto",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    gap: float = Effort.gap,
    input_shape: tuple[int, ...] | None = None,
    on_progress: OnProgress | None = None,
) -> Universal:
    """Find the smallest perturbation that turns all of a handful of images, or one that turns the most.

    The perturbation δ is added to every image and the sum clipped to the pixel range, as attacks do.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        images: An array or tensor (N, channels, height, width) of 1 to 10 images.
        labels: The true classes, (N,); by default what the model says.
        norm: How δ is measured: "l1", "l2", "linf" or "l0"; L1, L∞, inf or 2 will do, too.
        target: The class that all images must be turned into; by default any but their own.
        most: Find a δ within the radius that turns the most images, instead of the smallest that turns all.
        radius: Look only within this size; needed for `most`.
        margin: By how much the new class's score must lead.
        pixel_range: The least and the largest value of a pixel.
        solver: "highs", "scip", "gurobi" or "cplex", for what is left to a MILP solver.
        method: "auto" (our own search), "milp" (a solver, tight model), "milp-improved" or "milp-basic" (the
            paper's models).
        time_limit: Seconds for everything; an interval is given when they are over.
        threads: Threads of the search.
        gap: The relative gap between size and lower bound to stop at.
        input_shape: The shape of one image, for a model that leaves it open.
        on_progress: Called with (lower bound, size, nodes, seconds) as the interval shrinks; not for `most`.
    """
    effort, clock = Effort(method, solver, time_limit, threads, gap), Clock(time_limit)
    with clock.stage("read"):
        batch = batch_of(images)
        classifier = model if isinstance(model, Classifier) else read(model, input_shape or batch.shape[1:])
    together = pose_together(
        classifier, batch, labels, radius, norm=norm, target=target, margin=margin, pixel_range=pixel_range
    )
    check(radius is not None or not most, "the most images within which radius? Give one beside most.")
    asked = Asking(classifier, together, effort, clock, on_progress, most=most)
    with clock.noting_interrupts():
        try:
            asked.run()
        except KeyboardInterrupt:
            asked.notes.append("interrupted: what is said holds as far as it was proven")
    found = asked.answer()
    log.info("universal: %s", found)
    return found


def batch_of(images: ArrayLike) -> Vector:
    """The images as (N, …)."""
    batch = pixels_of(images)
    if batch.ndim < 2:
        raise QueryError(
            f"expected images (N, …), got an array of shape {batch.shape}: put a single image in a batch of "
            "one."
        )
    check_count(len(batch))
    return batch


def check_count(images: int) -> None:
    check(
        1 <= images <= MOST_IMAGES,
        f"one perturbation is searched for 1 to {MOST_IMAGES} images, got {images}: choose some of them.",
    )


def pose_together(
    classifier: Classifier, batch: Vector, labels: ArrayLike | None, radius: float | None, **asked: object
) -> Together:
    """A question for each image."""
    network = classifier.network
    check_classes(network.classes)
    check_piecewise_linear(network, "one perturbation for many images")
    pixels = [fitted(image, network.input_shape) for image in batch]
    known = (
        [classifier.predict(image) for image in pixels]
        if labels is None
        else list(np.asarray(labels).ravel())
    )
    check(
        len(known) == len(pixels),
        f"expected a label for each of {len(pixels)} images, got {len(known)} labels.",
    )
    if asked.get("target") is None:
        asked.pop("target", None)
    else:
        asked["target"] = whole_number("target", asked["target"])
    if radius is not None:
        check_number("radius", radius)
    reach = math.inf if radius is None else radius
    questions = [
        Question(image.ravel(), whole_number("label", label), network.classes, radius=reach, **asked)  # type: ignore[arg-type]
        for image, label in zip(pixels, known, strict=True)
    ]
    return Together(network, tuple(questions), reach)


class Asking:
    """What is known so far, step by step: each image alone, climbs, then the joint search."""

    def __init__(
        self,
        classifier: Classifier,
        together: Together,
        effort: Effort,
        clock: Clock,
        on_progress: OnProgress | None,
        *,
        most: bool,
    ) -> None:
        self.classifier, self.together, self.effort, self.clock = classifier, together, effort, clock
        self.on_progress, self.most = on_progress, most
        self.images = len(together.questions)
        self.single_bounds = [0.0] * self.images
        self.best: TogetherReplay | None = None
        self.reached: Vector | None = None  # the smallest that turns all, in float64
        self.lower, self.count_bound = 0.0, self.images
        self.nodes, self.engine, self.notes = 0, "linear bounds", list(classifier.notes)
        self.why: tuple[str, ...] = ()

    @property
    def distance(self) -> float:
        """The size of the best perturbation that turns all images."""
        return self.best.distance if self.best is not None and self.best.count == self.images else math.inf

    def run(self) -> None:
        with self.clock.stage("read"):
            self.classifier.prepare()
        self.keep(np.zeros(self.together.network.input_size))
        if self.settled:
            return
        if not self.most:  # whoever stops early has something
            self.climb_for_all([], DEFAULT.universal.share_for_first_climbs)
        starts = self.ask_singles()
        if self.settled or self.clock.left <= 0:
            return
        if self.most:
            self.climb_for_most(starts)
            self.search_for_most()
        else:
            self.climb_for_all(starts, DEFAULT.universal.share_for_climbs)
            self.search_for_all()

    @property
    def settled(self) -> bool:
        if self.most:
            return self.best is not None and self.best.count >= self.count_bound
        if math.isinf(self.distance):
            return math.isinf(self.lower)
        return is_closed(self.lower, self.distance, self.effort.gap)

    def keep(self, delta: Vector) -> bool:
        """Replay a perturbation and keep it if it turns more images, or as many and is smaller."""
        seen = replay_together(self.classifier, self.together, delta)
        better = self.best is None or (-seen.count, seen.distance) < (-self.best.count, self.best.distance)
        if better:
            self.best = seen
            self.tell()
        return better

    def tell(self) -> None:
        if self.on_progress is not None and not self.most:
            lower = min(self.lower, self.distance)
            self.on_progress(
                lower if math.isfinite(lower) else 0.0, self.distance, self.nodes, self.clock.seconds
            )

    def ask_singles(self) -> list[Vector]:
        """The nearest image of each alone, or whether there is any within the radius; its shifts."""
        shifts = []
        whole = PartOfClock(self.clock, DEFAULT.universal.share_for_singles)
        for place, question in enumerate(self.together.questions):
            seconds = max(1e-3, whole.left / (self.images - place))
            effort, clock = replace(self.effort, time_limit=seconds), PartOfClock(whole, 1.0)
            clock.limit = seconds
            found = answer(self.classifier, question, effort, clock, nearest=not self.most)
            self.nodes, self.engine = self.nodes + found.nodes, found.engine
            self.single_bounds[place] = proven_for(found)
            if found.witness is not None:
                shifts.append(found.witness.ravel().astype(np.float64) - question.image)
            self.clock.check()
            if not self.most:
                self.lower = max(self.lower, self.single_bounds[place])
                self.tell()
        if self.most:
            self.count_bound = sum(bound <= self.together.radius for bound in self.single_bounds)
        return shifts

    def climb_for_most(self, starts: Sequence[Vector]) -> None:
        until = self.clock.share(DEFAULT.universal.share_for_climbs)
        for start in [np.zeros(self.together.network.input_size), *starts]:
            if self.settled:
                return
            self.keep(most_at_once(self.together, start, until)[1])

    def climb_for_all(self, starts: Sequence[Vector], share: float) -> None:
        """Joint climbs within smaller and smaller radii, from the smallest perturbation known."""
        settings, together = DEFAULT.universal, self.together
        until = self.clock.share(share)
        zero, domain = np.zeros(together.network.input_size), together.domain
        widest = float(domain.norm.distance(np.maximum(-domain.lower, domain.upper)))
        self.keep_smallest_of(starts)
        best = self.reached
        radius = min(together.radius, max(2 * self.lower, widest / 64))
        if best is not None:
            radius = domain.distance(best) * settings.next_radius
        failures = 0
        while failures < settings.failures and not out_of_time(until):
            within = replace(together, radius=radius)
            start = zero
            if best is not None and not domain.sparse and failures % 2 == 1:
                start = within.domain.pulled_inside(best)
            count, delta = most_at_once(within, start, until)
            if count == self.images:
                best, failures = self.pulled_back(delta), 0
                self.keep(best)
                radius = domain.distance(best) * settings.next_radius
                if domain.norm.name == "l0":
                    radius = domain.distance(best) - 1
                if radius <= self.lower:
                    break
            elif best is None and radius < min(together.radius, widest):
                radius = min(2 * radius, together.radius, widest)
            else:
                failures += 1
        if best is not None:
            self.reached = best

    def keep_smallest_of(self, shifts: Sequence[Vector]) -> None:
        """Of what turns single images, and of all of it together, the smallest that turns all."""
        everything = np.sum(shifts, axis=0) if len(shifts) > 1 else None
        found = [] if self.reached is None else [self.reached]
        for shift in shifts if everything is None else [*shifts, everything]:
            longest = self.together.domain.pulled_inside(self.together.domain.clip(1.05 * shift))
            if bool((self.together.slack(longest[None])[0] >= 0).all()):
                found.append(self.pulled_back(longest))
        if found:
            self.reached = min(found, key=self.together.domain.distance)
            self.keep(self.reached)

    def pulled_back(self, delta: Vector) -> Vector:
        """The smallest multiple of a perturbation that still turns all images."""
        near, far = 0.0, 1.0
        if self.together.domain.norm.name == "l0":
            return delta
        for _ in range(DEFAULT.attack.pull_back_rounds):
            shares = np.linspace(near, far, DEFAULT.attack.pull_back_points + 1)[1:]
            reached = np.flatnonzero((self.together.slack(shares[:, None] * delta) >= 0).all(axis=1))
            if not len(reached):
                break
            near, far = float(shares[reached[0]] - (shares[1] - shares[0])), float(shares[reached[0]])
        return far * delta

    def search_for_all(self) -> None:
        """One search for the smallest, from what is known."""
        problem = self.problem(self.together.goal(self.images), nearest=True)
        problem.incumbent.prove(self.lower)
        problem.incumbent.offer(self.reached)
        self.prove(self.searched(problem))

    def prove(self, found: Finding) -> None:
        """Keep a lower bound of the joint search; infinity where nothing in the domain turns all."""
        domain, lower = self.together.domain, found.lower
        if found.witness is not None:
            lower = min(lower, domain.distance(found.witness))
        elif lower >= domain.radius:
            lower = math.inf
        self.lower = max(self.lower, lower)

    def search_for_most(self) -> None:
        """Ask for one image more than the best turns, until there is none or nobody knows."""
        may_turn = [place for place, bound in enumerate(self.single_bounds) if bound <= self.together.radius]
        while not self.settled and self.clock.left > 0:
            wanted = 1 + (0 if self.best is None else self.best.count)
            # Images that are proven to stay as they are are in no choice.
            found = self.searched(self.problem(self.together.goal(wanted, may_turn), nearest=False))
            if found.witness is None and found.lower >= self.together.radius:
                self.count_bound = wanted - 1
            elif found.witness is None or self.best is None or self.best.count < wanted:
                return

    def searched(self, problem: Problem) -> Finding:
        found = search(problem, self.effort.method)
        self.nodes, self.engine = self.nodes + found.nodes, found.engine
        self.why = tuple(dict.fromkeys((*self.why, *found.why)))
        self.notes += [note for note in found.notes if note not in self.notes]
        if found.witness is not None:
            self.keep(found.witness)
        if found.interrupted:
            if problem.nearest:
                self.prove(found)
            raise KeyboardInterrupt
        return found

    def problem(self, goal: object, *, nearest: bool) -> Problem:
        together, effort = self.together, self.effort
        return Problem(
            network=balanced(together.joint, together.domain),
            domain=together.domain,
            goal=goal,  # type: ignore[arg-type]
            clock=self.clock,
            nearest=nearest,
            gap=SAFETY * effort.gap,
            solver=effort.solver,
            threads=usable_threads(effort.threads),
            on_progress=self.on_progress if nearest else None,
        )

    def answer(self) -> Universal:
        """What may be said: only what was replayed is a perturbation that turns images."""
        together, best = self.together, self.best
        shown = best if best is not None and (self.most or best.count == self.images) else None
        lower, count = min(self.lower, self.distance), 0 if shown is None else shown.count
        shape, asked = self.classifier.network.input_shape, together.questions[0]
        turnable = self.count_bound if self.most or math.isfinite(self.lower) else self.images - 1
        return Universal(
            outcome=self.judged(lower),
            norm=asked.norm,
            distance=None if shown is None else shown.distance,
            lower_bound=None if self.most or math.isinf(lower) else lower,
            radius=finite(together.radius),
            most=self.most,
            count=count,
            # What is turned by less than the margin is turned, too, but no bound is about it.
            count_bound=max(turnable, count),
            labels=tuple(question.label for question in together.questions),
            target=asked.target,
            margin=asked.margin,
            pixel_range=asked.pixel_range,
            predicted_before=tuple(
                self.classifier.predict(image.reshape(shape)) for image in together.images
            ),
            predicted_after=None if shown is None else shown.predicted,
            flipped=(False,) * self.images if shown is None else shown.flipped,
            single_bounds=tuple(finite(bound) for bound in self.single_bounds),
            seconds=self.clock.seconds,
            nodes=self.nodes,
            engine=self.engine,
            why=self.why,
            network_sha256=self.classifier.network.fingerprint,
            delta=None if shown is None else shown.delta,
            originals=together.images.astype(np.float32).reshape(-1, *shape),
            perturbed=None if shown is None else shown.images,
            notes=tuple(self.notes),
        )

    def judged(self, lower: float) -> UniversalOutcome:
        if self.most:
            count = 0 if self.best is None else self.best.count
            return "most" if count >= self.count_bound else "found" if count else "unresolved"
        if math.isinf(self.distance):
            return "none" if math.isinf(self.lower) else "unresolved"
        closed = is_closed(lower, self.distance, self.effort.gap, self.rounding())
        return "smallest" if closed else "found"

    def rounding(self) -> float:
        """By how much rounding δ and the images to float32 may move the size of δ."""
        domain = self.together.domain
        if domain.norm.name == "l0":
            return 0.0
        largest = np.maximum(np.abs(domain.lower), domain.upper)
        return float(domain.norm.distance(largest * 2.0**-23)) + 1e-9


def proven_for(found: Verdict) -> float:
    """The distance below which nothing turns an image; infinity where nothing within the radius does."""
    return math.inf if found.outcome == "robust" else found.lower_bound
