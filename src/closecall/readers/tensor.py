"""A tensor of a network that is being read: its shape, and where its numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Indices
from closecall.errors import ModelError, UnsupportedLayerError
from closecall.network.windows import Shape, check_entries

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tensor:
    """Entry i is entry places[i] of a node's output; `peeled` names what was left out after it."""

    node: int
    places: Indices
    peeled: str = ""

    @property
    def shape(self) -> Shape:
        return self.places.shape

    @property
    def size(self) -> int:
        return self.places.size

    def moved(self, move: Callable[[Indices], Indices]) -> Tensor:
        """Reshape, transpose, slice or repeat the entries."""
        places = np.asarray(move(self.places))
        if self.peeled and places.size != self.size:
            raise UnsupportedLayerError(
                f"a {self.peeled} is exact only as the last operation, over all classes."
            )
        return replace(self, places=places)


def broadcast(*shapes: Shape) -> Shape:
    """The common shape of all, as numpy broadcasts."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ModelError(f"tensors of shapes {shapes} do not fit together.") from error
    check_entries(math.prod(shape), "a tensor")
    return shape


def normal_axes(axes: Sequence[int], shape: Shape) -> list[int]:
    """Axes counted from the front, each once."""
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        raise ModelError(f"axes {list(axes)} do not exist in a tensor of shape {shape}.")
    return sorted({axis % len(shape) for axis in axes})


def diagonal(factors: Array) -> csr_array:
    """The matrix that multiplies each entry by its factor."""
    count = factors.size
    return csr_array((factors.flatten(), np.arange(count), np.arange(count + 1)), shape=(count, count))


def scattered(rows: Indices, size: int) -> csr_array:
    """The matrix that puts entry k into row rows[k]."""
    return csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(size, len(rows)))


def chosen(places: Indices, size: int) -> csr_array:
    """The matrix that takes entry places[k] into row k."""
    return csr_array((np.ones(len(places)), places, np.arange(len(places) + 1)), shape=(len(places), size))
