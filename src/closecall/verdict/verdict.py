"""An answer and the evidence for it; nothing is claimed that was not replayed or proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from closecall._version import __version__
from closecall.arrays import Image, Vector
from closecall.verdict.eight_bit import PngReplay
from closecall.verdict.naming import class_named

Outcome = Literal["nearest", "adversarial", "robust", "unresolved"]


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known about one query.

    `nearest`: the witness was replayed and no image with the asked margin is nearer than `lower_bound`,
    which is within the gap of `distance`. `adversarial`: the witness was replayed, the gap is open.
    `robust`: proven that no image within `radius` (or in the whole box) reaches the margin.
    `unresolved`: neither; `lower_bound` still holds.
    `png`: whether the witness still does what was asked for once it is rounded to the 8 bits of a PNG file.
    """

    outcome: Outcome
    distance: float | None
    lower_bound: float
    norm: str
    label: int
    predicted_before: int
    predicted_after: int | None
    target: int | None
    margin: float
    ratio: float | None
    outputs: str
    radius: float | None
    cap: float | None
    gap: float
    seconds: float
    seconds_by_stage: Mapping[str, float]
    nodes: int
    solver: str
    method: str
    replayed: bool
    network_sha256: str
    tolerances: Mapping[str, float]
    image: Image = field(repr=False)
    witness: Image | None = field(repr=False)
    scores_before: Vector = field(repr=False)
    scores_after: Vector | None = field(repr=False)
    notes: tuple[str, ...] = ()
    pixel_range: tuple[float, float] = (0.0, 1.0)
    png: PngReplay | None = None
    version: str = __version__

    def summary(self, class_names: Sequence[str] | None = None) -> str:
        """The answer in one sentence; classes that have names are given with them."""
        low = f"{self.lower_bound:.6g}"
        before = class_named(self.predicted_before, class_names)
        after = "" if self.predicted_after is None else class_named(self.predicted_after, class_names)
        if self.distance == 0:
            return (
                f"Already misclassified: the image of label {class_named(self.label, class_names)} "
                f"is seen as a {before}, so the distance is 0."
            )
        if self.outcome == "nearest":
            return (
                f"Nearest: {self.norm} distance {self.distance:.6g} turns {before} into {after}; "
                f"proven that none is nearer than {low}."
            )
        if self.outcome == "adversarial":
            return (
                f"Adversarial: {self.norm} distance {self.distance:.6g} turns {before} into {after}; "
                f"the nearest lies between {low} and {self.distance:.6g}."
            )
        if self.outcome == "robust":
            where = (
                "in the whole box"
                if self.radius is None
                else f"within {self.norm} distance {self.radius:.6g}"
            )
            return f"Robust: proven that no image {where} changes the verdict by the margin {self.margin:g}."
        return f"Unresolved: proven only that no image is nearer than {low}; allow more time."

    def to_json(self) -> dict[str, Any]:
        """All but the arrays, ready for JSON."""
        arrays = ("image", "witness", "scores_before", "scores_after")
        record = {key: value for key, value in asdict(self).items() if key not in arrays}
        record["lower_bound"] = None if np.isinf(self.lower_bound) else self.lower_bound
        return record
