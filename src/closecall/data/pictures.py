"""Single pictures: PNG, JPEG and .npy files."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from closecall.data.arrays import check_unit_interval
from closecall.data.dataset import to_unit_interval
from closecall.errors import DataError

PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg"})
_FORMATS = ("PNG", "JPEG")
_GREY_MODES = frozenset({"1", "L", "LA"})
_COLOUR_MODES = frozenset({"P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"})
_ORIENTATION = 0x0112  # the tag in which EXIF keeps it
# How a picture of each orientation that EXIF knows is turned upright; 1 is upright.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ON_ITS_SIDE = (5, 6, 7, 8)
_UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)


def load_image(path: str | Path, input_shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """Read one PNG, JPEG or .npy image as (channels, height, width) in [0, 1] for a network of that input.

    A picture is turned to grey or colour as the channels ask, but never resized. An .npy file holds
    bytes, or floats in [0, 1] that are kept as they are.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no image file {path}.")
    if path.suffix.lower() == ".npy":
        return _load_array(path, input_shape)
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        raise DataError(f"{path} must be a .png, .jpg, .jpeg or .npy file.")
    channels, height, width = input_shape
    if channels not in (1, 3):
        raise DataError(
            f"a picture has 1 or 3 channels but the network takes {channels}; "
            f"give a .npy file instead of {path}."
        )
    pixels = read_picture(path, channels)
    if pixels.shape[1:] != (height, width):
        raise DataError(
            f"{path} is {pixels.shape[2]}x{pixels.shape[1]} pixels (width x height) "
            f"but the network takes {width}x{height}; resize it first."
        )
    return to_unit_interval(pixels)


def picture_header(path: Path) -> tuple[int, tuple[int, int]]:
    """Channels (1 or 3) and (width, height) of a picture as it is meant to be seen, from its header alone."""
    try:
        with Image.open(path, formats=_FORMATS) as picture:
            mode, (width, height) = picture.mode, picture.size
            lies_on_its_side = _orientation(picture) in _ON_ITS_SIDE
    except _UNREADABLE as error:
        raise DataError(f"{path} is not a PNG or JPEG image that can be read.") from error
    if mode not in _GREY_MODES | _COLOUR_MODES:
        raise DataError(f"{path} has pixels of kind {mode}, only 8-bit grey and colour pictures can be used.")
    return (1 if mode in _GREY_MODES else 3), (height, width) if lies_on_its_side else (width, height)


def _orientation(picture: Image.Image) -> int:
    """What the header says about how the camera was held; a header that is damaged says nothing."""
    described = Image.Exif()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            described.load(picture.info.get("exif", b""))
            return int(described.get(_ORIENTATION, 1))
    except (SyntaxError, ValueError, TypeError, KeyError, OSError, struct.error):
        return 1


def read_picture(path: Path, channels: int) -> NDArray[np.uint8]:
    """Decode a picture to (channels, height, width) bytes, grey for 1 channel and RGB for 3.

    A picture that says how the camera was held is turned upright.
    """
    picture_header(path)
    try:
        with Image.open(path, formats=_FORMATS) as picture:
            if picture.has_transparency_data and _is_see_through(picture):
                raise DataError(
                    f"{path} has transparent pixels, whose colour is undefined; flatten it first."
                )
            orientation = _orientation(picture)
            upright = picture.transpose(_TURNS[orientation]) if orientation in _TURNS else picture
            pixels = np.asarray(upright.convert("RGB" if channels == 3 else "L"))
    except _UNREADABLE as error:
        raise DataError(f"{path} is damaged: its pixels cannot be read.") from error
    return np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], channels).transpose(2, 0, 1))


def _is_see_through(picture: Image.Image) -> bool:
    return picture.convert("RGBA").getchannel("A").getextrema() != (255, 255)


def _load_array(path: Path, input_shape: tuple[int, int, int]) -> NDArray[np.float32]:
    try:
        values: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise DataError(f"{path} is not an .npy file of plain numbers; write it with numpy.save.") from error
    if values.ndim == 2 and input_shape[0] == 1:
        values = values[np.newaxis]
    if values.shape != input_shape:
        raise DataError(f"{path} has shape {values.shape} but the network takes {input_shape}.")
    if values.dtype == np.uint8:
        return to_unit_interval(values)
    check_unit_interval(values, str(path))
    return values.astype(np.float32)
