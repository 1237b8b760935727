"""Images as people give them, and as networks take them: arrays, tensors and files of pictures."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import DataError, QueryError

Pixels = NDArray[np.float64]
Shape = tuple[int, ...]

PICTURE_CHANNELS = (1, 3)


def pixels_of(image: object) -> Pixels:
    """An array or a tensor of numbers in float64, as it is."""
    if "torch" in sys.modules and isinstance(image, sys.modules["torch"].Tensor):
        tensor: Any = image
        image = tensor.detach().cpu().to(sys.modules["torch"].float64 if tensor.is_floating_point() else None)
    try:
        pixels: NDArray[Any] = np.asarray(image)
    except (ValueError, TypeError, RuntimeError) as error:
        raise QueryError(f"an image is an array of numbers or the path of a picture: {error}.") from error
    if pixels.dtype.kind not in "fiu":
        raise QueryError(
            f"an image is an array of numbers or the path of a picture, not {type(image).__name__} of "
            f"{pixels.dtype}."
        )
    return pixels.astype(np.float64)


def picture_of(path: str | Path, input_shape: Shape) -> NDArray[np.float32]:
    """Read a picture or an .npy file for a network that takes images of a shape."""
    from closecall.data import load_image

    shape = picture_shape(input_shape)
    if shape is None:
        raise QueryError(
            f"the model takes {math.prod(input_shape)} numbers, which are no square picture: "
            "give the image as an array, or by --dataset."
        )
    try:
        return np.asarray(fitted(load_image(path, shape), input_shape), dtype=np.float32)
    except DataError:
        # An array may be stored as the network takes it, with its channels last.
        if Path(path).suffix.lower() != ".npy" or len(input_shape) != 3 or shape == input_shape:
            raise
        return load_image(path, (input_shape[0], input_shape[1], input_shape[2]))


def picture_shape(input_shape: Shape) -> tuple[int, int, int] | None:
    """(channels, height, width) of a network's images, also of one that takes flat rows of square images."""
    if len(input_shape) == 3:
        first, second, last = input_shape
        return (last, first, second) if channels_last(input_shape) else (first, second, last)
    if len(input_shape) == 2:
        return (1, *input_shape)
    size = math.prod(input_shape)
    for channels in PICTURE_CHANNELS:
        side = math.isqrt(size // channels)
        if channels * side * side == size:
            return channels, side, side
    return None


def channels_last(shape: Shape) -> bool:
    """Whether images of a shape can only be (height, width, channels), as TensorFlow has them."""
    return [side in PICTURE_CHANNELS for side in shape] == [False, False, True]


def turned(given: Shape, taken: Shape) -> bool:
    """Whether (channels, height, width) is given where a network takes (height, width, channels)."""
    return len(given) == 3 and squeezed(given) != squeezed(taken) and (*given[1:], given[0]) == taken


def fitted(pixels: NDArray[Any], taken: Shape) -> NDArray[Any]:
    """An image in the shape that a network takes; channels go last where that is the only way to fit."""
    if pixels.ndim == 4 and len(pixels) == 1:
        pixels = pixels[0]
    if turned(pixels.shape, taken):
        return np.moveaxis(pixels, 0, 2)
    flat = len(squeezed(taken)) <= 1 or pixels.ndim <= 1
    if pixels.size != math.prod(taken) or (not flat and squeezed(pixels.shape) != squeezed(taken)):
        raise QueryError(f"the model takes images of shape {taken}, got {pixels.shape}.")
    return pixels.reshape(taken)


def channels_first(pixels: NDArray[Any]) -> NDArray[Any]:
    """An image that can be a picture as (channels, height, width)."""
    if channels_last(pixels.shape):
        return np.moveaxis(pixels, 2, 0)
    return pixels.reshape(picture_shape(pixels.shape) or pixels.shape)


def squeezed(shape: Shape) -> Shape:
    return tuple(side for side in shape if side != 1)
