"""One question about one image, and what counts as an answer to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from closecall.arrays import Vector
from closecall.question.checks import check, check_class, check_classes, check_number, pixel_limits
from closecall.question.domain import Domain, in_float32
from closecall.question.goal import Case, Goal
from closecall.question.names import OUTPUT_NAMES, NormName, Outputs
from closecall.question.norms import norm_named

DEFAULT_MARGIN = 0.001
# What a score may fall short by, since solvers end on the margin and round: in all, and of the margin.
MOST_MISSED, SHARE_MISSED = 1e-6, 0.1


@dataclass(frozen=True, eq=False)
class Question:
    """Find an image that the network classifies otherwise: as `target`, or as anything but `label`.

    Additive margin m (targeted): y_t ≥ y_j + m for all j ≠ t; untargeted: y_t ≥ y_label + m for some t.
    With a ratio ρ on logits, m = ln ρ, which is p_t ≥ ρ·p_j on softmax probabilities. With a ratio on
    ReLU outputs: y_t ≥ ρ·y_j and y_t ≥ margin, since all-zero outputs would satisfy the first alone.
    """

    image: Vector = field(repr=False)
    label: int
    classes: int
    target: int | None = None
    norm: NormName = "l1"
    radius: float = math.inf
    cap: float | None = None
    margin: float = DEFAULT_MARGIN
    ratio: float | None = None
    outputs: Outputs = "logits"
    pixel_range: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self._check_amounts()
        self._check_class_numbers()
        object.__setattr__(self, "norm", norm_named(self.norm).name)
        # The model sees the image in float32, so that is the original which distances are measured from.
        object.__setattr__(self, "image", self._pixels_in_float32())

    def _check_amounts(self) -> None:
        for name in ("radius", "margin", "cap", "ratio"):
            if name not in ("cap", "ratio") or getattr(self, name) is not None:
                check_number(name, getattr(self, name))
        check(self.radius > 0, f"the radius must be positive, got {self.radius:g}.")
        check(self.cap is None or self.cap > 0, f"the cap must be positive, got {self.cap}.")
        check(
            math.isfinite(self.margin) and self.margin > 0,
            f"the margin must be positive, got {self.margin:g}: with 0 the nearest image is a tie.",
        )
        check(
            self.ratio is None or (math.isfinite(self.ratio) and self.ratio > 1),
            f"the ratio must be larger than 1, got {self.ratio}.",
        )
        named = " or ".join(map(repr, OUTPUT_NAMES))
        check(self.outputs in OUTPUT_NAMES, f"outputs must be {named}, got {self.outputs!r}.")

    def _check_class_numbers(self) -> None:
        check_classes(self.classes)
        check_class("label", self.label, self.classes)
        if self.target is not None:
            check_class("target", self.target, self.classes)
            check(
                self.target != self.label,
                f"the target {self.target} is the label itself: choose another class or 'any'.",
            )

    def _pixels_in_float32(self) -> Vector:
        low, high = pixel_limits(self.pixel_range)
        image = np.asarray(self.image, dtype=np.float64)
        check(bool(np.isfinite(image).all()), "the image holds NaN or infinity: give finite pixels.")
        check(
            bool((image >= low).all() and (image <= high).all()),
            f"pixels must lie in [{low:g}, {high:g}], got [{image.min():g}, {image.max():g}]: "
            "scale the image or give its own pixel range.",
        )
        return in_float32(image, low, high).astype(np.float64)

    def domain(self) -> Domain:
        """The box, the cap and the ball."""
        centre = np.asarray(self.image, dtype=np.float64).ravel()
        reach = math.inf if self.cap is None else self.cap
        lower = np.maximum(self.pixel_range[0], centre - reach)
        upper = np.minimum(self.pixel_range[1], centre + reach)
        return Domain(centre, lower, upper, norm_named(self.norm), self.radius)

    def goal(self) -> Goal:
        if self.target is not None:
            rivals = [j for j in range(self.classes) if j != self.target]
            return Goal((self._beats(self.target, rivals),), self._tolerance())
        beaten = (self._beats(t, [self.label]) for t in range(self.classes) if t != self.label)
        return Goal(tuple(beaten), self._tolerance())

    def _tolerance(self) -> float:
        """A small part of the lead that is asked for: an image that misses so little is no tie."""
        lead = self.margin if self.ratio is None or self.outputs == "relu" else math.log(self.ratio)
        return min(MOST_MISSED, SHARE_MISSED * lead)

    def _beats(self, winner: int, rivals: list[int]) -> Case:
        proportional = self.ratio is not None and self.outputs == "relu"
        factor = self.ratio if self.ratio is not None and proportional else 1.0
        rows = np.zeros((len(rivals), self.classes))
        rows[:, winner] = 1.0
        rows[np.arange(len(rivals)), rivals] = -factor
        if not proportional:
            lead = self.margin if self.ratio is None else math.log(self.ratio)
            return Case(rows, np.full(len(rivals), lead))
        rows = np.vstack([rows, np.eye(self.classes)[winner]])
        return Case(rows, np.array([0.0] * len(rivals) + [self.margin]))


def paper_target(label: int, classes: int) -> int:
    """The target of the paper, (d + 5) mod 10, for any number of classes."""
    return (label + classes // 2) % classes
