"""Ask every method about a liar, and compare what each says with the truth and with the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from closecall.ask.nearest import certify, nearest
from closecall.bench.soundness.liars import Liar
from closecall.bench.soundness.truths import MARGIN
from closecall.bounds.balance import balanced
from closecall.clock import Clock
from closecall.errors import ClosecallError
from closecall.question.names import MethodName, NormName, SolverName
from closecall.question.question import Question
from closecall.readers import Classifier, read
from closecall.readers.classifier import SINGLE
from closecall.search.auto import attack
from closecall.search.batches import search_by_batches
from closecall.search.lp.all_cases import settle_by_few_nodes
from closecall.search.lp.boxes import close_boxes
from closecall.search.problem import Problem
from closecall.settings import DEFAULT, Settings

SECONDS, SECONDS_FOR_BATCHES = 3.0, 0.5
BATCHES_EVERY = 4  # of so many liars of a norm, one is shown to the batched bounds, which take their time
GAP = 1e-4
ALL_ARE_ASKED = 1000  # liars that are shown to everybody
HAIR = 1e-5  # of the distance, below and above which a radius is asked for
TOLERANCE = 1e-6  # what LP and MILP solvers may be off by: of the distance, and this at least

# Liars are small: their deeper layers would get no cuts otherwise.
CUTS_IN_EVERY_LAYER = replace(DEFAULT, linear_bounds=replace(DEFAULT.linear_bounds, deep_units_for_cuts=0))

NORMS: tuple[NormName, ...] = get_args(NormName)
METHODS: tuple[MethodName, ...] = get_args(MethodName)


@dataclass(frozen=True)
class Claim:
    """What somebody says: nothing is nearer than `lower`, and there is an image at `upper`."""

    who: str
    lower: float
    upper: float


@dataclass(frozen=True)
class Heard:
    """All that was said about a liar in one norm, and what of it is false."""

    claims: tuple[Claim, ...]
    lies: tuple[str, ...]
    refused: tuple[str, ...] = ()

    @property
    def closed(self) -> int:
        return sum(claim.upper - claim.lower <= 2 * GAP * claim.upper for claim in self.claims)


def hear(liar: Liar, norm: NormName, solvers: Sequence[SolverName] = ()) -> Heard:
    """Put the same question to all methods, and to more solvers than HiGHS where there is a choice."""
    classifier = read(liar.module, liar.shape)
    truth, about = liar.distance(norm), f"{liar.name}, {norm}"
    claims: list[Claim] = []
    refused: list[str] = []
    lies: list[str] = []
    for who, ask in chosen(liar.seed, askers(liar, classifier, norm, solvers)).items():
        try:
            claims.append(Claim(who, *ask()))
        except ClosecallError as refusal:
            refused.append(f"{who}: {refusal}")
    for place, share in hairs(liar.seed):
        try:
            said = certified(liar, classifier, norm, truth * share)
        except ClosecallError as refusal:
            refused.append(f"certify: {refusal}")
            continue
        if said == ("adversarial" if place == "below" else "robust"):
            lies.append(f"{about}: certify says {said} a hair {place} {truth:.9g}")
    lies += false_claims(claims, truth, about, Allowed.of(liar, norm))
    return Heard(tuple(claims), tuple(lies), tuple(refused))


@dataclass(frozen=True)
class Allowed:
    """What a bound may be above the truth, and a distance below it.

    A bound by the tolerances of solvers. A distance also by what rounding an image to float32 moves it: one
    that fools the model is one, though the margin may need a little more.
    """

    above: float = TOLERANCE
    below: float = TOLERANCE

    @classmethod
    def of(cls, liar: Liar, norm: NormName) -> Allowed:
        truth = liar.distance(norm)
        solvers = TOLERANCE * (liar.pixels.unit + (truth if math.isfinite(truth) else 0.0))
        pixels = len(liar.image)
        share = {"l1": pixels, "l2": math.sqrt(pixels), "linf": 1.0, "l0": 0.0}[norm]
        return cls(solvers, solvers + share * SINGLE * float(np.abs(liar.pixels.range).max()))


def false_claims(
    claims: Sequence[Claim], truth: float, about: str, allowed: Allowed | None = None
) -> list[str]:
    """Claims whose interval does not hold the truth, or does not overlap with another's."""
    allowed = allowed or Allowed()
    lies = [
        f"{about}: {claim.who} says {claim.lower:.9g} to {claim.upper:.9g}, the truth is {truth:.9g}"
        for claim in claims
        if not claim.lower - allowed.above <= truth <= claim.upper + allowed.below
    ]
    lowest, highest = (
        max(claims, key=lambda claim: claim.lower, default=None),
        min(claims, key=lambda claim: claim.upper, default=None),
    )
    if (
        lowest is not None
        and highest is not None
        and lowest.lower > highest.upper + allowed.above + allowed.below
    ):
        lies.append(f"{about}: {lowest.who} and {highest.who} contradict each other")
    return lies


