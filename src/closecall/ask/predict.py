"""What any model says about one image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import ModelError
from closecall.question.images import fitted, picture_of

Shape = tuple[int, int, int]
Scorer = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class Prediction:
    """The class with the largest score, and every class's score.

    `kind` says what the scores are: `logits` of a dnn or cnn, `lengths` of class capsules, or `outputs` of an
    ONNX file, which may be anything. `probabilities` is the softmax of logits.
    """

    label: int
    scores: tuple[float, ...]
    kind: str
    probabilities: tuple[float, ...] | None


def predict(
    model: str | Path,
    image: str | Path | NDArray[np.float32],
    input_shape: tuple[int, ...] | None = None,
) -> Prediction:
    """Classify a picture by an .onnx file, a folder that `closecall train` wrote, or `zoo:NAME`.

    The picture is a file, or pixels in [0, 1] of shape (channels, height, width).
    """
    given = image.shape if isinstance(image, np.ndarray) and input_shape is None else input_shape
    shape, kind, score = open_scorer(model, given)
    pixels = fitted(image, shape) if isinstance(image, np.ndarray) else picture_of(image, shape)
    scores = score(np.ascontiguousarray(pixels)).astype(np.float64)
    if not scores.size:
        raise ModelError(f"{model} gives no scores at all: a classifier needs at least two.")
    probabilities = None
    if kind == "logits":
        exponentials = np.exp(scores - scores.max())
        probabilities = tuple((exponentials / exponentials.sum()).tolist())
    return Prediction(int(scores.argmax()), tuple(scores.tolist()), kind, probabilities)


def open_scorer(model: str | Path, input_shape: tuple[int, ...] | None = None) -> tuple[Shape, str, Scorer]:
    """Give the shape of a model's images, what its scores are, and the function that scores an image."""
    if Path(model).suffix.lower() == ".onnx":
        return _open_onnx(Path(model), input_shape)
    from closecall.models.plain import load_plain

    plain = load_plain(model)
    if plain is None:
        return _open_module(model)
    from closecall.readers.plain_engines import run_plain

    run = run_plain(plain)
    return plain.input_shape, "logits", lambda image: run(image[np.newaxis])[0]


def _open_module(model: str | Path) -> tuple[Shape, str, Scorer]:
    import torch

    from closecall import models

    network = models.load_model(model)
    shape: Any = network.input_shape
    kind = "lengths" if isinstance(network, models.CapsNet) else "logits"

    def score(image: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.no_grad():
            scores: NDArray[np.float32] = network(torch.from_numpy(image).unsqueeze(0))[0].numpy()
        return scores

    return tuple(shape), kind, score


def _open_onnx(path: Path, input_shape: tuple[int, ...] | None) -> tuple[Shape, str, Scorer]:
    """Run a file as onnxruntime does: every operator it knows, not only those that can be searched."""
    from closecall.readers.engines import open_session, run_session

    if not path.is_file():
        raise ModelError(f"There is no model file {path}.")
    try:
        session = open_session(str(path))
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"onnxruntime cannot open {path} ({reason}): export it again.") from error
    inputs = session.get_inputs()
    batch, *sides = inputs[0].shape or [None]
    if input_shape is not None and len(sides) == len(input_shape):
        sides = [
            given if isinstance(side, str | None) else side
            for side, given in zip(sides, input_shape, strict=True)
        ]
    if len(inputs) != 1 or len(sides) != 3 or not all(isinstance(side, int) for side in sides):
        raise ModelError(
            f"{path} takes {[entry.shape for entry in inputs]}, but a picture is one input "
            "(batch, channels, height, width) with the last three known, or given by the input shape."
        )
    shape = (sides[0], sides[1], sides[2])
    run = run_session(session, shape, batch if isinstance(batch, int) else None)
    return shape, "outputs", lambda image: run(image[np.newaxis])[0]
