"""What numbers and names must be like to mean something; each refusal is one sentence."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import Any

from closecall.errors import QueryError

# Images are replayed in float32, which ends at 3e38: pixels must leave a network room to multiply and add.
LARGEST_PIXEL = 1e9


def check(holds: bool, sentence: str) -> None:
    if not holds:
        raise QueryError(sentence)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    check(value in choices, f"unknown {name} {value!r}: choose one of {', '.join(choices)}.")


def check_number(name: str, value: object) -> None:
    check(
        isinstance(value, numbers.Real) and not isinstance(value, bool),
        f"the {name} must be a number, got {value!r}.",
    )


def whole_number(name: str, value: Any) -> int:
    """The number of a class, also one that comes as numpy's or torch's."""
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise QueryError(f"the {name} must be the number of a class, got {value!r}.") from error


def check_classes(classes: int) -> None:
    given = f"{classes} score" if classes == 1 else f"{classes} scores"
    check(classes >= 2, f"the model gives {given} per image: a classifier needs at least two classes.")


def check_class(name: str, value: int, classes: int) -> None:
    check(0 <= value < classes, f"the {name} must be from 0 to {classes - 1}, got {value}.")


def pixel_limits(pixel_range: tuple[float, float]) -> tuple[float, float]:
    """The ends of the pixel range, if it has two, is finite and rises."""
    pair = isinstance(pixel_range, (tuple, list)) and len(pixel_range) == 2
    check(pair, f"the pixel range must be two numbers such as (0, 1), got {pixel_range!r}.")
    for end in pixel_range:
        check_number("end of the pixel range", end)
    low, high = pixel_range
    check(
        abs(low) <= LARGEST_PIXEL and abs(high) <= LARGEST_PIXEL,
        f"the pixel range must be finite and within ±{LARGEST_PIXEL:g}, got {low:g} to {high:g}: give the "
        "range that images really have.",
    )
    check(low < high, f"the pixel range must rise, got {low:g} to {high:g}: give the smaller number first.")
    return low, high
