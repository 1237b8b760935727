"""What a distance means, in plain words: how much changes, and in which unit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.report.numbers import NORM_NAMES

CHANGED = 1e-6  # smaller changes are the rounding of float32
MEANINGS = {
    "l1": "the sum of the changes of all pixels",
    "l2": "the root of the sum of the squared changes of all pixels",
    "linf": "the largest change of any pixel",
    "l0": "the number of pixel values that change",
}


def distance_words(norm: str, *, colours: bool = False) -> str:
    """A norm's name, what it measures and its unit, such as `L∞: the largest change of any pixel, …`."""
    if norm not in NORM_NAMES:
        return (
            f"{norm}: how much the whole image changes, where 1 is all of the pixel range, or of the contrast"
        )
    told = f"{NORM_NAMES[norm]}: {MEANINGS[norm]}"
    if norm == "l0":
        return told
    whole = "from none to all of a colour" if colours else "from black to white"
    return f"{told}, where 1 is {whole if norm == 'linf' else f'one pixel {whole}'}"


def change_words(norm: str, pixels: int, distance: str, unit: str = "") -> str:
    """Begin a sentence with what has to be changed, such as `Changing 8 pixels by 1.185 in all`.

    What `unit` says about the distance follows it in parentheses.
    """
    counted = "1 pixel" if pixels == 1 else f"{pixels:,} pixels"
    said = f" ({unit})" if unit else ""
    return {
        "l1": f"Changing {counted} by {distance} in all{said}",
        "l2": f"Changing {counted} by {distance} in {NORM_NAMES['l2']}{said}",
        "linf": f"Changing {counted}, none by more than {distance}{said},",
        "l0": f"Changing {counted}{said}",
    }[norm]


def changed_pixels(difference: NDArray[Any]) -> int:
    """How many pixels differ in any colour; flat images have one value for each pixel."""
    shown = np.abs(difference) > CHANGED
    return int((shown.any(axis=0) if shown.ndim == 3 else shown).sum())
