"""What every architecture asks of its arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from closecall.errors import ModelError

OUTPUTS = ("logits", "relu")
LARGEST = 2**31 - 1
MOST_PIXELS = 10_000_000
MOST_WEIGHTS = 100_000_000


def is_whole(value: Any, least: int) -> bool:
    """Say whether a value is an integer (True and False are not) from `least` to what 32 bits hold."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST


def whole_numbers(what: str, values: Sequence[int], *, may_be_empty: bool = False) -> tuple[int, ...]:
    """Give positive whole numbers as a tuple, or say what came instead."""
    listed = isinstance(values, (list, tuple))
    if not listed or not all(is_whole(value, 1) for value in values) or not (values or may_be_empty):
        raise ModelError(
            f"{what} must be a list of positive whole numbers such as (20, 10), not {shown(values)}."
        )
    return tuple(values)


def shown(value: Any) -> str:
    """The beginning of a value, for messages."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def check_image_classes(input_shape: Sequence[int], classes: int) -> tuple[tuple[int, int, int], int]:
    """Give (channels, height, width) and the number of classes, or say what came instead."""
    shape = whole_numbers("The input shape", input_shape)
    if len(shape) != 3:
        raise ModelError(f"The input shape must be (channels, height, width), not {shape}.")
    if math.prod(shape) > MOST_PIXELS:
        raise ModelError(
            f"An image of shape {shape} has more than {MOST_PIXELS:,} values: use smaller images."
        )
    if not is_whole(classes, 2):
        raise ModelError(f"A classifier needs at least 2 classes and at most {LARGEST:,}, not {classes!r}.")
    return (shape[0], shape[1], shape[2]), classes


def check_outputs(outputs: str) -> str:
    """Give the kind of outputs, or name the two there are."""
    if outputs not in OUTPUTS:
        raise ModelError(f'The outputs are "logits" or "relu", not {outputs!r}.')
    return outputs
