"""A drawing as MNIST's digits are: in a box of 20 × 20 pixels, its centre of mass in the middle of 28 × 28.

The middle is the pixel in row and column 14, counted from 0: there lie the centres of all of MNIST's digits.

Networks that learned from MNIST read nothing else well: a digit in a corner, or one that fills the canvas, is
like no image that they have seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from closecall.verdict.eight_bit import from_steps, to_steps

BOX_SHARE = 20 / 28  # of the side of an image, within which MNIST's digits were fitted
FAINTEST = 0.02  # what is darker than this is ground

Pixels = NDArray[np.float32]


def centred(drawing: Pixels, shape: tuple[int, int, int]) -> Pixels:
    """A bright drawing (1, height, width) on black, scaled and moved into an image of a shape.

    Its aspect is kept, its longer side fills the box, and its centre of mass comes to lie in the middle. An
    empty drawing is an empty image; in three channels it is grey.
    """
    channels, height, width = shape
    ink = cut_out(drawing[0])
    ground = np.zeros((height, width), dtype=np.float32)
    if ink.size:
        small = scaled(ink, BOX_SHARE * height, BOX_SHARE * width)
        down, right = (
            round((side + 1) / 2 - mass)
            for side, mass in zip((height, width), centre_of_mass(small), strict=True)
        )
        paste(ground, small, down, right)
    return in_steps(np.repeat(ground[np.newaxis], channels, axis=0))


def in_steps(pixels: Pixels) -> Pixels:
    """In the 256 steps that a picture file has, so that the image can be sent and saved as one."""
    return from_steps(to_steps(pixels, (0.0, 1.0)), (0.0, 1.0))


def cut_out(pixels: Pixels) -> Pixels:
    """The smallest part that holds all ink."""
    rows, columns = (
        np.flatnonzero(pixels.max(axis=1) > FAINTEST),
        np.flatnonzero(pixels.max(axis=0) > FAINTEST),
    )
    if not len(rows):
        return pixels[:0]
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def scaled(ink: Pixels, box_height: float, box_width: float) -> Pixels:
    """As large as fits into a box, with soft edges."""
    factor = min(box_height / ink.shape[0], box_width / ink.shape[1])
    size = (max(1, round(ink.shape[1] * factor)), max(1, round(ink.shape[0] * factor)))
    picture = Image.fromarray(np.ascontiguousarray(ink, dtype=np.float32))
    shrunk = np.asarray(
        picture.resize(size, Image.Resampling.BOX if factor < 1 else Image.Resampling.BILINEAR)
    )
    brightest = float(shrunk.max(initial=0.0))
    # A thin line pales when it shrinks; MNIST's are bright.
    return (shrunk / brightest if brightest > 0 else shrunk).astype(np.float32).clip(0, 1)


def centre_of_mass(pixels: Pixels) -> tuple[float, float]:
    """Measured from the upper left corner; the middle of the first pixel is at ½."""
    total = float(pixels.sum())
    height, width = pixels.shape
    down = float((pixels.sum(axis=1) * (np.arange(height) + 0.5)).sum() / total)
    return down, float((pixels.sum(axis=0) * (np.arange(width) + 0.5)).sum() / total)


def paste(ground: Pixels, picture: Pixels, down: int, right: int) -> None:
    """Lay a picture on the ground; what would be outside is left out."""
    top, left = max(0, down), max(0, right)
    bottom = min(ground.shape[0], down + picture.shape[0])
    end = min(ground.shape[1], right + picture.shape[1])
    ground[top:bottom, left:end] = picture[top - down : bottom - down, left - right : end - right]
