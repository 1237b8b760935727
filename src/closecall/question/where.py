"""Which pixels may change, and how much in a second norm: masks, patches and budgets as people give them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closecall.arrays import Mask
from closecall.errors import DataError, QueryError
from closecall.question.checks import check, check_number
from closecall.question.images import Shape, channels_first, fitted, picture_of
from closecall.question.norms import Norm, norm_named

BUDGET_NORMS = ("l1", "linf", "l0")


def mask_text(allowed: Mask) -> str:
    """The pixels that may change as ranges of their numbers in the flat image: 0:3,7:8."""
    ends, place = [], 0
    for value, run in groupby(allowed.tolist()):
        length = len(list(run))
        if value:
            ends.append(f"{place}:{place + length}")
        place += length
    return ",".join(ends)


def mask_from(text: str, size: int) -> Mask:
    """The mask that `mask_text` wrote."""
    allowed = np.zeros(size, dtype=bool)
    for part in text.split(",") if text else ():
        first, colon, end = part.partition(":")
        known = bool(colon) and first.isascii() and first.isdigit() and end.isascii() and end.isdigit()
        check(known and int(first) < int(end) <= size, f"the mask has no pixels {part!r} of {size}.")
        allowed[int(first) : int(end)] = True
    check(bool(allowed.any()), "the mask lets no pixel change: mark at least one.")
    return allowed


def mask_of(given: ArrayLike | str | Path, taken: Shape) -> str:
    """A picture (white may change), an .npy file or an array (not zero may change) for images of a shape."""
    if isinstance(given, (str, Path)) and Path(given).suffix.lower() != ".npy":
        marked: NDArray[Any] = picture_of(given, taken) >= 0.5
    else:
        marked = read_marks(given) != 0
        if marked.shape == channels_first(np.zeros(taken)).shape[1:]:
            channels = channels_first(np.zeros(taken)).shape[0]
            marked = np.repeat(marked[None], channels, axis=0)
        try:
            marked = fitted(marked, taken)
        except QueryError:
            raise QueryError(
                f"the mask has shape {marked.shape}, the model takes images of shape {taken}."
            ) from None
    text = mask_text(marked.ravel())
    check(bool(text), "the mask lets no pixel change: mark at least one.")
    return text


def read_marks(given: ArrayLike | str | Path) -> NDArray[Any]:
    try:
        marks: NDArray[Any] = (
            np.load(given, allow_pickle=False) if isinstance(given, (str, Path)) else np.asarray(given)
        )
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise DataError(f"the mask cannot be read as an array of numbers: {error}.") from error
    if marks.dtype.kind not in "bfiu":
        raise QueryError(f"a mask is an array of numbers or truth values, not of {marks.dtype}.")
    return marks


def windows(side: int, shape: Shape) -> Iterator[Mask]:
    """Every square of so many pixels a side, in all channels, as a mask of the flat image."""
    numbers = channels_first(np.arange(math.prod(shape)).reshape(shape))
    _, height, width = numbers.shape
    for top in range(height - side + 1):
        for left in range(width - side + 1):
            allowed = np.zeros(numbers.size, dtype=bool)
            allowed[numbers[:, top : top + side, left : left + side].ravel()] = True
            yield allowed


def budget_of(given: object) -> str:
    """A norm and an amount, such as `linf:0.3` or ("l0", 20), in the way that all of them are written."""
    if isinstance(given, str):
        name, colon, amount = given.partition(":")
        check(bool(colon), f"a second budget is a norm and an amount such as linf:0.3, got {given!r}.")
        try:
            most = float(amount)
        except ValueError:
            raise QueryError(f"the amount of a budget must be a number, got {amount!r}.") from None
    else:
        pair = isinstance(given, (tuple, list)) and len(given) == 2
        check(pair, f"a second budget is a norm and an amount such as ('linf', 0.3), got {given!r}.")
        name, most = given  # type: ignore[misc]
        check_number("amount of a budget", most)
    norm = norm_named(name).name
    check(norm in BUDGET_NORMS, f"a second budget is in {', '.join(BUDGET_NORMS)}, got {norm}.")
    check(math.isfinite(most) and most > 0, f"the amount of a budget must be positive, got {most:g}.")
    return f"{norm}:{float(most)!r}"


def budget_from(text: str) -> tuple[Norm, float]:
    """The budget that `budget_of` wrote."""
    name, _, amount = text.partition(":")
    return norm_named(name), float(amount)
