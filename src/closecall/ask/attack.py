"""attack(): adversarial images for a whole batch, as foolbox and ART give them, without a proof."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closecall.clock import Clock
from closecall.errors import QueryError
from closecall.question.checks import whole_number
from closecall.question.images import fitted, pixels_of, turned
from closecall.question.names import NormName
from closecall.question.norms import norm_named
from closecall.question.question import DEFAULT_MARGIN, Question
from closecall.readers import Classifier, read
from closecall.search.auto import ATTACK
from closecall.search.methods import search_by
from closecall.search.problem import Problem
from closecall.verdict.replay import Wanted, replay


class Attacked(NamedTuple):
    """Adversarial images, their distances, whether there is one; where not: the original and infinity."""

    images: NDArray[np.float32]
    distances: NDArray[np.float64]
    success: NDArray[np.bool_]


def attack(
    model: object,
    images: ArrayLike,
    labels: ArrayLike,
    *,
    norm: NormName | float = "linf",
    radius: float | None = None,
    margin: float = DEFAULT_MARGIN,
    pixel_range: tuple[float, float] = (0.0, 1.0),
) -> Attacked:
    """Search near each image by gradient; every image given back as a success fools the model in float32.

    An image that is misclassified already is its own adversarial, at distance 0. For the nearest image with a
    proof, ask `nearest`.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        images: An array or tensor (N, channels, height, width).
        labels: The true classes, (N,).
        norm: How distance is measured: "l1", "l2", "linf" or "l0"; L1, L∞, inf or 2 will do, too.
        radius: Look only within this distance.
        margin: By how much the new class's score must lead.
        pixel_range: The least and the largest value of a pixel.

    Returns:
        The images, their distances and whether each is a success; where not, the original and infinity.
    """
    batch = pixels_of(images).astype(np.float32)
    known = np.asarray(labels)
    if batch.ndim < 2 or known.shape != (len(batch),):
        raise QueryError(
            f"expected images (N, …) and labels (N,), got {batch.shape} and {known.shape}: "
            "put a single image in a batch of one."
        )
    classifier = model if isinstance(model, Classifier) else read(model, batch.shape[1:])
    found = batch.copy()
    distances = np.full(len(batch), np.inf)
    for index, (image, label) in enumerate(zip(batch, known, strict=True)):
        question = Question(
            fitted(image.astype(np.float64), classifier.network.input_shape).ravel(),
            whole_number("label", label),
            classifier.network.classes,
            norm=norm_named(norm).name,
            radius=np.inf if radius is None else radius,
            margin=margin,
            pixel_range=pixel_range,
        )
        moved, distances[index] = attack_one(classifier, question)
        taken = moved.reshape(classifier.network.input_shape)
        found[index] = (
            np.moveaxis(taken, 2, 0) if turned(image.shape, taken.shape) else taken.reshape(image.shape)
        )
    return Attacked(found, distances, np.isfinite(distances))


def attack_one(classifier: Classifier, question: Question) -> tuple[NDArray[np.float32], float]:
    original = question.image.astype(np.float32)
    wanted = Wanted(question.label)
    if wanted.accepts(classifier.predict(original)):
        return original, 0.0
    domain, goal = question.domain(), question.goal()
    found = search_by(
        Problem(classifier.network, domain, goal, Clock(math.inf)),
        ATTACK,
    )
    if found.witness is None:
        return original, np.inf
    seen = replay(classifier, classifier.network, domain, goal, found.witness, wanted.won)
    return (original, np.inf) if seen is None else (seen.image, seen.distance)
