"""Images to begin with, which come with the package: some that are easy to read, and some odd ones."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.verdict.eight_bit import decode_png

GALLERIES = ("mnist", "cifar10")


@cache
def gallery(name: str) -> list[dict[str, Any]]:
    """Each image with its label, its number among the test images and what is odd about it, if anything."""
    folder = files("closecall.web") / "galleries"
    listed = json.loads((folder / f"{name}.json").read_bytes())
    sheet = decode_png((folder / f"{name}.png").read_bytes(), channels=listed["shape"][0])
    _, height, width = listed["shape"]
    return [
        {**entry, "picture": tile(sheet, number, height, width)}
        for number, entry in enumerate(listed["images"])
    ]


def tile(sheet: NDArray[np.uint8], number: int, height: int, width: int) -> NDArray[np.uint8]:
    """One image of a sheet that has them row by row."""
    across = sheet.shape[2] // width
    down, right = divmod(number, across)
    return sheet[:, down * height : (down + 1) * height, right * width : (right + 1) * width]
