"""A witness as a PNG file: its pixels in 256 steps, and what the original model sees in them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from closecall.arrays import Image
from closecall.question.images import channels_first, fitted, picture_shape
from closecall.question.levels import STEPS, levels_of

Steps = NDArray[np.uint8]  # (channels, height, width)
PixelRange = tuple[float, float]

ENLARGED_SIDE = 280


@dataclass(frozen=True)
class PngReplay:
    """What the original model sees in a witness that was written to a PNG file and read back.

    `fools`: every engine still sees what was asked for; `predicted` is the class that is seen, by an engine
    that is not fooled if there is one. Both are None where there can be no PNG, for the `reason` given.
    """

    fools: bool | None
    predicted: int | None
    reason: str = ""

    def sentence(self) -> str:
        """What to expect of the PNG, in one sentence."""
        if self.fools is None:
            return f"It has no PNG: {self.reason}."
        if self.fools:
            return f"Its PNG (8 bit) still fools the model: it is seen as {self.predicted}."
        return (
            f"Its PNG (8 bit) does not fool the model as asked: rounding undoes it, it is seen as "
            f"{self.predicted}."
        )


def replay_png(
    engines: Mapping[str, Callable[[Image], Image]],
    witness: Image,
    pixel_range: PixelRange,
    accepts: Callable[[Image], bool],
) -> PngReplay:
    """Write a witness as a PNG, read it back, and give it to every engine in float32.

    `accepts` is asked about the scores that each engine gives.
    """
    reason = why_no_png(witness.shape, pixel_range)
    if reason:
        return PngReplay(None, None, reason)
    steps = to_steps(witness, pixel_range)
    read_back = decode_png(encode_png(steps), channels=len(steps))
    return judge(engines, fitted(from_steps(read_back, pixel_range), witness.shape), accepts)


def judge(
    engines: Mapping[str, Callable[[Image], Image]], image: Image, accepts: Callable[[Image], bool]
) -> PngReplay:
    """Whether every engine sees what was asked for in an image."""
    seen = [engine(image[None])[0] for engine in engines.values()]
    refused = [scores for scores in seen if not accepts(scores)]
    return PngReplay(not refused, int((refused or seen)[0].argmax()))


def why_no_png(shape: tuple[int, ...], pixel_range: PixelRange) -> str:
    """Why an image cannot be a PNG; empty if it can."""
    low, high = pixel_range
    if not (low < high and math.isfinite(high - low)):
        return f"the pixel range from {low:g} to {high:g} cannot be cut into {STEPS} steps"
    picture = picture_shape(shape)
    if picture is None:
        return f"{math.prod(shape)} numbers in a row are no square picture"
    return "" if picture[0] in (1, 3) else f"a picture has 1 or 3 channels, the image has {picture[0]}"


def to_steps(image: Image, pixel_range: PixelRange) -> Steps:
    """The nearest of 256 steps for every pixel of an image that can be a PNG."""
    low, high = pixel_range
    steps = np.rint((image.astype(np.float64) - low) / (high - low) * STEPS).clip(0, STEPS)
    return channels_first(steps.astype(np.uint8))


def from_steps(steps: Steps, pixel_range: PixelRange) -> Image:
    """Steps as pixels: for the range [0, 1] the very numbers that a picture file is read as."""
    return np.asarray(levels_of(pixel_range)[steps].astype(np.float32))


def enlarge(steps: Steps) -> Steps:
    """Every pixel as a square, so large that the longer side can be looked at."""
    factor = math.ceil(ENLARGED_SIDE / max(steps.shape[1:]))
    return steps.repeat(factor, axis=1).repeat(factor, axis=2)


def encode_png(steps: Steps) -> bytes:
    """The content of a PNG file, grey for one channel and RGB for three."""
    rows: NDArray[Any] = steps[0] if len(steps) == 1 else np.ascontiguousarray(steps.transpose(1, 2, 0))
    content = io.BytesIO()
    Pillow.fromarray(rows).save(content, format="PNG")
    return content.getvalue()


def decode_png(content: bytes, *, channels: int) -> Steps:
    """The steps that a PNG file holds."""
    with Pillow.open(io.BytesIO(content), formats=("PNG",)) as picture:
        rows = np.asarray(picture.convert("RGB" if channels == 3 else "L"))
    return rows.reshape(*rows.shape[:2], channels).transpose(2, 0, 1)
