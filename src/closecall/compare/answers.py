"""The line of each model: accuracy, size, training time, time per image."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence

from closecall.compare.comparison import Comparison
from closecall.compare.contenders import TRAINED_HERE
from closecall.compare.results import ModelRow
from closecall.compare.subjects import MOST_UNITS, Subject
from closecall.data.dataset import to_unit_interval
from closecall.models import CNNBaseline, count_parameters

SINGLE_RUNS = 30
BATCH, BATCH_RUNS = 100, 3
PAPER_BASELINE = "the paper's own, on 28×28 images, has 35.4 M, which is 35,445,522 with zero padding"


def measure_models(comparison: Comparison, subjects: Sequence[Sequence[Subject]]) -> list[ModelRow]:
    """One row for each model; `subjects` are its networks, one for each seed."""
    comparison.progress.heading("accuracy and time per image")
    return [measure_model(comparison, networks) for networks in subjects]


def measure_model(comparison: Comparison, networks: Sequence[Subject]) -> ModelRow:
    first = networks[0]
    shares = [accuracy_of(comparison, subject) for subject in networks]
    key = comparison.key("speed", model=first.name, weights=first.weights)
    speed = comparison.record.measured(key, lambda: time_images(comparison, first))
    row = ModelRow(
        name=first.name,
        kind=first.kind,
        description=first.contender.summary(first.described.get("config", {})),
        source=first.contender.source or TRAINED_HERE,
        parameters=parameters_of(first),
        units=first.units,
        accuracy=shares,
        training_seconds=[] if first.contender.source else [s.described["seconds"] for s in networks],
        milliseconds_single=speed["single"],
        milliseconds_batched=speed["batched"],
        provable=first.classifier is not None,
        note=note_on(first),
    )
    comparison.progress.say(
        f"{row.name}: {row.mean_accuracy:.2%} of the test images right, {row.parameters:,} parameters, "
        f"{row.milliseconds_single:.2f} ms for an image"
    )
    return row


def accuracy_of(comparison: Comparison, subject: Subject) -> float:
    """The share of all test images that a network gets right."""
    key = comparison.key("accuracy", model=subject.name, weights=subject.weights)

    def measure() -> dict[str, float]:
        with comparison.progress.waiting(f"testing {subject.name}"):
            return {"share": subject.accuracy(comparison.test)}

    return float(comparison.record.measured(key, measure)["share"])


def time_images(comparison: Comparison, subject: Subject) -> dict[str, float]:
    """Milliseconds for an image: alone (median of many), and as one of a batch (best of a few)."""
    images = to_unit_interval(comparison.test.images[:BATCH])
    subject.score(images)
    alone = [seconds_for(subject, images[i % len(images)][None]) for i in range(SINGLE_RUNS)]
    together = [seconds_for(subject, images) for _ in range(BATCH_RUNS)]
    return {
        "single": round(1000 * statistics.median(alone), 4),
        "batched": round(1000 * min(together) / len(images), 4),
    }


def seconds_for(subject: Subject, images: object) -> float:
    began = time.perf_counter()
    subject.score(images)  # type: ignore[arg-type]
    return time.perf_counter() - began


def parameters_of(subject: Subject) -> int:
    """The trained numbers; of an ONNX file, all its stored ones."""
    if subject.module is not None:
        return count_parameters(subject.module)
    import onnx

    return sum(math.prod(tensor.dims) for tensor in onnx.load(subject.contender.source).graph.initializer)


def note_on(subject: Subject) -> str:
    """What a reader must know about this model."""
    notes = []
    if isinstance(subject.module, CNNBaseline):
        notes.append(f"{count_parameters(subject.module):,} parameters here; {PAPER_BASELINE}.")
    if subject.too_large:
        notes.append(
            f"Its distances are what an attack reached, not proven: it has {subject.units:,} units, and "
            f"bounds are made for up to {MOST_UNITS:,}."
        )
    elif subject.classifier is None:
        notes.append("Its distances are what an attack reached, not proven: no MILP is made of it.")
    return " ".join(notes)
