"""Accuracy on test images that were shifted, turned, scaled and sheared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from closecall.compare.comparison import Comparison
from closecall.compare.results import TransformRow
from closecall.compare.subjects import Subject
from closecall.data.affine import warp
from closecall.train.batches import shift

Images = NDArray[np.uint8]

ROTATIONS = (-45.0, -30.0, -15.0, 0.0, 15.0, 30.0, 45.0)
SCALES = (0.6, 0.8, 1.0, 1.2, 1.4)
SHEARS = (-0.4, -0.2, 0.0, 0.2, 0.4)
FURTHEST_SHIFT = 0.25  # of the image's width
SHIFT_STEPS = 3
UNITS = {"shift": "pixels", "rotation": "degrees", "scale": "times", "shear": ""}


def amounts(width: int) -> dict[str, tuple[float, ...]]:
    """How far images of this width are moved, by kind; a negative shift is to the left."""
    furthest = max(1, round(FURTHEST_SHIFT * width))
    steps = sorted({round(furthest * step / SHIFT_STEPS) for step in range(-SHIFT_STEPS, SHIFT_STEPS + 1)})
    return {
        "shift": tuple(float(step) for step in steps),
        "rotation": ROTATIONS,
        "scale": SCALES,
        "shear": SHEARS,
    }


def measure_moved(comparison: Comparison, subjects: Mapping[str, Sequence[Subject]]) -> list[TransformRow]:
    """A row for each model, kind and amount, with one accuracy for each seed."""
    comparison.progress.heading("accuracy on moved images")
    rows: list[TransformRow] = []
    for kind, chosen in amounts(comparison.test.input_shape[2]).items():
        for amount in chosen:
            rows += measure_amount(comparison, subjects, kind, amount)
        comparison.progress.say(f"{kind}: {len(chosen)} amounts, {len(comparison.moved_test)} images each")
    return rows


def measure_amount(
    comparison: Comparison, subjects: Mapping[str, Sequence[Subject]], kind: str, amount: float
) -> list[TransformRow]:
    """Move the images once, unless every model has been measured on them."""
    moved: list[Images] = []
    rows: list[TransformRow] = []
    for name, networks in subjects.items():
        key = comparison.key(
            "moved",
            model=name,
            weights=[subject.weights for subject in networks],
            kind=kind,
            amount=amount,
            images=len(comparison.moved_test),
        )

        def measure(name: str = name, networks: Sequence[Subject] = networks) -> TransformRow:
            if not moved:
                with comparison.progress.waiting(f"{kind} by {amount:g}"):
                    moved.append(MOVES[kind](comparison.moved_test.images, amount))
            labels = comparison.moved_test.labels
            shares = [float((subject.predict(moved[0]) == labels).mean()) for subject in networks]
            return TransformRow(name, kind, amount, UNITS[kind], shares)

        rows.append(comparison.row(TransformRow, key, measure))
    return rows


def shifted(images: Images, pixels: float) -> Images:
    """Move all images to the right; what comes in is black."""
    moves = torch.tensor([[0], [int(pixels)]]).expand(2, len(images))
    result: Images = shift(torch.from_numpy(images), moves).numpy()
    return result


def warped(images: Images, degrees: float = 0.0, shear: float = 0.0, scale: float = 1.0) -> Images:
    """Warp every channel of every image about its centre."""
    flat = images.reshape(-1, *images.shape[2:])
    return np.stack([warp(image, degrees, shear, (scale, scale)) for image in flat]).reshape(images.shape)


MOVES: dict[str, Callable[[Images, float], Images]] = {
    "shift": shifted,
    "rotation": lambda images, amount: warped(images, degrees=amount),
    "scale": lambda images, amount: warped(images, scale=amount),
    "shear": lambda images, amount: warped(images, shear=amount),
}
