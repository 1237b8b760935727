"""A witness as the original engines see it, in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from closecall.arrays import Image, Vector
from closecall.network import Network
from closecall.question.change import Change
from closecall.question.domain import Domain, in_float32
from closecall.question.goal import Goal, slack_and_gradient
from closecall.question.question import Question
from closecall.readers.classifier import Classifier

# A witness that does not hold in float32 is pushed by shares of its own shift, the smallest that helps.
PUSHES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


@dataclass(frozen=True, eq=False)
class Replay:
    """A witness in float32 as the original engines see it; of a change also the numbers that made it."""

    image: Image
    distance: float
    predicted: int
    notes: tuple[str, ...]
    amounts: Vector | None = None


def replay(
    classifier: Classifier,
    network: Network,
    domain: Domain,
    goal: Goal,
    witness: Vector,
    accepts: Callable[[Image], bool],
    accepts_exactly: Callable[[Vector], bool] = lambda _: True,
    changed: Change | None = None,
) -> Replay | None:
    """Run a witness through every original engine in float32, pushed a little further if that is needed.

    `accepts` is asked about the scores that each engine gives, `accepts_exactly` about those in float64.
    The witness of a change are the numbers that make its image.
    """
    if domain.levels is not None:
        return replay_as_it_is(classifier, domain, witness, accepts, accepts_exactly)
    witness = domain.pulled_inside(witness)
    shift = witness - domain.centre
    scores = network.forward(witness[None])
    reached = max(goal.cases, key=lambda case: float(case.slack(scores)[0]))
    _, slopes = slack_and_gradient(network, Goal((reached,)), witness[None])
    reach = float(np.abs(shift).max(initial=0.0)) or 1.0
    directions = np.sign(slopes[0])
    if domain.sparse:
        # One more pixel would be one step further, but how far those go that change is free.
        directions[shift == 0] = 0.0
        reach = float((domain.upper - domain.lower).max())
    for push in (0.0, *PUSHES):
        moved = domain.clip(witness + push * reach * directions)
        image = image_in_float32(domain, moved) if changed is None else changed.in_float32(moved)
        image = image.reshape(classifier.network.input_shape)
        point = image.astype(np.float64) if changed is None else moved
        distance = domain.distance(point)
        if distance > domain.radius or not domain.affords(point):
            break
        seen = [engine(image[None])[0] for engine in classifier.engines.values()]
        exact = classifier.network.forward(image[None].astype(np.float64))[0]
        if all(accepts(scores) for scores in seen) and accepts_exactly(exact):
            what = "pixel" if changed is None else "number"
            note = f"the witness was moved by up to {push * reach:.1g} per {what} to hold in float32"
            amounts = None if changed is None else moved
            return Replay(image, distance, int(seen[0].argmax()), (note,) if push else (), amounts)
    return None


def image_in_float32(domain: Domain, point: Vector) -> Image:
    """A point in float32, a hair nearer to the centre where rounding takes it out of the domain."""
    image = in_float32(point, domain.lower, domain.upper)
    exact = image.astype(np.float64)
    if domain.distance(exact) > domain.radius or not domain.affords(exact):
        return towards(image, domain.centre)
    return image


def replay_as_it_is(
    classifier: Classifier,
    domain: Domain,
    witness: Vector,
    accepts: Callable[[Image], bool],
    accepts_exactly: Callable[[Vector], bool],
) -> Replay | None:
    """The same for an image of levels, which cannot be pushed."""
    image = witness.astype(np.float32).reshape(classifier.network.input_shape)
    seen = [engine(image[None])[0] for engine in classifier.engines.values()]
    exact = classifier.network.forward(image[None].astype(np.float64))[0]
    if not all(accepts(scores) for scores in seen) or not accepts_exactly(exact):
        return None
    return Replay(image, domain.distance(image.astype(np.float64)), int(seen[0].argmax()), ())


@dataclass(frozen=True)
class Wanted:
    """What a replayed prediction must be: one of the targets, or anything but the label."""

    label: int
    targets: tuple[int, ...] | None = None
    out_of_top: int | None = None
    confidence: float | None = None

    @classmethod
    def by(cls, question: Question) -> Wanted:
        targets = question.group if question.target is None else (question.target,)
        return cls(question.label, targets, question.out_of_top, question.confidence)

    def accepts(self, predicted: int) -> bool:
        return predicted in self.targets if self.targets is not None else predicted != self.label

    def won(self, scores: Image) -> bool:
        """Whether scores say so clearly: a tie, as of two saturated sigmoids, changes nobody's mind."""
        if not np.isfinite(scores).all():
            return False
        if self.out_of_top is not None:
            return int((scores > scores[self.label]).sum()) >= self.out_of_top
        mine = list(self.targets) if self.targets is not None else self.others(scores)
        rivals = np.delete(scores, mine)
        return bool(scores[mine].max() > rivals.max(initial=-np.inf))

    def others(self, scores: Vector | Image) -> list[int]:
        return [number for number in range(len(scores)) if number != self.label]

    def held_at_first(self, scores: Image) -> bool:
        """Whether the original image does already what is asked for; of a tie the first class is seen."""
        if self.out_of_top is not None:
            return self.won(scores)
        return self.accepts(int(scores.argmax()))

    def is_confident(self, scores: Vector) -> bool:
        """Whether a softmax of the exact scores gives some class asked for the confidence."""
        return self.confidence is None or self.confidence_of(scores) >= self.confidence

    def confidence_of(self, scores: Vector) -> float:
        """The largest softmax probability of a class that is asked for."""
        mine = list(self.targets) if self.targets is not None else self.others(scores)
        return float(softmax(scores)[mine].max())


def softmax(scores: Vector) -> Vector:
    shares = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())


def towards(image: Image, centre: Vector) -> Image:
    """The next numbers of float32 on the way to the centre."""
    return np.where(image == centre, image, np.nextafter(image, centre.astype(np.float32)))
