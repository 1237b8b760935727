"""The worst margin of one image as a function of the radius: what is proven, and what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from closecall._version import __version__
from closecall.arrays import Image
from closecall.question.effort import Effort
from closecall.question.question import Question
from closecall.verdict.naming import class_named, sized

CurveOutcome = Literal["closed", "open"]


@dataclass(frozen=True)
class CurvePoint:
    """No image within the radius has a margin below `lower`; one that was found has `upper`.

    `lower` is minus infinity where nothing is proven. `distance` and `predicted` are of the image found, and
    `changes` says whether every engine of the original model sees in it what was asked for, in float32.
    """

    radius: float
    lower: float
    upper: float
    distance: float
    predicted: int
    changes: bool


@dataclass(frozen=True, eq=False)
class Curve:
    """The worst margin within each radius, between what is proven and what was found.

    The margin of an image is how far its scores are from another verdict: y_label − max y_j, or with a target
    max y_j − y_target. A proof for a radius holds for smaller ones, an image for larger ones: so the band
    between two points goes from `lower` of the right one to `upper` of the left one. `nearest` is the
    interval that holds the distance of the nearest image, where that was searched. `outcome` is `closed` if
    all intervals are within the gap, a share of the largest margin of the curve.
    """

    outcome: CurveOutcome
    points: tuple[CurvePoint, ...]
    nearest: tuple[float, float] | None
    question: Question
    effort: Effort
    predicted: int
    seconds: float
    nodes: int
    network_sha256: str
    image: Image = field(repr=False)
    images: tuple[Image, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    version: str = __version__

    @property
    def margin(self) -> float:
        """That of the image itself."""
        return self.points[0].upper

    @property
    def safe(self) -> float:
        """The largest radius at which every image is proven to keep the verdict."""
        known = [point.radius for point in self.points if point.lower > 0]
        return max([*known, 0.0 if self.nearest is None else self.nearest[0]])

    @property
    def lost(self) -> float:
        """The smallest distance at which an image was found that changes the verdict; infinity: none."""
        known = [point.distance for point in self.points if point.changes]
        return min([*known, math.inf if self.nearest is None else self.nearest[1]])

    def summary(self, class_names: Sequence[str] | None = None) -> str:
        """What the curve says, in one sentence."""
        last, label = self.points[-1], class_named(self.question.label, class_names)
        least = "of unknown size" if math.isinf(last.lower) else f"{last.lower:.6g}"
        worst = (
            f"Worst margin of {label}: {self.margin:.6g} at first, between {least} and {last.upper:.6g} "
            f"within {measure(self.question)} {last.radius:.6g}"
        )
        if self.margin <= 0:
            return f"{worst}; the verdict is another one from the beginning."
        lost = (
            "no image was found that changes it"
            if math.isinf(self.lost)
            else f"an image changes it at {self.lost:.6g}"
        )
        return f"{worst}; the verdict is proven to hold up to {self.safe:.6g}, {lost}."

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, Any]:
        """All but the images, ready for JSON."""
        asked = (
            "norm",
            "label",
            "target",
            "group",
            "out_of_top",
            "cap",
            "pixel_range",
            "mask",
            "also",
            "change",
        )
        return {
            "outcome": self.outcome,
            "margin": self.margin,
            "points": [finite(asdict(point)) for point in self.points],
            "nearest": None if self.nearest is None else [number(end) for end in self.nearest],
            "safe": self.safe,
            "lost": number(self.lost),
            "predicted": self.predicted,
            "seconds": self.seconds,
            "nodes": self.nodes,
            "network_sha256": self.network_sha256,
            "notes": list(self.notes),
            "version": self.version,
            **{name: getattr(self.question, name) for name in asked},
            **asdict(self.effort),
        }


def number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity."""
    return {key: number(value) if isinstance(value, float) else value for key, value in record.items()}


def measure(question: Question) -> str:
    if question.change is None:
        return f"{question.norm} distance"
    return f"a change of {question.change} by {sized(question)}".rstrip()
