"""One question about one image, and what counts as an answer to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from closecall.arrays import Vector
from closecall.question.change import Change, change_named
from closecall.question.checks import (
    check,
    check_class,
    check_classes,
    check_number,
    pixel_limits,
    whole_number,
)
from closecall.question.domain import Domain, in_float32
from closecall.question.goal import Case, Goal
from closecall.question.levels import levels_of, on_levels
from closecall.question.names import (
    CHANGE_NAMES,
    OUTPUT_NAMES,
    PIXELS_NAMES,
    ChangeName,
    NormName,
    Outputs,
    Pixels,
)
from closecall.question.norms import norm_named
from closecall.question.where import budget_from, budget_of, mask_from

DEFAULT_MARGIN = 0.001
# What a score may fall short by, since solvers end on the margin and round: in all, and of the margin.
MOST_MISSED, SHARE_MISSED = 1e-6, 0.1
# To drop out of the top k, some k classes must lead: each choice of them is searched as a case of its own.
MOST_CASES = 1_000
# By how much a threshold that is a logarithm is lowered: more than it was rounded by.
LOGARITHM_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Question:
    """Find an image that the network classifies otherwise: as `target`, or as anything but `label`.

    Additive margin m (targeted): y_t ≥ y_j + m for all j ≠ t; untargeted: y_t ≥ y_label + m for some t.
    With a `group` of classes: y_t ≥ y_j + m for some t of the group and all j outside it. With `out_of_top`
    k: y_t ≥ y_label + m for at least k classes t.
    With a ratio ρ on logits, m = ln ρ, which is p_t ≥ ρ·p_j on softmax probabilities. With a ratio on
    ReLU outputs: y_t ≥ ρ·y_j and y_t ≥ margin, since all-zero outputs would satisfy the first alone.
    With a confidence p, softmax must give some class asked for at least p, which implies
    y_t − y_j ≥ ln(p / (1 − p)) for all j ≠ t: `goal` is this necessary condition.
    With a `change`, the images are those that it makes of this one, and its numbers are what is searched.
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
    group: tuple[int, ...] | None = None
    out_of_top: int | None = None
    confidence: float | None = None
    mask: str | None = None
    also: str | None = None
    patch: int | None = None
    change: ChangeName | None = None
    pixels: Pixels | None = None

    def __post_init__(self) -> None:
        self._check_amounts()
        self._check_class_numbers()
        object.__setattr__(self, "norm", norm_named(self.norm).name)
        self._check_where()
        # The model sees the image in float32, so that is the original which distances are measured from.
        object.__setattr__(self, "image", self._pixels_in_float32())
        if self.pixels is not None:
            self._check_levels()

    def _check_amounts(self) -> None:
        for name in ("radius", "margin", "cap", "ratio", "confidence"):
            if name in ("radius", "margin") or getattr(self, name) is not None:
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
        check(
            self.confidence is None or 0.5 < self.confidence < 1,
            f"the confidence must be larger than 0.5 and smaller than 1, got {self.confidence}.",
        )
        check(
            self.confidence is None or (self.ratio is None and self.outputs == "logits"),
            "a confidence is the softmax of logits: leave out the ratio and relu outputs beside it.",
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
        if self.group is not None:
            self._check_group()
        if self.out_of_top is not None:
            self._check_out_of_top()

    def _check_group(self) -> None:
        object.__setattr__(self, "group", tuple(sorted(set(self.group or ()))))
        group = self.group or ()
        check(bool(group), "the group of targets is empty: give at least one class.")
        for number in group:
            check_class("target", number, self.classes)
        check(
            self.label not in group,
            f"the label {self.label} is in the group of targets: give other classes alone.",
        )

    def _check_out_of_top(self) -> None:
        count = whole_number("place to drop out of", self.out_of_top)
        object.__setattr__(self, "out_of_top", count)
        check(
            1 <= count < self.classes,
            f"of {self.classes} classes one can drop out of the top 1 to {self.classes - 1}, got {count}.",
        )
        check(
            self.target is None and self.group is None and self.confidence is None,
            "dropping out of the top has no target and no confidence: leave them out.",
        )
        cases = math.comb(self.classes - 1, count)
        check(
            cases <= MOST_CASES,
            f"{count} of {self.classes - 1} classes can be chosen in {cases:,} ways, more than "
            f"{MOST_CASES:,}: ask for fewer places.",
        )

    def _check_where(self) -> None:
        if self.mask is not None:
            mask_from(self.mask, np.size(self.image))
        if self.also is not None:
            object.__setattr__(self, "also", budget_of(self.also))
        if self.patch is not None:
            object.__setattr__(self, "patch", whole_number("side of the patch", self.patch))
            check(self.patch >= 1, f"the patch must be at least 1 pixel a side, got {self.patch}.")
        if self.change is not None:
            self._check_change()

    def _check_change(self) -> None:
        object.__setattr__(self, "change", change_named(self.change))
        named = ", ".join(CHANGE_NAMES)
        check(self.change in CHANGE_NAMES, f"unknown change {self.change!r}: choose one of {named}.")
        for name in ("cap", "also", "patch", "pixels"):
            check(
                getattr(self, name) is None,
                f"a change of {self.change} moves all pixels at once: leave out the {name} beside it.",
            )
        check(
            self.norm != "l0",
            f"a change of {self.change} is measured by its size: give the norm l1, l2 or linf, not l0.",
        )

    def _check_levels(self) -> None:
        named = " or ".join(map(repr, PIXELS_NAMES))
        check(
            self.pixels in PIXELS_NAMES,
            f"pixels must be {named} or left out, got {self.pixels!r}.",
        )
        levels = levels_of(self.pixel_range)
        low, high = self.pixel_range
        check(
            bool((np.diff(levels) > 0).all()),
            f"float32 has no 256 numbers from {low:g} to {high:g}: scale the images, or leave out pixels.",
        )
        mixed = (self.mask is not None or self.patch is not None) and not self.has_levels(self.image)
        check(
            not mixed,
            "the image itself is not of 8 bits, so pixels that may not change are none either: round it "
            "first, or leave out the mask and the patch.",
        )

    def has_levels(self, image: Vector) -> bool:
        """Whether an image is one of those that count: any, or one of 8 bits."""
        return self.pixels is None or bool(on_levels(image.ravel(), levels_of(self.pixel_range)).all())

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

    def changed(self) -> Change | None:
        """The images that a change makes, if one is asked for."""
        if self.change is None:
            return None
        mask = None if self.mask is None else mask_from(self.mask, np.size(self.image))
        return Change.of(self.change, np.ravel(self.image), self.pixel_range, mask)

    def domain(self) -> Domain:
        """The box, the cap, the mask and the balls; of a patch, which may be anywhere, all of it.

        With a change, its numbers instead of pixels.
        """
        changed = self.changed()
        if changed is not None:
            return changed.domain(norm_named(self.norm), self.radius)
        centre = np.asarray(self.image, dtype=np.float64).ravel()
        reach = math.inf if self.cap is None else self.cap
        lower = np.maximum(self.pixel_range[0], centre - reach)
        upper = np.minimum(self.pixel_range[1], centre + reach)
        norm, radius, budget = norm_named(self.norm), self.radius, None
        if self.also is not None:
            second, amount = budget_from(self.also)
            if second.name == "linf":
                lower, upper = np.maximum(lower, centre - amount), np.minimum(upper, centre + amount)
            elif second.name == norm.name:
                radius = min(radius, amount)
            else:
                budget = (second, amount)
        domain = Domain(centre, lower, upper, norm, radius, budget)
        if self.mask is not None:
            domain = domain.only(mask_from(self.mask, len(centre)))
        return domain if self.pixels is None else domain.of_levels(levels_of(self.pixel_range))

    def goal(self) -> Goal:
        """The cases; with a confidence, what every image that has it must reach."""
        return Goal(self._cases(), self._tolerance())

    def _cases(self) -> tuple[Case, ...]:
        others = [t for t in range(self.classes) if t != self.label]
        if self.out_of_top is not None:
            return tuple(self._all_beat_label(some) for some in combinations(others, self.out_of_top))
        winners = [self.target] if self.target is not None else list(self.group or others)
        if self.target is None and self.confidence is None:
            rivals = [self.label] if self.group is None else self._outside(self.group)
            return tuple(self._beats(t, rivals) for t in winners)
        return tuple(self._beats(t, self._outside((t,))) for t in winners)

    def _outside(self, group: tuple[int, ...]) -> list[int]:
        return [j for j in range(self.classes) if j not in group]

    def _all_beat_label(self, winners: tuple[int, ...]) -> Case:
        cases = [self._beats(winner, [self.label]) for winner in winners]
        return Case(
            np.vstack([case.matrix for case in cases]), np.concatenate([case.threshold for case in cases])
        )

    def _lead(self) -> float:
        """By how much a score must be ahead of another."""
        if self.confidence is not None:
            return math.log(self.confidence / (1.0 - self.confidence)) - LOGARITHM_ROUNDING
        if self.ratio is None or self.outputs == "relu":
            return self.margin
        return math.log(self.ratio)

    def _tolerance(self) -> float:
        """A small part of the lead that is asked for: an image that misses so little is no tie."""
        return min(MOST_MISSED, SHARE_MISSED * self._lead())

    def _beats(self, winner: int, rivals: list[int]) -> Case:
        proportional = self.ratio is not None and self.outputs == "relu"
        factor = self.ratio if self.ratio is not None and proportional else 1.0
        rows = np.zeros((len(rivals), self.classes))
        rows[:, winner] = 1.0
        rows[np.arange(len(rivals)), rivals] = -factor
        if not proportional:
            return Case(rows, np.full(len(rivals), self._lead()))
        rows = np.vstack([rows, np.eye(self.classes)[winner]])
        return Case(rows, np.array([0.0] * len(rivals) + [self.margin]))


def paper_target(label: int, classes: int) -> int:
    """The target of the paper, (d + 5) mod 10, for any number of classes."""
    return (label + classes // 2) % classes
