"""What is known about one perturbation for many images, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from closecall._version import __version__
from closecall.arrays import Image
from closecall.question.names import NormName
from closecall.verdict.naming import class_named

UniversalOutcome = Literal["smallest", "most", "found", "none", "unresolved"]
ARRAYS = ("delta", "originals", "perturbed")


@dataclass(frozen=True, eq=False)
class Universal:
    """The smallest δ that flips all images, or one within a radius that flips the most of them.

    `smallest`: every clip(x_i + δ) was replayed and is flipped, and no δ below `lower_bound`, which is within
    the gap of `distance`, flips all. `most`: `count` images are flipped, and proven is that no δ within the
    radius flips more. `found`: a δ, but the interval is open. `none`: proven that no δ within the radius (or
    none at all) flips all. `unresolved`: neither.
    `single_bounds` are proven distances below which nothing flips each image alone; `count_bound` is the
    proven most of images that are flipped by the margin.
    """

    outcome: UniversalOutcome
    norm: NormName
    distance: float | None
    lower_bound: float | None
    radius: float | None
    most: bool
    count: int
    count_bound: int
    labels: tuple[int, ...]
    target: int | None
    margin: float
    pixel_range: tuple[float, float]
    predicted_before: tuple[int, ...]
    predicted_after: tuple[int, ...] | None
    flipped: tuple[bool, ...]
    single_bounds: tuple[float | None, ...]
    seconds: float
    nodes: int
    engine: str
    why: tuple[str, ...]
    network_sha256: str
    delta: Image | None = field(repr=False)
    originals: Image = field(repr=False)
    perturbed: Image | None = field(repr=False)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def summary(self, class_names: Sequence[str] | None = None) -> str:
        """The answer in one sentence; classes that have names are given with them."""
        images, into = len(self.labels), ""
        if self.target is not None:
            into = f" into {class_named(self.target, class_names)}"
        low = "" if self.lower_bound is None else f"{self.lower_bound:.6g}"
        where = "" if self.radius is None else f" within {self.norm} distance {self.radius:.6g}"
        if self.outcome == "none":
            return f"None: proven that no perturbation{where} turns all {images} images{into}."
        if self.most and self.outcome == "most":
            return (
                f"Most: a perturbation{where} turns {self.count} of {images} images{into}; proven that none "
                "turns more."
            )
        if self.most:
            return (
                f"Found: a perturbation{where} turns {self.count} of {images} images{into}; proven that none "
                f"turns more than {self.count_bound}."
            )
        if self.distance is None:
            return (
                f"Unresolved: proven only that no perturbation smaller than {low} turns all {images} images"
                f"{into}; allow more time."
            )
        said = f"a perturbation of {self.norm} size {self.distance:.6g} turns all {images} images{into}"
        if self.outcome == "smallest":
            return f"Smallest: {said}; proven that none smaller than {low} does."
        return f"Found: {said}; the smallest lies between {low} and {self.distance:.6g}."

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, Any]:
        """All but the arrays, ready for JSON."""
        record = {key: value for key, value in vars(self).items() if key not in ARRAYS}
        return {**record, "single_bounds": [finite(bound) for bound in self.single_bounds]}


def finite(bound: float | None) -> float | None:
    """None where nothing at all is within any distance."""
    return None if bound is None or math.isinf(bound) else bound
