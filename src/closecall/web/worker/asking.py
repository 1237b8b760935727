"""One question of a page: nearest, certify or ideal, about any model; stopped, it gives what it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from closecall.ask.ideal import Ideal, ideal
from closecall.ask.nearest import answer
from closecall.ask.posing import Asked, pose
from closecall.clock import Clock
from closecall.errors import UnsupportedLayerError
from closecall.question.checks import whole_number
from closecall.question.effort import Effort
from closecall.question.images import channels_first
from closecall.verdict.saved import json_bytes, npy_bytes, verdict_files
from closecall.verdict.verdict import Verdict
from closecall.web import words
from closecall.web.messages import Source, Tell
from closecall.web.worker.opened import Pixels, classifier_of, opened
from closecall.web.worker.predicting import shares
from closecall.web.worker.telling import Telling, finite
from closecall.web.worker.unproven import attack_capsules, best_for_capsules


def ask(
    tell: Tell, *, source: Source, task: str, image: Pixels | None, asked: Asked, limit: float,
    class_names: tuple[str, ...], origin: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The answer as a page shows it, and the files of it that can be fetched."""
    opened(source)  # before the clock runs
    if task == "ideal":
        found = ideal_of(tell, source, whole_number("target", asked["target"]), limit)
        return ideal_answer(source, found, class_names)
    if image is None:
        raise TypeError(f"{task} is asked about an image")
    try:
        classifier = classifier_of(source)  # of a capsule network it is made for the first question
    except UnsupportedLayerError:
        if source.kind != "capsnet":
            raise
        return attack_capsules(tell, source, image, asked, limit, class_names)
    clock = Clock(limit)
    classifier, question = pose(clock, classifier, image, None, **asked)
    telling = Telling(tell, source, classifier.network.input_shape, clock)
    verdict = answer(
        classifier, question, Effort(time_limit=limit), clock,
        nearest=task == "nearest", on_progress=telling.interval, on_witness=telling.image,
    )  # fmt: skip
    return verdict_answer(source, verdict, class_names, origin)


def verdict_answer(
    source: Source, verdict: Verdict, class_names: tuple[str, ...], origin: Mapping[str, Any]
) -> dict[str, Any]:
    witness = verdict.witness
    record, files = verdict_files(
        verdict, model=words.model_of(source), class_names=class_names, origin=origin
    )
    return {
        "outcome": verdict.outcome,
        "sentence": words.of_verdict(verdict, class_names),
        "proven": verdict.outcome in ("nearest", "robust"),
        "distance": verdict.distance,
        "lower": finite(verdict.lower_bound),
        "label": verdict.predicted_before,
        "became": verdict.predicted_after,
        "witness": None if witness is None else channels_first(witness),
        "shares_before": shares(source, verdict.scores_before),
        "shares_after": None if verdict.scores_after is None else shares(source, verdict.scores_after),
        "seconds": verdict.seconds,
        "nodes": verdict.nodes,
        "engine": verdict.engine,
        "notes": [*verdict.notes, *([] if verdict.png is None else [verdict.png.sentence()])],
        "record": record,
        "files": files,
    }


def ideal_of(tell: Tell, source: Source, target: int, seconds: float) -> Ideal:
    """The best example of a class and a bound on any; of capsules, only what a climb finds."""
    if source.kind == "capsnet":
        return best_for_capsules(source, target, seconds)
    telling = Telling(tell, source, classifier_of(source).network.input_shape, Clock(seconds))
    return ideal(classifier_of(source), target, time_limit=seconds, on_progress=telling.interval)


def ideal_answer(source: Source, found: Ideal, class_names: tuple[str, ...]) -> dict[str, Any]:
    record = {**found.to_json(), "scores": found.scores.tolist(), "class_names": list(class_names)}
    record["model"] = words.model_of(source)
    climbed = source.kind == "capsnet"  # by no solver, and of a network that has no fingerprint
    if climbed:
        record = {key: value for key, value in record.items() if key not in ("solver", "network_sha256")}
    return {
        "outcome": found.outcome,
        "sentence": words.of_ideal(found, class_names),
        "proven": found.outcome == "ideal",
        "distance": found.lead,
        "lower": found.lead_bound,
        "label": found.target,
        "became": found.predicted,
        "witness": channels_first(found.image),
        "shares_before": None,
        "shares_after": shares(source, found.scores),
        "seconds": found.seconds,
        "nodes": found.nodes,
        "engine": "climb" if climbed else found.solver,
        "notes": list(found.notes),
        "record": record,
        "files": {"image.npy": npy_bytes(found.image), "ideal.json": json_bytes(record)},
    }
