"""The demo's page: a headline for each network, its nearest adversarials, its training."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from closecall.report import (
    Card,
    Line,
    Page,
    Section,
    Shot,
    cards,
    difference_uri,
    gallery,
    image_uri,
    line_chart,
    panels,
    paragraph,
    subheading,
)
from closecall.verdict import Verdict

SETTLED = 1e-3  # an interval this narrow looks like one figure


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with what its training said about it."""

    title: str
    described: dict[str, Any]  # what model.json says
    curves: list[dict[str, float]]  # one row per epoch


@dataclass(frozen=True, eq=False)
class Shown:
    """A network and its verdicts on the chosen images."""

    trained: Trained
    verdicts: list[Verdict]


def demo_page(shown: Sequence[Shown]) -> Page:
    """The page: a headline for each network, how it was trained, and its nearest adversarials."""
    return Page(
        title="How close is the call?",
        lead=(
            "Two small networks learned to read handwritten digits. For each digit below, this is the "
            "smallest change that makes the network read another one, and how much of that is proven."
        ),
        sections=[
            Section("The answer", [cards([headline(part) for part in shown])]),
            Section("The nearest adversarials", galleries(shown)),
            Section("The training", trainings(shown)),
            Section("Check it", [paragraph(CHECKING)]),
        ],
        footer="Distances are sums of absolute pixel changes (L1); a pixel runs from 0 to 1.",
    )


CHECKING = (
    "Every answer above is saved beside this page, in the folder verdicts. closecall replay reads one again, "
    "classifies it with PyTorch and with ONNX Runtime in float32 and measures its distance, all without a "
    "solver. The lower bounds rest on the search and on the tolerances printed in each verdict.json."
)


def headline(part: Shown) -> Card:
    """The median distance and its proven interval: the median of bounds bounds the median."""
    described, verdicts = part.trained.described, part.verdicts
    upper = statistics.median(math.inf if v.distance is None else v.distance for v in verdicts)
    lower = statistics.median(v.lower_bound for v in verdicts)
    proven = sum(v.outcome in ("nearest", "robust") for v in verdicts)
    return Card(
        name=part.trained.title,
        figure=known(lower, upper),
        what="median distance to another answer",
        facts=[
            ("median lies in", f"[{rounded_down(lower)}, {rounded_up(upper)}]"),
            ("proven to the end", f"{proven} of {len(verdicts)}"),
            ("test accuracy", f"{described['accuracy']:.1%}"),
            ("parameters", f"{described['parameters']:,}"),
            ("ReLU and pooling units", f"{described['units']:,}"),
            ("time to train", f"{described['seconds']:.1f} s"),
            ("time to prove", f"{sum(v.seconds for v in verdicts):.1f} s"),
        ],
    )


def known(lower: float, upper: float) -> str:
    """The figure itself where the interval is closed, else only how large it can be."""
    if math.isinf(upper):
        return "unknown"
    return f"{upper:.2f}" if upper - lower <= SETTLED else f"≤ {math.ceil(100 * upper) / 100:.2f}"


def rounded_down(value: float) -> str:
    """Three digits that never claim more than was proven."""
    return "∞" if math.isinf(value) else f"{math.floor(1000 * value) / 1000:.3f}"


def rounded_up(value: float) -> str:
    return "∞" if math.isinf(value) else f"{math.ceil(1000 * value) / 1000:.3f}"


def galleries(shown: Sequence[Shown]) -> list[str]:
    blocks = [paragraph("In the difference, red pixels became brighter and blue ones darker.")]
    for part in shown:
        blocks.append(subheading(part.trained.title))
        blocks.append(gallery([shot(verdict) for verdict in part.verdicts if verdict.witness is not None]))
    return blocks


def shot(verdict: Verdict) -> Shot:
    if verdict.witness is None or verdict.distance is None:
        raise ValueError("only a verdict with a witness can be shown")
    closed = verdict.outcome == "nearest"
    lower, upper = rounded_down(verdict.lower_bound), rounded_up(verdict.distance)
    return Shot(
        original=image_uri(verdict.image),
        changed=image_uri(verdict.witness),
        difference=difference_uri(verdict.witness.astype(np.float64) - verdict.image),
        before=str(verdict.predicted_before),
        after=str(verdict.predicted_after),
        distance=upper,
        proof=(
            f"proven nearest: none below {lower}"
            if closed
            else f"the nearest lies between {lower} and {upper}"
        ),
        closed=closed,
    )


def trainings(shown: Sequence[Shown]) -> list[str]:
    blocks = []
    for part in shown:
        curves = part.trained.curves
        blocks.append(subheading(part.trained.title))
        blocks.append(
            panels(
                [
                    line_chart("Accuracy", pair(curves, "accuracy"), percent=True),
                    line_chart("Loss", pair(curves, "loss")),
                ]
            )
        )
    return blocks


def pair(curves: Sequence[dict[str, float]], name: str) -> list[Line]:
    """The line of the training images and the line of the held-out ones."""
    return [
        Line("training", [row[name] for row in curves], 1),
        Line("held out", [row[f"validation_{name}"] for row in curves], 2),
    ]
