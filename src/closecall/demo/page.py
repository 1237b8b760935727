"""The demo's page: the answer in words and figures, the nearest adversarials, and the training."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from closecall.report import (
    Axis,
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
    plain_axis,
    shares_axis,
    subheading,
)
from closecall.report.numbers import (
    NORM_NAMES,
    count,
    duration,
    interval,
    listed,
    percent,
    rounded_down,
    rounded_up,
)
from closecall.report.words import change_words, changed_pixels, distance_words
from closecall.verdict.verdict import Verdict

SETTLED = 1e-3  # an interval this narrow looks like one figure


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with what its training said about it."""

    name: str
    title: str
    described: dict[str, Any]  # what model.json says
    curves: list[dict[str, float]]  # one row per epoch


@dataclass(frozen=True, eq=False)
class Shown:
    """A network and its verdicts on the chosen images."""

    trained: Trained
    verdicts: list[Verdict]

    @property
    def lower(self) -> float:
        """No smaller median is possible: the median of lower bounds bounds the median."""
        return statistics.median(verdict.lower_bound for verdict in self.verdicts)

    @property
    def upper(self) -> float:
        return statistics.median(math.inf if v.distance is None else v.distance for v in self.verdicts)


def demo_page(shown: Sequence[Shown]) -> Page:
    """The page: the answer in words and in figures, the nearest adversarials, and how it was trained."""
    norm = shown[0].verdicts[0].norm
    return Page(
        title="How close is the call?",
        lead=(
            "Two small networks learned to read handwritten digits. For each digit below, this is the "
            "smallest change that makes the network read another one, and how much of that is proven."
        ),
        sections=[
            Section("The answer", [*answers(shown), cards([headline(part) for part in shown])]),
            Section("The nearest adversarials", galleries(shown)),
            Section("The training", trainings(shown)),
            Section("Check it", [paragraph(CHECKING)]),
        ],
        footer=f"Distances are {distance_words(norm)}.",
    )


CHECKING = (
    "Every answer above is saved beside this page, in the folder verdicts. closecall replay reads one again, "
    "classifies it with PyTorch and with ONNX Runtime in float32 and measures its distance, all without a "
    "solver. The lower bounds rest on the search and on the tolerances printed in each verdict.json; they "
    "hold for images whose new class beats the old one by the margin that is printed there."
)


def answers(shown: Sequence[Shown]) -> list[str]:
    """One digit as an example with its unit, and which network takes the larger change."""
    blocks = []
    example = next(((part, v) for part in shown for v in part.verdicts if v.witness is not None), None)
    if example is not None:
        blocks.append(paragraph(example_words(*example)))
    words = hardest_to_fool(shown)
    return [*blocks, paragraph(words)] if words else blocks


def hardest_to_fool(shown: Sequence[Shown]) -> str:
    """Say whose median is above the others', where that is proven."""
    furthest = max(shown, key=lambda part: part.lower)
    others = [part for part in shown if part is not furthest]
    if not others or max(part.upper for part in others) >= furthest.lower:
        return ""
    told = listed(
        [f"half of the {part.trained.name}'s need no more than {rounded_up(part.upper)}" for part in others]
    )
    return (
        f"The {furthest.trained.name} is the harder to fool on these digits: half of them need a change of "
        f"{rounded_down(furthest.lower)} or more, while {told}."
    )


def example_words(part: Shown, verdict: Verdict) -> str:
    """One verdict with its unit and the network it is about."""
    whose = f"the first {verdict.predicted_before} below, as the {part.trained.name} sees it,"
    return verdict_words(verdict, whose, distance_words(verdict.norm))


