"""A network beside the original model, and the check that the two agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import DataError, ModelError
from closecall.network import Network

Images = NDArray[np.float32]
Engine = Callable[[Images], Images]

SAMPLES = 10
TOLERANCE = 1e-4
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
        images = np.asarray(image, dtype=np.float32)
        if images.size != self.network.input_size:
            raise DataError(f"expected an image of shape {self.network.input_shape}, not {images.shape}.")
        images = images.reshape(1, *self.network.input_shape)
        return int(next(iter(self.engines.values()))(images)[0].argmax())


def agreed(
    network: Network, peeled: str, engines: Mapping[str, Engine], source: str, *, precision: float = SINGLE
) -> Classifier:
    """Join a network and its original after both gave the same scores for random images.

    Scores may differ by what rounding at the original's precision explains: a share of the scores
    themselves, and a far smaller share of the largest number on the way to them.
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
    for image, expected in zip(images, original, strict=True):
        difference, allowed = _compare(network, peeled, image, expected, precision)
        if not difference <= allowed < np.inf:
            raise ModelError(
                f"{source}: the network as read differs by {difference:.3g} from {name} on a random image, "
                "so nothing about it could be trusted: closecall misreads it, or its numbers overflow."
            )
    note = f"a trailing {peeled} was peeled off: scores are logits"
    return Classifier(network, engines, source, (note,) if peeled else ())


def squeezed(scores: NDArray[np.float64], peeled: str) -> NDArray[np.float64]:
    """The scores with the softmax that was left out."""
    if not peeled:
        return scores
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.asarray(logarithms if peeled == "LogSoftmax" else np.exp(logarithms))


def _compare(
    network: Network, peeled: str, image: Images, expected: Images, precision: float
) -> tuple[float, float]:
    """How far the network is from the expected scores, and how far it may be."""
    with np.errstate(all="ignore"):
        values = network.values(image[None].astype(np.float64))
        scores = squeezed(values[-1], peeled)[0]
        largest = max(float(np.abs(value).max(initial=0.0)) for value in values)
        allowed = (
            max(TOLERANCE, 30 * precision) * float(np.abs(scores).max(initial=0.0)) + 30 * precision * largest
        )
        return float(np.abs(expected - scores).max(initial=0.0)), allowed


def first_line(error: Exception) -> str:
    """What an error of another library says, in one line."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
