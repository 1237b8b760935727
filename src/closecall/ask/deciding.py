"""What may be claimed: only a replayed witness counts as one, only a closed gap counts as nearest."""

from __future__ import annotations

import numpy as np

from closecall.arrays import OUTWARD, Image, Vector
from closecall.clock import Clock
from closecall.encoding.encode import Costs
from closecall.question.effort import Effort
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.search.incumbent import is_closed
from closecall.search.problem import Finding
from closecall.solvers import SOLVERS, tolerances_of
from closecall.verdict.eight_bit import replay_png
from closecall.verdict.replay import Replay, Wanted
from closecall.verdict.verdict import Outcome, Verdict


def decide(
    classifier: Classifier,
    question: Question,
    effort: Effort,
    finding: Finding,
    replayed: Replay | None,
    *,
    predicted: int,
    clock: Clock,
    costs: Costs | None = None,
) -> Verdict:
    """From what was found, and how it held when it was replayed, to a verdict."""
    outcome, lower = judged(question, effort, finding, replayed)
    if costs is not None and outcome == "nearest":
        outcome = "adversarial"
    witness = None if replayed is None else replayed.image
    accepts = Wanted.by(question).won
    png = None if witness is None else replay_png(classifier.engines, witness, question.pixel_range, accepts)
    original = question.image.astype(np.float32).reshape(classifier.network.input_shape)
    return Verdict(
        outcome=outcome,
        distance=None if replayed is None else replayed.distance,
        lower_bound=lower,
        question=question,
        effort=effort,
        predicted_before=predicted,
        predicted_after=None if replayed is None else replayed.predicted,
        seconds=clock.seconds,
        seconds_by_stage=clock.by_stage,
        nodes=finding.nodes,
        engine=finding.engine,
        why=finding.why,
        replayed=replayed is not None,
        network_sha256=classifier.network.fingerprint,
        tolerances=tolerances_behind(finding.engine),
        image=original,
        witness=witness,
        scores_before=scores_of(classifier, original),
        scores_after=None if witness is None else scores_of(classifier, witness),
        notes=(*classifier.notes, *notes_on(finding, replayed, costs), *notes_on_meaning(question)),
        png=png,
        amounts=amounts_of(question, replayed),
    )


def amounts_of(question: Question, replayed: Replay | None) -> dict[str, float] | None:
    """The numbers that a change takes to the witness, by name."""
    changed = question.changed()
    if changed is None or replayed is None or replayed.amounts is None:
        return None
    return dict(zip(changed.names, replayed.amounts.tolist(), strict=True))


def judged(
    question: Question, effort: Effort, finding: Finding, replayed: Replay | None
) -> tuple[Outcome, float]:
    """The outcome, and the distance below which there is proven to be nothing."""
    if replayed is not None:
        lower = min(finding.lower, replayed.distance)
        closed = is_closed(lower, replayed.distance, effort.gap, rounding(question, replayed))
        return "nearest" if closed else "adversarial", lower
    if finding.witness is not None:
        return "unresolved", min(finding.lower, question.domain().distance(finding.witness))
    return "robust" if finding.lower >= question.radius else "unresolved", finding.lower


def rounding(question: Question, replayed: Replay) -> float:
    """How far rounding the original and the witness to float32 can move their distance: no change's size."""
    if question.norm == "l0":
        return 0.0
    if question.change is not None:
        return 1e-9
    largest = np.maximum(np.abs(question.image), np.abs(replayed.image.ravel().astype(np.float64)))
    return float(question.domain().norm.distance(largest * 2.0**-23)) + 1e-9


def notes_on(finding: Finding, replayed: Replay | None, costs: Costs | None) -> tuple[str, ...]:
    """What must be said beside the numbers."""
    notes: tuple[str, ...] = () if replayed is None else replayed.notes
    if replayed is None and finding.witness is not None:
        notes += ("a witness was found but did not hold when replayed in float32: ask for a larger margin",)
    if costs is not None:
        notes += ("optimal for the given costs, which is not the same as nearest",)
    notes += finding.notes
    if finding.interrupted:
        notes += ("interrupted: the interval holds as far as it was proven",)
    return notes


def notes_on_meaning(question: Question) -> tuple[str, ...]:
    """What a number that was asked for stands for."""
    if question.confidence is None:
        return ()
    return ("the confidence is that of a softmax over the class scores, in float64",)


def tolerances_behind(engine: str) -> dict[str, float]:
    """What a lower bound is exact to: a solver's tolerances, or the outward rounding of our own searches.

    Those trust no solver: bounds from linear programs are recomputed from their multipliers in float64.
    """
    if engine in SOLVERS:
        return tolerances_of(engine)
    return {"outward_rounding": OUTWARD}


def scores_of(classifier: Classifier, image: Image | Vector) -> Vector:
    """The scores in float64, as they are reasoned about."""
    return np.asarray(classifier.network.forward(image[None].astype(np.float64))[0])
