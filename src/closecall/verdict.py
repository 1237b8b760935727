"""An answer and the evidence for it; nothing is claimed that was not replayed or proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from closecall._version import __version__
from closecall.attacks import slack_and_gradient
from closecall.domain import Domain, in_float32
from closecall.eight_bit import PngReplay
from closecall.naming import class_named
from closecall.network import Network
from closecall.query import Goal
from closecall.readers.classifier import Classifier

Vector = NDArray[np.float64]
Image = NDArray[np.float32]
Outcome = Literal["nearest", "adversarial", "robust", "unresolved"]

# A witness that does not hold in float32 is pushed by shares of its own shift, the smallest that helps.
PUSHES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


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


@dataclass(frozen=True, eq=False)
class Replay:
    """A witness in float32 as the original engines see it."""

    image: Image
    distance: float
    predicted: int
    notes: tuple[str, ...]


def replay(
    classifier: Classifier,
    network: Network,
    domain: Domain,
    goal: Goal,
    witness: Vector,
    accepts: Callable[[Image], bool],
) -> Replay | None:
    """Run a witness through every original engine in float32, pushed a little further if that is needed.

    `accepts` is asked about the scores that each engine gives.
    """
    witness = domain.pulled_inside(witness)
    shift = witness - domain.centre
    scores = network.forward(witness[None])
    reached = max(goal.cases, key=lambda case: float(case.slack(scores)[0]))
    _, slopes = slack_and_gradient(network, Goal((reached,)), witness[None])
    reach = float(np.abs(shift).max(initial=0.0)) or 1.0
    directions = np.sign(slopes[0])
    if domain.norm.name == "l0":
        # One more pixel would be one step further, but how far those go that change is free.
        directions[shift == 0] = 0.0
        reach = float((domain.upper - domain.lower).max())
    for push in (0.0, *PUSHES):
        moved = domain.clip(witness + push * reach * directions)
        image = in_float32(moved, domain.lower, domain.upper)
        if domain.distance(image.astype(np.float64)) > domain.radius:
            image = towards(image, domain.centre)
        image = image.reshape(classifier.network.input_shape)
        distance = domain.distance(image.astype(np.float64))
        if distance > domain.radius:
            break
        seen = [engine(image[None])[0] for engine in classifier.engines.values()]
        if all(accepts(scores) for scores in seen):
            note = f"the witness was moved by up to {push * reach:.1g} per pixel to hold in float32"
            return Replay(image, distance, int(seen[0].argmax()), (note,) if push else ())
    return None


@dataclass(frozen=True)
class Wanted:
    """What a replayed prediction must be: the target, or anything but the label."""

    label: int
    target: int | None

    def accepts(self, predicted: int) -> bool:
        return predicted == self.target if self.target is not None else predicted != self.label

    def won(self, scores: Image) -> bool:
        """Whether scores say so clearly: a tie, as of two saturated sigmoids, changes nobody's mind."""
        if not np.isfinite(scores).all():
            return False
        if self.target is not None:
            return bool(scores[self.target] > np.delete(scores, self.target).max())
        return bool(np.delete(scores, self.label).max() > scores[self.label])


def towards(image: Image, centre: Vector) -> Image:
    """The next numbers of float32 on the way to the centre."""
    return np.where(image == centre, image, np.nextafter(image, centre.astype(np.float32)))
