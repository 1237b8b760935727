"""Pictures that people upload: photographs of digits, pictures of any size, arrays."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageOps

from closecall.errors import DataError
from closecall.verdict.eight_bit import from_steps
from closecall.web.centring import centred
from closecall.web.messages import Tell
from closecall.web.worker.opened import Pixels

FORMATS = ("PNG", "JPEG")
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)
PAPER = 0.5  # a picture whose edge is brighter than this is dark ink on paper
FOLD = 0.25  # how far a photographed ground may differ from its middle and still be no ink


def read_picture(_tell: Tell, *, content: bytes, shape: tuple[int, int, int], side: int) -> Pixels:
    """A PNG or JPEG file as an image of a shape: as it is if it has that size, else made to fit.

    For one channel a picture is fitted as a drawn digit is; for three it is cut square and scaled.
    """
    picture = opened_picture(content, side)
    channels, height, width = shape
    grey = picture.convert("L" if channels == 1 else "RGB")
    if picture.size == (width, height):
        return as_pixels(grey)
    if channels == 1:
        return centred(ink_of(as_pixels(grey)), shape)
    return as_pixels(ImageOps.fit(grey, (width, height), Image.Resampling.LANCZOS))


def opened_picture(content: bytes, side: int) -> Image.Image:
    """A picture whose size is known to be modest before it is decoded."""
    try:
        picture: Image.Image = Image.open(io.BytesIO(content), formats=FORMATS)
        if max(picture.size) > side:
            across, down = picture.size
            raise DataError(f"The picture is {across} × {down} pixels: at most {side} × {side} are taken.")
        return flattened(ImageOps.exif_transpose(picture))
    except UNREADABLE as error:
        raise DataError(
            "This is not a PNG or JPEG picture that can be read: save it as one of these."
        ) from error


def flattened(picture: Image.Image) -> Image.Image:
    """Whatever is see-through, on white."""
    if "A" not in picture.getbands() and "transparency" not in picture.info:
        picture.load()
        return picture
    solid = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", solid.size, "white"), solid).convert("RGB")


def as_pixels(picture: Image.Image) -> Pixels:
    steps = np.asarray(picture)
    rows = steps.reshape(*steps.shape[:2], -1).transpose(2, 0, 1)
    return from_steps(np.ascontiguousarray(rows, dtype=np.uint8), (0.0, 1.0))


def ink_of(pixels: Pixels) -> Pixels:
    """A digit as bright ink on black, whatever it was written on: paper is dark, and its shades are black."""
    edge = np.concatenate([pixels[0, 0], pixels[0, -1], pixels[0, :, 0], pixels[0, :, -1]])
    ground = float(np.median(edge))
    ink = ground - pixels if ground > PAPER else pixels - ground
    strongest = float(ink.max(initial=0.0))
    if strongest <= 0:
        return np.zeros_like(pixels)
    ink = np.where(ink < FOLD * strongest, 0.0, ink / strongest)
    return ink.clip(0, 1).astype(np.float32)