def verdict_words(verdict: Verdict, whose: str = "", unit: str = "") -> str:
    """What has to be changed for another answer, and what is proven about smaller changes, as a sentence."""
    if verdict.witness is None or verdict.distance is None:
        raise ValueError("only a verdict with a witness can be put into words")
    pixels = changed_pixels(verdict.witness.astype(np.float64) - verdict.image)
    change = change_words(verdict.norm, pixels, rounded_up(verdict.distance), unit)
    before = whose or f"this {verdict.predicted_before}"
    article = "an" if verdict.predicted_after == 8 else "a"
    turned = f"{change} turns {before} into {article} {verdict.predicted_after}"
    lower = rounded_down(verdict.lower_bound)
    if verdict.outcome == "nearest":
        return f"{turned}, and nothing below {lower} does."
    return f"{turned}; nothing below {lower} does, and what lies between is open."


def headline(part: Shown) -> Card:
    """The median distance and its proven interval."""
    described, verdicts = part.trained.described, part.verdicts
    proven = sum(v.outcome in ("nearest", "robust") for v in verdicts)
    norm = NORM_NAMES[verdicts[0].norm]
    return Card(
        name=part.trained.title,
        figure=known(part.lower, part.upper),
        what=f"median {norm} distance to another answer",
        facts=[
            ("proven interval", interval(part.lower, part.upper)),
            ("proven to the end", f"{proven} of {len(verdicts)} digits"),
            ("test accuracy", percent(described["accuracy"])),
            ("parameters", count(described["parameters"])),
            ("ReLU and pooling units", count(described["units"])),
            ("time to train", duration(described["seconds"])),
            ("time to prove", duration(sum(v.seconds for v in verdicts))),
        ],
    )


def known(lower: float, upper: float) -> str:
    """The figure itself where the interval is closed, else only how large it can be."""
    if math.isinf(upper):
        return "unknown"
    return rounded_up(upper) if upper - lower <= SETTLED else f"≤ {rounded_up(upper)}"


def galleries(shown: Sequence[Shown]) -> list[str]:
    blocks = [paragraph("In the difference, red pixels became brighter and blue ones darker.")]
    for part in shown:
        found = [verdict for verdict in part.verdicts if verdict.witness is not None]
        blocks += [subheading(part.trained.title), gallery([shot(verdict) for verdict in found])]
        if len(found) < len(part.verdicts):
            missing = len(part.verdicts) - len(found)
            blocks.append(paragraph(f"For {missing} of {len(part.verdicts)} digits no such image was found."))
    return blocks


def shot(verdict: Verdict) -> Shot:
    if verdict.witness is None or verdict.distance is None:
        raise ValueError("only a verdict with a witness can be shown")
    return Shot(
        original=image_uri(verdict.image),
        changed=image_uri(verdict.witness),
        difference=difference_uri(verdict.witness.astype(np.float64) - verdict.image),
        before=str(verdict.predicted_before),
        after=str(verdict.predicted_after),
        distance=f"{NORM_NAMES[verdict.norm]} {rounded_up(verdict.distance)}",
        proof=verdict_words(verdict),
        closed=verdict.outcome == "nearest",
    )


def trainings(shown: Sequence[Shown]) -> list[str]:
    """Accuracy and loss by epoch, on the same scales for every network."""
    rows = [row for part in shown for row in part.trained.curves]
    accuracy = shares_axis(both(rows, "accuracy"), "share of the digits read right")
    loss = plain_axis(both(rows, "loss"), "mean cross-entropy")
    blocks = []
    for part in shown:
        blocks.append(subheading(part.trained.title))
        blocks.append(panels([epochs("Accuracy", part, accuracy), epochs("Loss", part, loss)]))
    return blocks


def both(rows: Sequence[dict[str, float]], name: str) -> list[float]:
    return [row[kind] for row in rows for kind in (name, f"validation_{name}")]


def epochs(title: str, part: Shown, up: Axis) -> str:
    """The line of the training images and the line of the held-out ones."""
    curves, name = part.trained.curves, title.lower()
    lines = [
        Line("training", [row[name] for row in curves], 1),
        Line("held out", [row[f"validation_{name}"] for row in curves], 2),
    ]
    return line_chart(title, lines, up)
