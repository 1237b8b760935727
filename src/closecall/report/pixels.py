"""Images as data URIs, one PNG pixel for each pixel: the page enlarges them without blurring."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from closecall.verdict.picture import as_picture

RISEN, FALLEN = (214, 69, 65), (58, 124, 188)


def image_uri(image: NDArray[Any], low: float = 0.0, high: float = 1.0) -> str:
    """An image of one or three channels."""
    shown = np.clip((as_picture(image) - low) / (high - low), 0.0, 1.0)
    return png_uri(np.round(255 * shown).astype(np.uint8))


def difference_uri(difference: NDArray[Any]) -> str:
    """The difference of two images in colours, on dark and on light."""
    return png_uri(difference_pixels(difference))


def difference_pixels(difference: NDArray[Any]) -> NDArray[np.uint8]:
    """Red where pixels rose, blue where they fell, and clear where nothing changed: (height, width, 4)."""
    shown = as_picture(difference)
    if shown.ndim == 3:
        shown = np.take_along_axis(shown, np.abs(shown).argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    largest = float(np.abs(shown).max(initial=0.0)) or 1.0
    colours = np.zeros((*shown.shape, 4), dtype=np.uint8)
    colours[..., :3] = np.where((shown > 0)[..., None], RISEN, FALLEN)
    # The square root keeps small changes in sight.
    colours[..., 3] = np.round(255 * np.sqrt(np.abs(shown) / largest))
    return colours


def png_uri(pixels: NDArray[np.uint8]) -> str:
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
