"""An answer and the evidence for it; nothing is claimed that was not replayed or proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isinf
from typing import Any, Literal

from closecall._version import __version__
from closecall.arrays import Image, Vector
from closecall.question.effort import Effort
from closecall.question.names import ChangeName, MethodName, NormName, Outputs, Pixels, SolverName
from closecall.question.question import Question
from closecall.verdict.eight_bit import PngReplay
from closecall.verdict.naming import class_named, kind, moved, none_nearer, nothing, strength, wish

Outcome = Literal["nearest", "adversarial", "robust", "unresolved"]

# What a record says of the answer, and of the question.
FOUND = (
    "outcome", "distance", "lower_bound", "predicted_before", "predicted_after", "seconds",
    "seconds_by_stage", "nodes", "engine", "why",
    "replayed", "network_sha256", "tolerances", "notes", "png", "amounts", "version",
)  # fmt: skip
# What may be asked beside that, since later versions; None where it was not.
ADDED = ("group", "out_of_top", "confidence", "mask", "also", "patch", "change", "pixels")
ASKED = ("norm", "label", "target", "margin", "ratio", "outputs", "radius", "cap", "pixel_range", *ADDED)


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known about one question, with the question and the effort that went into it.

    `nearest`: the witness was replayed and no image with the asked margin is nearer than `lower_bound`,
    which is within the gap of `distance`. `adversarial`: the witness was replayed, the gap is open.
    `robust`: proven that no image within `radius` (or in the whole box) reaches the margin.
    `unresolved`: neither; `lower_bound` still holds.
    `engine` is what gave the lower bound (a solver by its name, or one of our own searches), `why` says how
    it was chosen, and `tolerances` what it may be off by.
    `png`: whether the witness still does what was asked for once it is rounded to the 8 bits of a PNG file.
    `amounts`: of a change, the numbers by name that make the witness; `distance` is their size.
    """

    outcome: Outcome
    distance: float | None
    lower_bound: float
    question: Question
    effort: Effort
    predicted_before: int
    predicted_after: int | None
    seconds: float
    seconds_by_stage: Mapping[str, float]
    nodes: int
    engine: str
    why: tuple[str, ...]
    replayed: bool
    network_sha256: str
    tolerances: Mapping[str, float]
    image: Image = field(repr=False)
    witness: Image | None = field(repr=False)
    scores_before: Vector = field(repr=False)
    scores_after: Vector | None = field(repr=False)
    notes: tuple[str, ...] = ()
    png: PngReplay | None = None
    amounts: Mapping[str, float] | None = None
    version: str = __version__

    @property
    def norm(self) -> NormName:
        return self.question.norm

    @property
    def label(self) -> int:
        return self.question.label

    @property
    def target(self) -> int | None:
        """The class that was asked for; None for any other."""
        return self.question.target

    @property
    def margin(self) -> float:
        return self.question.margin

    @property
    def ratio(self) -> float | None:
        return self.question.ratio

    @property
    def outputs(self) -> Outputs:
        return self.question.outputs

    @property
    def radius(self) -> float | None:
        """The radius that was asked about; None for the whole box."""
        return None if isinf(self.question.radius) else self.question.radius

    @property
    def cap(self) -> float | None:
        return self.question.cap

    @property
    def pixel_range(self) -> tuple[float, float]:
        return self.question.pixel_range

    @property
    def group(self) -> tuple[int, ...] | None:
        """The classes of which any will do; None where one class or any other was asked for."""
        return self.question.group

    @property
    def out_of_top(self) -> int | None:
        return self.question.out_of_top

    @property
    def confidence(self) -> float | None:
        return self.question.confidence

    @property
    def mask(self) -> str | None:
        """The pixels that may change, as ranges of their places in the flat image; None for all."""
        return self.question.mask

    @property
    def also(self) -> str | None:
        return self.question.also

    @property
    def patch(self) -> int | None:
        return self.question.patch

    @property
    def change(self) -> ChangeName | None:
        return self.question.change

    @property
    def pixels(self) -> Pixels | None:
        """`8bit` where only images that a picture file can hold were asked for."""
        return self.question.pixels

    @property
    def method(self) -> MethodName:
        return self.effort.method

    @property
    def solver(self) -> SolverName:
        return self.effort.solver

    @property
    def gap(self) -> float:
        return self.effort.gap

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
                f"Nearest: {moved(self)} turns {before} into {after}"
                f"{strength(self.question)}; proven that {none_nearer(self.question, low)}."
            )
        if self.outcome == "adversarial":
            return (
                f"Adversarial: {moved(self)} turns {before} into {after}"
                f"{strength(self.question)}; the nearest lies between {low} and {self.distance:.6g}."
            )
        if self.outcome == "robust":
            return f"Robust: proven that {nothing(self.question)} {wish(self.question, class_names)}."
        if self.change is not None:
            return f"Unresolved: proven only that {none_nearer(self.question, low)}; allow more time."
        return f"Unresolved: proven only that no {kind(self.question)} is nearer than {low}; allow more time."

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from closecall.verdict.notebook import verdict_html

        return verdict_html(self)

    def to_json(self) -> dict[str, Any]:
        """All but the arrays in one flat record, ready for JSON."""
        record = {name: getattr(self, name) for name in (*FOUND, *ASKED)} | asdict(self.effort)
        record["lower_bound"] = None if isinf(self.lower_bound) else self.lower_bound
        record["png"] = None if self.png is None else asdict(self.png)
        return record
