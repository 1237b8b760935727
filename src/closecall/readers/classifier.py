"""A network beside the original model, and the check that the two agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import DataError, ModelError, QueryError
from closecall.network import Network
from closecall.readers.rounding import rounding_errors

Images = NDArray[np.float32]
Engine = Callable[[Images], Images]

SAMPLES = 10
# A share of how far the scores of random images lie apart, and a multiple of what rounding explains.
TOLERANCE = 1e-4
TIMES_ROUNDING = 10
MOST_AT_ONCE = 1_000_000  # values of a network that are kept for several images
# Rounding of float32 and float16.
SINGLE, HALF = 2.0**-23, 2.0**-10


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network read exactly in float64, beside the original model to replay answers with."""

    network: Network
    engines: Mapping[str, Engine]
    source: str
    notes: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Do now what every answer will need, before the time of a search is shared out."""
        tuple(self.engines)
        self.network.fingerprint  # noqa: B018

    def predict(self, image: NDArray[np.floating[Any]]) -> int:
        """The class that the original model gives an image."""
        return int(self.scores(image).argmax())

    def scores(self, image: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """What the original model gives an image, in float32."""
        images = np.asarray(image, dtype=np.float32)
        if images.size != self.network.input_size:
            raise DataError(f"expected an image of shape {self.network.input_shape}, not {images.shape}.")
        if not np.isfinite(images).all():
            raise QueryError("the image holds NaN or infinity: give finite pixels.")
        engine = next(iter(self.engines.values()))
        scores: NDArray[np.float32] = engine(images.reshape(1, *self.network.input_shape))[0]
        if not np.isfinite(scores).all():
            raise ModelError(
                f"{self.source} gives this image scores that are not finite: its numbers overflow in float32."
            )
        return scores


def agreed(
    network: Network, peeled: str, engines: Mapping[str, Engine], source: str, *, precision: float = SINGLE
) -> Classifier:
    """Join a network and its original after both gave the same scores for random images.

    Scores may differ by what rounding at the original's precision explains, followed through the network,
    and by a small share of what the images change in them: so neither large offsets nor small scales hide a
    misreading.
    """
    images = np.random.default_rng(0).random((SAMPLES, *network.input_shape), dtype=np.float32)
    name, engine = next(iter(engines.items()))
    try:
        original = engine(images)
    except Exception as error:
        raise ModelError(f"{source}: {name} fails on a random image: {first_line(error)}") from error
    if original.shape != (SAMPLES, network.classes):
        found = " × ".join(map(str, original.shape))
        raise ModelError(f"{source}: {SAMPLES} images give {found} scores, but {network.classes} were read.")
    if network.classes == 0:
        raise ModelError(f"{source}: the model gives no scores at all: a classifier needs at least two.")
    with np.errstate(all="ignore"):
        scores, errors = _scores_and_errors(network, peeled, images, precision)
        spread = float(np.ptp(scores, axis=0).max(initial=0.0))
        allowed = max(TOLERANCE, TIMES_ROUNDING * precision) * spread + TIMES_ROUNDING * errors
        difference = np.abs(original - scores)
    if not ((difference <= allowed) & (allowed < np.inf)).all():
        worst = float(np.where(difference <= allowed, 0.0, difference).max())
        raise ModelError(
            f"{source}: the network as read differs by {worst:.3g} from {name} on a random image, "
            "so nothing about it could be trusted: closecall misreads it, or its numbers overflow."
        )
    note = f"a trailing {peeled} was peeled off: scores are logits"
    note += ", and a ratio is one of odds" if peeled == "Sigmoid" else ""
    return Classifier(network, engines, source, (note,) if peeled else ())


def squeezed(scores: NDArray[np.float64], peeled: str) -> NDArray[np.float64]:
    """The scores with the softmax or sigmoid that was left out."""
    if not peeled:
        return scores
    if peeled == "Sigmoid":
        return np.asarray(1 / (1 + np.exp(-scores)))
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.asarray(logarithms if peeled == "LogSoftmax" else np.exp(logarithms))


def _scores_and_errors(
    network: Network, peeled: str, images: Images, precision: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The scores of images as the original should give them, and what rounding may do to each."""
    step = max(1, MOST_AT_ONCE // sum(node.layer.size for node in network.nodes))
    scores, errors = [], []
    for start in range(0, len(images), step):
        values = network.values(images[start : start + step].astype(np.float64))
        scores.append(squeezed(values[-1], peeled))
        errors.append(rounding_errors(network, values, precision))
        if peeled:
            # No slope of a softmax or a sigmoid is above 1, but every score moves all the probabilities.
            errors[-1] = 2 * errors[-1].max(axis=1, keepdims=True) + precision * (1 + np.abs(scores[-1]))
    return np.concatenate(scores), np.concatenate(errors)


def first_line(error: Exception) -> str:
    """What an error of another library says, in one line."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