Ask = Callable[[], tuple[float, float]]


def askers(
    liar: Liar, classifier: Classifier, norm: NormName, solvers: Sequence[SolverName]
) -> dict[str, Ask]:
    """Everybody who can be asked for the nearest image."""

    def by_method(method: MethodName, solver: SolverName) -> Ask:
        def ask() -> tuple[float, float]:
            said = nearest(
                classifier,
                liar.image,
                0,
                norm=norm,
                pixel_range=liar.pixels.range,
                method=method,
                solver=solver,
                margin=MARGIN,
                time_limit=SECONDS,
                gap=GAP,
            )
            lower = math.inf if said.outcome == "robust" else said.lower_bound
            return lower, math.inf if said.distance is None else said.distance

        return ask

    def by_engine(engine: Callable[[Problem], None], settings: Settings = DEFAULT) -> Ask:
        def ask() -> tuple[float, float]:
            problem = replace(problem_of(liar, classifier, norm), settings=settings)
            attack(problem)
            engine(problem)
            return problem.incumbent.lower, problem.incumbent.distance

        return ask

    asked: dict[str, Ask] = {method: by_method(method, "highs") for method in METHODS}
    asked |= {f"milp ({solver})": by_method("milp", solver) for solver in solvers if solver != "highs"}
    if norm != "l0" and liar.seed // len(NORMS) % BATCHES_EVERY == 0:
        asked["batched bounds"] = by_engine(lambda problem: search_by_batches(problem, SECONDS_FOR_BATCHES))
    if norm in ("l2", "l0"):
        asked["linear programs"] = by_engine(settle_by_few_nodes)
    if norm == "linf":
        asked["boxes"] = by_engine(close_boxes)
        asked["boxes, with cuts in every layer"] = by_engine(close_boxes, CUTS_IN_EVERY_LAYER)
    return asked


def chosen(seed: int, asked: dict[str, Ask]) -> dict[str, Ask]:
    """All who can be asked about the first liars; of the later ones `auto` and two others.

    Half of the time of `milp-improved` goes into bounds of units: it is asked about the first ones only.
    """
    if seed < ALL_ARE_ASKED:
        return asked
    others = [who for who in asked if who not in ("auto", "milp-improved")]
    drawn = np.random.default_rng(seed).permutation(len(others))[:2]
    return {who: asked[who] for who in ("auto", *(others[place] for place in drawn))}


def hairs(seed: int) -> list[tuple[str, float]]:
    """The radii to certify, as shares of the distance: both, or of later liars one in turn."""
    both = [("below", 1 - HAIR), ("above", 1 + HAIR)]
    return both if seed < ALL_ARE_ASKED else [both[seed % 2]]


def problem_of(liar: Liar, classifier: Classifier, norm: NormName) -> Problem:
    classes = classifier.network.classes
    question = Question(liar.image, 0, classes, norm=norm, margin=MARGIN, pixel_range=liar.pixels.range)
    domain = question.domain()
    return Problem(balanced(classifier.network, domain), domain, question.goal(), Clock(SECONDS), gap=GAP)


def certified(liar: Liar, classifier: Classifier, norm: NormName, radius: float) -> str:
    """What `certify` says about a radius; in L0, where only whole numbers count, about half a pixel less."""
    if not math.isfinite(radius):
        return "nothing"
    if norm == "l0":
        radius = float(np.round(radius) - (1 if radius < liar.distance(norm) else 0))
    if radius <= 0:
        return "nothing"
    return certify(
        classifier,
        liar.image,
        0,
        radius=radius,
        norm=norm,
        margin=MARGIN,
        pixel_range=liar.pixels.range,
        time_limit=SECONDS,
    ).outcome
