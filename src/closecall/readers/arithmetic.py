"""Sums, products and maxima of tensors and constants, broadcast as numpy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import UnsupportedLayerError
from closecall.readers.graph import GraphBuilder
from closecall.readers.tensor import Tensor, broadcast

Operand = Tensor | NDArray[Any] | float


def total(builder: GraphBuilder, terms: Sequence[tuple[Operand, float]]) -> Tensor:
    """Σ factor · term, at least one of which depends on the image."""
    tensors = [(term, factor) for term, factor in terms if isinstance(term, Tensor)]
    constants = [
        np.asarray(term, dtype=np.float64) * factor for term, factor in terms if not isinstance(term, Tensor)
    ]
    broadcast(*(part.shape for part in constants))
    return builder.scaled(tensors, sum(constants, np.zeros(())))


def add(builder: GraphBuilder, left: Operand, right: Operand) -> Tensor:
    return total(builder, [(left, 1.0), (right, 1.0)])


def subtract(builder: GraphBuilder, left: Operand, right: Operand) -> Tensor:
    return total(builder, [(left, 1.0), (right, -1.0)])


def multiply(builder: GraphBuilder, left: Operand, right: Operand) -> Tensor:
    if not isinstance(left, Tensor):
        left, right = right, left
    if isinstance(right, Tensor) or not isinstance(left, Tensor):
        raise UnsupportedLayerError(
            "a product of two branches is not piecewise linear: one must be constant."
        )
    return builder.scaled([(left, np.asarray(right, dtype=np.float64))])


def divide(builder: GraphBuilder, left: Operand, right: Operand) -> Tensor:
    if isinstance(right, Tensor) or not isinstance(left, Tensor):
        raise UnsupportedLayerError("a division by what depends on the image is not piecewise linear.")
    return builder.scaled([(left, 1.0 / np.asarray(right, dtype=np.float64))])


def absolute(builder: GraphBuilder, tensor: Tensor) -> Tensor:
    """|x| = 2·max(0, x) − x."""
    return builder.scaled([(tensor, -1.0), (builder.relu(tensor), 2.0)])


def hard_sigmoid(builder: GraphBuilder, tensor: Tensor, slope: float, offset: float) -> Tensor:
    """min(max(α·x + β, 0), 1)."""
    return builder.clipped(builder.scaled([(tensor, slope)], offset), 0.0, 1.0)


def soft_shrink(builder: GraphBuilder, tensor: Tensor, reach: float) -> Tensor:
    """x − min(max(x, −λ), λ)."""
    return subtract(builder, tensor, builder.clipped(tensor, -reach, reach))


def smallest(builder: GraphBuilder, tensor: Tensor, axes: Sequence[int], *, keep: bool) -> Tensor:
    """The smallest entry over axes: min x = −max −x."""
    return builder.scaled([(builder.largest(builder.scaled([(tensor, -1.0)]), axes, keep=keep), -1.0)])


def larger(builder: GraphBuilder, left: Operand, right: Operand) -> Tensor:
    """max(a, b) = b + max(0, a − b)."""
    return add(builder, right, builder.relu(subtract(builder, left, right)))


def smaller(builder: GraphBuilder, left: Operand, right: Operand) -> Tensor:
    """min(a, b) = a − max(0, a − b)."""
    return subtract(builder, left, builder.relu(subtract(builder, left, right)))
