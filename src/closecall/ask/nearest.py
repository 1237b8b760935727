"""nearest(), certify(), ideal(): from a model and an image to a verdict, top to bottom."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closecall.bounds.balance import balanced
from closecall.clock import Clock, holding_interrupts_back, usable_threads
from closecall.encoding.encode import Costs
from closecall.errors import QueryError
from closecall.milp import OnProgress
from closecall.question.images import fitted, picture_of, pixels_of
from closecall.question.question import (
    DEFAULT_MARGIN,
    Outputs,
    Query,
    check_classes,
    check_number,
    paper_target,
)
from closecall.readers import Classifier, read
from closecall.search.methods import METHODS, search
from closecall.search.problem import Finding, Problem
from closecall.solvers import SOLVERS
from closecall.solvers.highs import TOLERANCES
from closecall.verdict.eight_bit import replay_png
from closecall.verdict.replay import Replay, Wanted, replay
from closecall.verdict.verdict import Outcome, Verdict

Target = int | str  # a class, "any" or "paper"

DEFAULT_GAP = 1e-4
# The search aims at a little less than the gap, which leaves room for rounding the witness to float32.
SAFETY = 0.9


@dataclass(frozen=True)
class How:
    """How to search: nothing here changes what the answer means."""

    method: str = "auto"
    solver: str = "highs"
    time_limit: float = 60.0
    threads: int = 1
    gap: float = DEFAULT_GAP
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise QueryError(f"unknown method {self.method!r}: choose one of {', '.join(METHODS)}.")
        if self.solver not in SOLVERS:
            raise QueryError(f"unknown solver {self.solver!r}: choose one of {', '.join(SOLVERS)}.")
        for name in ("time limit", "threads", "gap"):
            check_number(name, getattr(self, name.replace(" ", "_")))
        if not (math.isfinite(self.time_limit) and self.time_limit > 0):
            raise QueryError(f"the time limit must be a positive number of seconds, got {self.time_limit:g}.")
        if self.threads < 1:
            raise QueryError(f"threads must be at least 1, got {self.threads}.")
        if not 0 <= self.gap < 1:
            raise QueryError(f"the gap must be at least 0 and below 1, got {self.gap:g}.")


def nearest(
    model: object,
    image: ArrayLike | Path,
    label: int | None = None,
    *,
    target: Target = "any",
    norm: str | float = "l1",
    cap: float | None = None,
    margin: float = DEFAULT_MARGIN,
    ratio: float | None = None,
    radius: float | None = None,
    outputs: Outputs = "logits",
    pixel_range: tuple[float, float] = (0.0, 1.0),
    costs: Costs | None = None,
    solver: str = "highs",
    method: str = "auto",
    time_limit: float = 60.0,
    threads: int = 1,
    gap: float = DEFAULT_GAP,
    input_shape: tuple[int, ...] | None = None,
    on_progress: OnProgress | None = None,
) -> Verdict:
    """Find the nearest image that the model classifies otherwise, and prove that none is nearer.

    `model` is an nn.Module in eval mode, a path to `.onnx`, a folder that `closecall train` wrote, or
    `zoo:NAME`; `input_shape` is needed for one that leaves it open. `image` is an array, a tensor or the path
    of a picture. `label` defaults to what the model says. `gap` is the relative gap to stop at.
    """
    how = How(method, solver, time_limit, threads, gap, on_progress)
    clock = Clock(time_limit)
    classifier, query = pose(
        clock, model, image, label, target=target, norm=norm, cap=cap, margin=margin, ratio=ratio,
        radius=radius, outputs=outputs, pixel_range=pixel_range, input_shape=input_shape,
    )  # fmt: skip
    return answer(classifier, query, how, clock, nearest=True, costs=costs)


def certify(
    model: object,
    image: ArrayLike | Path,
    label: int | None = None,
    *,
    radius: float,
    norm: str | float = "linf",
    target: Target = "any",
    cap: float | None = None,
    margin: float = DEFAULT_MARGIN,
    ratio: float | None = None,
    outputs: Outputs = "logits",
    pixel_range: tuple[float, float] = (0.0, 1.0),
    solver: str = "highs",
    method: str = "auto",
    time_limit: float = 60.0,
    threads: int = 1,
    input_shape: tuple[int, ...] | None = None,
    on_progress: OnProgress | None = None,
) -> Verdict:
    """Is there any adversarial image within the radius? `adversarial`, `robust` or `unresolved`."""
    how = How(method, solver, time_limit, threads, DEFAULT_GAP, on_progress)
    clock = Clock(time_limit)
    classifier, query = pose(
        clock, model, image, label, target=target, norm=norm, cap=cap, margin=margin, ratio=ratio,
        radius=radius, outputs=outputs, pixel_range=pixel_range, input_shape=input_shape,
    )  # fmt: skip
    return answer(classifier, query, how, clock, nearest=False)


def pose(
    clock: Clock,
    model: object,
    image: ArrayLike | Path,
    label: int | None,
    *,
    target: Target,
    radius: float | None,
    input_shape: tuple[int, ...] | None = None,
    **rest: Any,
) -> tuple[Classifier, Query]:
    """Read the model and put the question into one object."""
    given = image if isinstance(image, (str, Path)) else pixels_of(image)
    with clock.stage("read"):
        shape = shape_for(model, given) if input_shape is None else input_shape
        classifier = model if isinstance(model, Classifier) else read(model, shape)
        network = classifier.network
        taken = network.input_shape
        pixels = (
            pixels_of(picture_of(given, taken)) if isinstance(given, (str, Path)) else fitted(given, taken)
        )
    check_classes(network.classes)
    known = classifier.predict(pixels) if label is None else whole_number("label", label)
    wanted = wanted_class(target, known, network.classes)
    query = Query(
        pixels.ravel(),
        known,
        network.classes,
        wanted,
        radius=math.inf if radius is None else radius,
        **rest,
    )
    return classifier, query


def answer(
    classifier: Classifier, query: Query, how: How, clock: Clock, *, nearest: bool, costs: Costs | None = None
) -> Verdict:
    """Search, replay, decide."""
    predicted = classifier.predict(query.image)
    wanted = Wanted(query.label, query.target)
    domain, goal = query.domain(), query.goal()
    network = classifier.network if query.outputs == "logits" else classifier.network.with_relu_outputs()
    problem = Problem(
        # The paper's costs are on the units as they are, whatever their scale.
        balanced(network, domain) if costs is None else network,
        domain,
        goal,
        clock,
        nearest,
        SAFETY * how.gap,
        how.solver,
        usable_threads(how.threads),
        costs,
        how.on_progress,
    )
    if wanted.accepts(predicted):
        finding = Finding(domain.centre, 0.0)
        replayed: Replay | None = Replay(
            query.image.astype(np.float32).reshape(classifier.network.input_shape), 0.0, predicted, ()
        )
    else:
        with clock.stage("read"):
            classifier.prepare()
        finding = search(problem, how.method)
        with clock.stage("replay"), holding_interrupts_back():
            replayed = None
            if finding.witness is not None:
                replayed = replay(
                    classifier,
                    network,
                    domain,
                    goal,
                    finding.witness,
                    wanted.won,
                )
    with holding_interrupts_back():
        verdict = decide(classifier, query, how, clock, predicted, finding, replayed, costs)
    # Who asks whether there is any within the radius is not told which is the nearest.
    return verdict if nearest or verdict.outcome != "nearest" else replace(verdict, outcome="adversarial")


def decide(
    classifier: Classifier,
    query: Query,
    how: How,
    clock: Clock,
    predicted: int,
    finding: Finding,
    replayed: Replay | None,
    costs: Costs | None,
) -> Verdict:
    """Only a replayed witness counts as one; only a closed gap counts as nearest."""
    lower = finding.lower
    notes = classifier.notes
    outcome: Outcome
    if replayed is not None:
        lower = min(lower, replayed.distance)
        closed = replayed.distance - lower <= how.gap * replayed.distance + rounding(query, replayed)
        outcome = "nearest" if closed and costs is None else "adversarial"
        notes += replayed.notes
    elif finding.witness is not None:
        outcome = "unresolved"
        notes += ("a witness was found but did not hold when replayed in float32: ask for a larger margin",)
        lower = min(lower, query.domain().distance(finding.witness))
    else:
        outcome = "robust" if lower >= query.radius else "unresolved"
    if costs is not None:
        notes += ("optimal for the given costs, which is not the same as nearest",)
    notes += finding.notes
    if finding.interrupted:
        notes += ("interrupted: the interval holds as far as it was proven",)
    image = query.image.astype(np.float32).reshape(classifier.network.input_shape)
    return Verdict(
        outcome=outcome,
        distance=None if replayed is None else replayed.distance,
        lower_bound=lower,
        norm=query.norm,
        label=query.label,
        predicted_before=predicted,
        predicted_after=None if replayed is None else replayed.predicted,
        target=query.target,
        margin=query.margin,
        ratio=query.ratio,
        outputs=query.outputs,
        radius=None if math.isinf(query.radius) else query.radius,
        cap=query.cap,
        gap=how.gap,
        seconds=clock.seconds,
        seconds_by_stage=clock.by_stage,
        nodes=finding.nodes,
        solver=how.solver,
        method=how.method,
        replayed=replayed is not None,
        network_sha256=classifier.network.fingerprint,
        tolerances=TOLERANCES,
        image=image,
        witness=None if replayed is None else replayed.image,
        scores_before=classifier.network.forward(query.image[None])[0],
        scores_after=None
        if replayed is None
        else classifier.network.forward(replayed.image[None].astype(np.float64))[0],
        notes=notes,
        pixel_range=query.pixel_range,
        png=None
        if replayed is None
        else replay_png(
            classifier.engines,
            replayed.image,
            query.pixel_range,
            Wanted(query.label, query.target).won,
        ),
    )


def rounding(query: Query, replayed: Replay) -> float:
    """How far rounding the original and the witness to float32 can move their distance."""
    if query.norm == "l0":
        return 0.0
    largest = np.maximum(np.abs(query.image), np.abs(replayed.image.ravel().astype(np.float64)))
    return float(query.domain().norm.distance(largest * 2.0**-23)) + 1e-9


def wanted_class(target: Target, label: int, classes: int) -> int | None:
    if target == "any":
        return None
    if target == "paper":
        return paper_target(label, classes)
    if isinstance(target, str):
        raise QueryError(f"unknown target {target!r}: give 'any', 'paper' or the number of a class.")
    return whole_number("target", target)


def whole_number(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise QueryError(f"the {name} must be the number of a class, got {value!r}.") from error


def shape_for(model: object, image: str | Path | NDArray[np.float64]) -> tuple[int, ...] | None:
    """The shape of one image for a model that may not say its own: (C, H, W) without a batch dimension."""
    named = isinstance(model, (str, Path)) and Path(model).suffix.lower() != ".onnx"
    if named or hasattr(model, "input_shape") or isinstance(image, (str, Path)) or image.ndim < 2:
        return None
    return (1, *image.shape) if image.ndim == 2 else image.shape[-3:]
