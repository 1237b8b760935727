"""How far each image is from its nearest adversarial: proven where it can be, attacked elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np

from closecall.ask.attack import attack
from closecall.compare.asking import Asked, asking
from closecall.compare.comparison import Comparison, picture
from closecall.compare.results import DistanceRow
from closecall.compare.subjects import Subject
from closecall.compare.torch_attack import attack_module

Ask = Callable[[Comparison, Subject, int], DistanceRow]


def choose_images(comparison: Comparison) -> list[int]:
    """The first test image of each class, then the second, and so on: whatever the models make of them."""
    labels, wanted = comparison.test.labels, comparison.preset.images
    queues = [np.flatnonzero(labels == label).tolist() for label in range(comparison.test.classes)]
    rounds = range(max(len(queue) for queue in queues))
    in_turn = [queue[turn] for turn in rounds for queue in queues if turn < len(queue)]
    return [int(index) for index in in_turn[:wanted]]


def measure_distances(comparison: Comparison, subjects: Sequence[Subject]) -> list[DistanceRow]:
    """One row for each image and model; images in the gallery keep their pictures."""
    comparison.progress.heading(f"distances ({comparison.norm}) to the nearest adversarial")
    indices = choose_images(comparison)
    shown = gallery_images(comparison, subjects, indices)
    rows = [
        row
        for subject in subjects
        if can_be_attacked(comparison, subject)
        for row in measure_all(comparison, subject, indices)
    ]
    return [row if row.index in shown else replace(row, original=None, nearest=None) for row in rows]


def can_be_attacked(comparison: Comparison, subject: Subject) -> bool:
    if subject.module is not None or subject.classifier is not None:
        return True
    comparison.narrow(
        f"{subject.name} has no distances: it is an ONNX file that closecall cannot read exactly, so it has "
        "no gradients to attack it by either."
    )
    return False


def gallery_images(comparison: Comparison, subjects: Sequence[Subject], indices: Sequence[int]) -> list[int]:
    """The images that most models get right, the first ones among equals."""
    images, labels = comparison.test.images[list(indices)], comparison.test.labels[list(indices)]
    right = sum((subject.predict(images) == labels).astype(int) for subject in subjects)
    order = np.argsort(-np.asarray(right), kind="stable")[: comparison.preset.gallery]
    return [indices[position] for position in order]


def measure_all(comparison: Comparison, subject: Subject, indices: Sequence[int]) -> list[DistanceRow]:
    """The kept rows, and a batch for all others."""
    if subject.classifier is None:
        return [measure_one(comparison, subject, index, ask_attack) for index in indices]
    missing = [index for index in indices if not comparison.record.has(key_of(comparison, subject, index))]
    right = [index for index in missing if read_as(comparison, subject, index) == label_of(comparison, index)]
    with asking(comparison, subject.name, subject.classifier, right) if right else nullcontext() as asked:

        def ask(comparison: Comparison, subject: Subject, index: int) -> DistanceRow:
            return ask_search(comparison, subject, index, cast("Asked", asked))

        return [measure_one(comparison, subject, index, ask) for index in indices]


def key_of(comparison: Comparison, subject: Subject, index: int) -> dict[str, Any]:
    """What a row is known by."""
    return comparison.key(
        "distance",
        model=subject.name,
        weights=subject.weights,
        index=index,
        norm=comparison.norm,
        limit=comparison.preset.time_limit,
    )


def label_of(comparison: Comparison, index: int) -> int:
    return int(comparison.test.labels[index])


def read_as(comparison: Comparison, subject: Subject, index: int) -> int:
    return int(subject.score(comparison.test.image(index)[None])[0].argmax())


def measure_one(comparison: Comparison, subject: Subject, index: int, ask: Ask) -> DistanceRow:
    """The kept row, or a new one with a line on the console."""
    key = key_of(comparison, subject, index)
    known = comparison.record.has(key)
    row = comparison.row(DistanceRow, key, lambda: ask_if_right(comparison, subject, index, ask))
    if not known:
        comparison.progress.say(f"{subject.name}, test image {index}: {sentence(row)}")
    return row


def ask_if_right(comparison: Comparison, subject: Subject, index: int, ask: Ask) -> DistanceRow:
    """An image that is misread is its own adversarial."""
    label, predicted = label_of(comparison, index), read_as(comparison, subject, index)
    original = picture(comparison.test.image(index))
    if predicted != label:
        return DistanceRow(
            subject.name, index, label, predicted, comparison.norm, "misclassified", 0.0, 0.0, True, 0.0,
            0.0, 0, original, original,
        )  # fmt: skip
    return ask(comparison, subject, index)


def ask_search(comparison: Comparison, subject: Subject, index: int, asked: Asked) -> DistanceRow:
    """A proven interval, beside what the attack alone finds."""
    image, label = comparison.test.image(index), label_of(comparison, index)
    heuristic = attack(subject.classifier, image[None], [label], norm=comparison.norm).distances[0]
    with comparison.progress.show_interval() as report:
        verdict = asked.verdict(index, report)
    witness = verdict.witness
    return DistanceRow(
        model=subject.name,
        index=index,
        label=label,
        became=verdict.predicted_after,
        norm=comparison.norm,
        outcome=verdict.outcome,
        lower=None if math.isinf(verdict.lower_bound) else verdict.lower_bound,
        upper=verdict.distance,
        proven=verdict.outcome in ("nearest", "robust"),
        attack=float(heuristic) if math.isfinite(heuristic) else None,
        seconds=round(verdict.seconds, 3),
        nodes=verdict.nodes,
        original=picture(image),
        nearest=None if witness is None else picture(witness),
    )


def ask_attack(comparison: Comparison, subject: Subject, index: int) -> DistanceRow:
    """Only an upper bound, by gradient on the torch model."""
    if subject.module is None:
        raise ValueError("a model without gradients cannot be attacked")
    image, label = comparison.test.image(index), int(comparison.test.labels[index])
    began = time.perf_counter()
    found = attack_module(
        subject.module, image, label, norm=comparison.norm, seconds=comparison.preset.time_limit
    )
    return DistanceRow(
        model=subject.name,
        index=index,
        label=label,
        became=None if found is None else found[2],
        norm=comparison.norm,
        outcome="attacked",
        lower=0.0,
        upper=None if found is None else found[1],
        proven=False,
        attack=None if found is None else found[1],
        seconds=round(time.perf_counter() - began, 3),
        nodes=0,
        original=picture(image),
        nearest=None if found is None else picture(found[0]),
    )


def sentence(row: DistanceRow) -> str:
    """The row in a few words."""
    if row.outcome == "misclassified":
        return f"misclassified as {row.became}, so the distance is 0"
    if row.outcome == "robust":
        return f"proven that no image at all changes the verdict ({row.seconds:.1f} s)"
    upper = "none found" if row.upper is None else f"{row.upper:.4g} turns {row.label} into {row.became}"
    if row.outcome == "attacked":
        return f"{upper}, not proven nearest ({row.seconds:.1f} s)"
    if row.outcome == "nearest":
        return f"{upper}, proven nearest ({row.seconds:.1f} s)"
    return f"{upper}, proven at least {row.lower:.4g} ({row.seconds:.1f} s)"
