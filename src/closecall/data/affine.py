"""Affine MNIST (generated): a test of what a network makes of digits turned, sheared and scaled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from closecall.data.dataset import Dataset, Split
from closecall.data.published import MNIST

NAME = "affine MNIST (generated)"
SIDE = 40
MOST_DEGREES, MOST_SHEAR, SCALES = 20.0, 0.2, (0.8, 1.2)
_SEEDS: dict[Split, int] = {"train": 40_001, "test": 40_002}


def load_mnist_affine(split: Split) -> Dataset:
    """MNIST on 40×40 pixels: training digits only moved, test digits turned, sheared and scaled as well.

    So what is learned from digits in many places is tested on digits in poses never seen. Rotation up to 20°
    either way, shear up to 0.2, both scales from 0.8 to 1.2, then a random place where nothing is cut off.
    It is made from MNIST with a fixed seed and is not the published affNIST.
    """
    digits = MNIST.load(split)
    random = np.random.RandomState(_SEEDS[split])
    made = [_made(digit, random, warped=split == "test") for digit in digits.images[:, 0]]
    return Dataset(NAME, np.stack(made)[:, np.newaxis], digits.labels, digits.class_names)


def _made(digit: NDArray[np.uint8], random: np.random.RandomState, *, warped: bool) -> NDArray[np.uint8]:
    draws = random.uniform(-1, 1, size=6)
    ground = np.zeros((SIDE, SIDE), np.uint8)
    margin = (SIDE - digit.shape[0]) // 2
    ground[margin : margin + digit.shape[0], margin : margin + digit.shape[1]] = digit
    if warped:
        lowest, highest = SCALES
        scales = [lowest + (highest - lowest) * (draw + 1) / 2 for draw in draws[2:4]]
        ground = warp(ground, MOST_DEGREES * draws[0], MOST_SHEAR * draws[1], (scales[0], scales[1]))
    return _moved(ground, draws[4:])


def warp(
    image: NDArray[np.uint8], degrees: float, shear: float, scales: tuple[float, float]
) -> NDArray[np.uint8]:
    """Scale, shear and turn an image about its centre: p ↦ R(degrees) [[1, 0], [shear, 1]] diag(scales) p.

    Positions are (row, column); pixels in between are interpolated linearly.
    """
    from scipy.ndimage import affine_transform

    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[cosine, -sine], [sine, cosine]])
    forward = turn @ np.array([[1.0, 0.0], [shear, 1.0]]) @ np.diag(scales)
    backward = np.linalg.inv(forward)
    centre = (np.array(image.shape) - 1) / 2
    values = affine_transform(image.astype(np.float64), backward, centre - backward @ centre, order=1)
    warped: NDArray[np.uint8] = np.round(values).clip(0, 255).astype(np.uint8)
    return warped


def _moved(image: NDArray[np.uint8], draws: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Move what is drawn to where none of it is cut off; −1 is at the top and left, 1 at the other end."""
    for axis, draw in enumerate(draws):
        drawn = np.flatnonzero(image.any(axis=1 - axis))
        if drawn.size:
            room = image.shape[axis] - 1 - int(drawn[-1]) + int(drawn[0])
            place = min(int((draw + 1) / 2 * (room + 1)), room)
            image = np.roll(image, place - int(drawn[0]), axis=axis)
    return image
