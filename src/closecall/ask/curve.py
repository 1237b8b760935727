"""curve(): the worst margin of an image by the radius, proven from below and found from above."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from closecall.arrays import Vector
from closecall.ask.margins import Margins, OnMargins
from closecall.ask.nearest import problem_of
from closecall.ask.posing import More, pose
from closecall.attacks.gradient import find_witness, widest
from closecall.clock import Clock, holding_interrupts_back
from closecall.question.checks import check, check_number, whole_number
from closecall.question.effort import Effort
from closecall.question.names import MethodName, NormName, SolverName, Target
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.search.problem import Problem
from closecall.verdict.curve import Curve, CurvePoint
from closecall.verdict.replay import Wanted

log = logging.getLogger(__name__)

POINTS = 20
MOST_POINTS = 1_000
GAP = 0.01


def curve(
    model: object,
    image: ArrayLike | Path,
    label: int | None = None,
    *,
    radius: float | None = None,
    radii: Sequence[float] | None = None,
    points: int = POINTS,
    target: Target = "any",
    norm: NormName | float = "linf",
    cap: float | None = None,
    pixel_range: tuple[float, float] = (0.0, 1.0),
    solver: SolverName = "highs",
    method: MethodName = "auto",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    gap: float = GAP,
    input_shape: tuple[int, ...] | None = None,
    on_progress: OnMargins | None = None,
    **more: Unpack[More],
) -> Curve:
    """Bound the worst margin of any image within each radius: proven from below, found from above.

    The margin is how far the scores are from another verdict: y_label − max y_j, or with a target
    max y_j − y_target. Where it is below 0 the verdict has changed.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        image: An array or tensor (channels, height, width), or the path of a picture.
        label: The true class; by default what the model says.
        radius: The largest radius; by default twice the distance at which an attack changes the verdict.
        radii: Instead of that: all radii.
        points: How many radii from 0 to the largest.
        target: "any" other class, the number of the one to reach, several of which any will do, or "paper"
            for (label + 5) mod 10.
        norm: How distance is measured: "l1", "l2", "linf" or "l0"; L1, L∞, inf or 2 will do, too.
        cap: The most that any one pixel may change.
        pixel_range: The least and the largest value of a pixel.
        solver: "highs", "scip", "gurobi" or "cplex", for what is left to a MILP solver.
        method: "auto", "milp", "milp-improved" or "milp-basic".
        time_limit: Seconds for everything; what is known by then is given.
        threads: Threads of the search.
        gap: How narrow an interval is to be, as a share of the largest margin of the curve.
        input_shape: The shape of one image, for a model that leaves it open.
        on_progress: Called with (points that are closed, points, widest gap, seconds) as intervals shrink.
        more: out_of_top, mask, also and change, as docs/questions.md says.
    """
    effort, clock = Effort(method, solver, time_limit, threads, gap), Clock(time_limit)
    for name in ("patch", "confidence", "pixels"):
        check(more.get(name) is None, f"a curve has no {name}: leave it out.")
    check(radius is None or radii is None, "give the largest radius or all radii, not both.")
    wanted = None if radii is None else checked_radii(radii)
    count = whole_number("number of points", points)
    check(1 <= count <= MOST_POINTS, f"a curve has 1 to {MOST_POINTS:,} points, got {points}.")
    classifier, question = pose(
        clock, model, image, label, input_shape, target=target, norm=norm, cap=cap, radius=radius,
        pixel_range=pixel_range, **more,
    )  # fmt: skip
    log.info("asked for the curve: %r, %r", question, effort)
    return drawn(classifier, question, effort, clock, wanted, count, on_progress)


def drawn(
    classifier: Classifier,
    question: Question,
    effort: Effort,
    clock: Clock,
    radii: Vector | None = None,
    points: int = POINTS,
    on_progress: OnMargins | None = None,
) -> Curve:
    """Search, and put together what is known when it ends."""
    with clock.stage("read"):
        classifier.prepare()
    problem = problem_of(classifier, question, effort, clock, nearest=True, costs=None)
    interrupted = False
    margins: Margins | None = None
    with clock.noting_interrupts():
        try:
            known = None if radii is not None else first_witness(problem, question)
            chosen = chosen_radii(problem, known, points) if radii is None else radii
            margins = Margins(problem, classifier, question, effort, chosen, on_progress)
            if known is not None:
                margins.keep(known, float(chosen[-1]))
            margins.run()
        except KeyboardInterrupt:
            if margins is None:
                raise
            interrupted = True
    with holding_interrupts_back():
        found = curve_of(margins, classifier, question, effort, clock, interrupted=interrupted)
    log.info("found: %s", found)
    return found


def curve_of(
    margins: Margins,
    classifier: Classifier,
    question: Question,
    effort: Effort,
    clock: Clock,
    *,
    interrupted: bool,
) -> Curve:
    """The curve from what is known of each radius."""
    seen = [[engine(image[None])[0] for engine in classifier.engines.values()] for image in margins.images]
    wanted = Wanted.by(question)
    predicted = [int(scores[0].argmax()) for scores in seen]
    changes = [all(wanted.won(each) for each in scores) for scores in seen]
    numbers = (margins.radii, margins.lower, margins.upper, margins.distances)
    rows = zip(*(each.tolist() for each in numbers), predicted, changes, strict=True)
    notes = classifier.notes
    notes += ("interrupted: the curve holds as far as it was proven",) if interrupted else ()
    return Curve(
        outcome="closed" if margins.closed.all() else "open",
        points=tuple(CurvePoint(*row) for row in rows),
        nearest=margins.nearest,
        question=question,
        effort=effort,
        predicted=predicted[0],
        seconds=clock.seconds,
        nodes=margins.nodes,
        network_sha256=classifier.network.fingerprint,
        image=margins.images[0],
        images=tuple(margins.images),
        notes=notes,
    )


def checked_radii(radii: Sequence[float]) -> Vector:
    """Positive numbers in order, each once."""
    for each in radii:
        check_number("radius", each)
    chosen = np.unique(np.asarray(radii, dtype=np.float64))
    check(0 < len(chosen) <= MOST_POINTS, f"a curve has 1 to {MOST_POINTS:,} radii, got {len(chosen)}.")
    finite = bool(np.isfinite(chosen).all()) and float(chosen[0]) > 0
    check(finite, f"the radii must be positive and finite, got {chosen[0]:g} to {chosen[-1]:g}.")
    return chosen


def first_witness(problem: Problem, question: Question) -> Vector | None:
    """What an attack finds, which says how far a curve is to go where nobody does."""
    if math.isfinite(problem.domain.radius):
        return None
    with problem.clock.stage("attack"):
        until = problem.clock.share(problem.settings.curve.share_for_first_attack)
        return find_witness(problem.network, problem.domain, question.goal(), until=until)


def chosen_radii(problem: Problem, witness: Vector | None, points: int) -> Vector:
    """Up to the radius that was asked for, or to twice the distance of a witness."""
    domain = problem.domain
    end = min(domain.radius, widest(domain))
    if witness is not None and domain.distance(witness) > 0:
        end = min(end, problem.settings.curve.beyond * domain.distance(witness))
    radii = np.linspace(0.0, end, points + 1)[1:]
    return np.unique(np.ceil(radii)) if domain.norm.name == "l0" else radii
