"""One perturbation of many images as the original engines see it, in float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closecall.arrays import Image, Vector
from closecall.network.gradient import input_gradient
from closecall.question.domain import in_float32
from closecall.question.universal import Together
from closecall.readers.classifier import Classifier
from closecall.verdict.replay import PUSHES, Wanted, towards


@dataclass(frozen=True, eq=False)
class TogetherReplay:
    """A perturbation in float32, the images that it makes, and what all engines agree that they are."""

    delta: Image
    images: Image
    distance: float
    predicted: tuple[int, ...]
    flipped: tuple[bool, ...]

    @property
    def count(self) -> int:
        return sum(self.flipped)


def replay_together(classifier: Classifier, together: Together, delta: Vector) -> TogetherReplay:
    """Run every image through every engine; δ is pushed a little if fewer are turned than should be.

    An image counts as turned when each engine gives it a class that was asked for, clearly.
    """
    domain = together.domain
    delta = domain.pulled_inside(domain.clip(delta))
    expected = int((together.slack(delta[None])[0] >= -together.questions[0].goal().tolerance).sum())
    reach = float(np.abs(delta).max(initial=0.0))
    directions = np.sign(slope_of_lacking(together, delta))
    if domain.sparse:
        directions[delta == 0] = 0.0
    best: TogetherReplay | None = None
    for push in (0.0, *PUSHES):
        seen = as_seen(classifier, together, domain.clip(delta + push * reach * directions))
        if seen.distance <= domain.radius and (best is None or seen.count > best.count):
            best = seen
        if (best is not None and best.count >= expected) or reach == 0:
            break
    return best or as_seen(classifier, together, np.zeros_like(delta))


def slope_of_lacking(together: Together, delta: Vector) -> Vector:
    """Where δ must go for the images that are on their margins, or not there yet."""
    network = together.joint
    values = network.values(delta[None])
    weights = np.zeros(network.classes)
    for rows in together.rows:
        slack = values[-1][0, rows]
        weights[rows[slack.argmin()]] = 1.0 / max(1e-3, abs(float(slack.min())))
    return np.asarray(input_gradient(network, values, weights[None])[0])


def as_seen(classifier: Classifier, together: Together, delta: Vector) -> TogetherReplay:
    """δ in float32, added and clipped in float32, as whoever takes it from its file will do."""
    domain, questions = together.domain, together.questions
    single = in_float32(delta, domain.lower, domain.upper)
    if domain.distance(single.astype(np.float64)) > domain.radius:
        single = towards(single, domain.centre)
    low, high = (np.float32(end) for end in questions[0].pixel_range)
    shape = classifier.network.input_shape
    images = np.clip(together.images.astype(np.float32) + single, low, high).reshape(-1, *shape)
    scores = [np.asarray(engine(images)) for engine in classifier.engines.values()]
    flipped = tuple(
        all(Wanted.by(question).won(seen[place]) for seen in scores)
        for place, question in enumerate(questions)
    )
    predicted = tuple(int(number) for number in scores[0].argmax(axis=1))
    distance = domain.distance(single.astype(np.float64))
    return TogetherReplay(single.reshape(shape), images, distance, predicted, flipped)
