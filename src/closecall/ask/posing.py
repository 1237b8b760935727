"""From a model and an image as people give them to one question that can be searched."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closecall.clock import Clock
from closecall.errors import QueryError
from closecall.network import Network
from closecall.question.checks import check_classes, whole_number
from closecall.question.images import fitted, picture_of, picture_shape, pixels_of
from closecall.question.names import ChangeName, NormName, Outputs, Pixels, Target
from closecall.question.question import Question, paper_target
from closecall.question.where import mask_of
from closecall.readers import Classifier, read


class More(TypedDict, total=False):
    """What can be asked beside the usual.

    `confidence`: the softmax probability that the new class must have. `out_of_top`: instead of a target, of
    how many highest scores the label must drop out. `mask`: the pixels that may change. `also`: a budget in a
    second norm, such as "linf:0.3". `patch`: only a square of so many pixels a side changes, anywhere.
    `change`: "brightness", "contrast" or "brightness+contrast", whose size is the distance.
    `pixels`: "8bit" for images that a picture file can hold.
    """

    confidence: float | None
    out_of_top: int | None
    mask: ArrayLike | Path | None
    also: str | tuple[str, float] | None
    patch: int | None
    change: ChangeName | None
    pixels: Pixels | None


class Asked(More, total=False):
    """What is asked about an image; whatever is left out is as `Question` has it."""

    target: Target
    norm: NormName | float
    radius: float | None
    cap: float | None
    margin: float
    ratio: float | None
    outputs: Outputs
    pixel_range: tuple[float, float]


def pose(
    clock: Clock,
    model: object,
    image: ArrayLike | Path,
    label: int | None,
    input_shape: tuple[int, ...] | None = None,
    **asked: Unpack[Asked],
) -> tuple[Classifier, Question]:
    """Read the model and put the question into one object."""
    with clock.stage("read"):
        classifier, pixels = read_both(model, image, input_shape)
    classes = classifier.network.classes
    check_classes(classes)
    known = classifier.predict(pixels) if label is None else whole_number("label", label)
    rest: dict[str, Any] = {
        key: value for key, value in asked.items() if key not in ("target", "radius", "mask")
    }
    wanted, group = wanted_classes(asked.get("target", "any"), known, classes)
    radius = asked.get("radius")
    reach, mask = math.inf if radius is None else radius, asked.get("mask")
    question = Question(
        pixels.ravel(), known, classes, wanted, radius=reach, group=group,
        mask=None if mask is None else mask_of(mask, pixels.shape), **rest,
    )  # fmt: skip
    check_patch(question.patch, pixels.shape)
    return classifier, question


def check_patch(side: int | None, shape: tuple[int, ...]) -> None:
    """Refuse a patch that is larger than the image, or of an image that is no picture."""
    picture = picture_shape(shape)
    if side is not None and (picture is None or side > min(picture[1:])):
        said = "the image is no square picture" if picture is None else f"it has {picture[1]} x {picture[2]}"
        raise QueryError(f"a patch of {side} x {side} pixels does not fit into the image: {said}.")


def read_both(
    model: object, image: ArrayLike | Path, input_shape: tuple[int, ...] | None
) -> tuple[Classifier, NDArray[np.float64]]:
    """The model, and the pixels in the shape that it takes."""
    given = image if isinstance(image, (str, Path)) else pixels_of(image)
    shape = shape_for(model, given) if input_shape is None else input_shape
    classifier = model if isinstance(model, Classifier) else read(model, shape)
    taken = classifier.network.input_shape
    if isinstance(given, (str, Path)):
        return classifier, pixels_of(picture_of(given, taken))
    return classifier, fitted(given, taken)


def shape_for(model: object, image: str | Path | NDArray[np.float64]) -> tuple[int, ...] | None:
    """The shape of one image for a model that may not say its own: (C, H, W) without a batch dimension."""
    named = isinstance(model, (str, Path)) and Path(model).suffix.lower() != ".onnx"
    if named or hasattr(model, "input_shape") or isinstance(image, (str, Path)) or image.ndim < 2:
        return None
    return (1, *image.shape) if image.ndim == 2 else image.shape[-3:]


def wanted_classes(target: Target, label: int, classes: int) -> tuple[int | None, tuple[int, ...] | None]:
    """The class that is wanted, or the group of which any will do; neither: any other class."""
    if isinstance(target, str) or not isinstance(target, Iterable):
        return wanted_class(target, label, classes), None
    group = tuple(whole_number("target", number) for number in target)
    return (group[0], None) if len(group) == 1 else (None, group)


def wanted_class(target: int | str, label: int, classes: int) -> int | None:
    if target == "any":
        return None
    if target == "paper":
        return paper_target(label, classes)
    if isinstance(target, str):
        raise QueryError(f"unknown target {target!r}: give 'any', 'paper' or numbers of classes.")
    return whole_number("target", target)


def network_asked(classifier: Classifier, question: Question) -> Network:
    """The network whose outputs are asked about: its scores, or a ReLU of them; what a change reads first."""
    network, changed = classifier.network, question.changed()
    network = network if question.outputs == "logits" else network.with_relu_outputs()
    return network if changed is None else changed.before(network)
