"""Write a network down operation by operation: tensors that know their shape and where their numbers are.

A tensor is a node of the network and, for each of its entries, a place in that node's output vector. So
reshaping, transposing, slicing and repeating only move places; what computes becomes an affine map, a ReLU
or a maximum. The batch dimension is written as 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from closecall.arrays import Indices, Matrix
from closecall.errors import ModelError, UnsupportedLayerError
from closecall.network import Network, Node, drop_unread
from closecall.network.layers import Affine, Layer, Maximum, Relu
from closecall.network.windows import (
    Shape,
    Sliding,
    adaptive_average_pool,
    average_pool,
    check_entries,
    convolution,
    max_pool_windows,
    transposed_convolution,
)
from closecall.readers.tensor import Array, Tensor, broadcast, chosen, diagonal, normal_axes, scattered

MOST_VALUES = 5_000_000


class GraphBuilder:
    """Collects nodes; every method gives the tensor that its operation makes."""

    def __init__(self, input_shape: Shape) -> None:
        self.input_shape = input_shape
        self.nodes: list[Node] = []
        self.sizes = [math.prod(input_shape)]
        self.values = 0
        self._make_room(self.sizes[0])
        self.entries = 0

    def input(self) -> Tensor:
        """The image, with a batch dimension of 1."""
        return Tensor(0, np.arange(self.sizes[0]).reshape(1, *self.input_shape))

    def finish(self, output: Tensor) -> Network:
        """The network that gives this tensor, flat."""
        places = output.places.ravel()
        if output.node == 0 or not np.array_equal(places, np.arange(self.sizes[output.node])):
            output = self.affine([(replace(output, peeled=""), None)], np.zeros(output.size), (output.size,))
        return drop_unread(Network(self.input_shape, tuple(self.nodes[: output.node])))

    # Affine maps.

    def affine(self, terms: Sequence[tuple[Tensor, Matrix | None]], bias: Array, shape: Shape) -> Tensor:
        """Σ matrix · tensor + bias, where a matrix of None is the identity."""
        self._make_room(math.prod(shape))
        weights: dict[int, Matrix] = {}
        for tensor, matrix in terms:
            weight = self._over_node(tensor, matrix)
            weights[tensor.node] = weights[tensor.node] + weight if tensor.node in weights else weight
        layer = Affine.of(list(weights.values()), np.asarray(bias, dtype=np.float64).ravel())
        self.entries += sum(math.prod(w.shape) if isinstance(w, np.ndarray) else w.nnz for w in layer.weights)
        check_entries(self.entries, "the network's matrices and windows")
        return self._append(layer, tuple(weights), np.arange(layer.size).reshape(shape))

    def scaled(self, terms: Sequence[tuple[Tensor, Array | float]], constant: Array | float = 0.0) -> Tensor:
        """Σ factor · tensor + constant, entry by entry, broadcast as numpy does."""
        shape = broadcast(
            *(part.shape for part, _ in terms), *(np.shape(f) for _, f in terms), np.shape(constant)
        )
        count = math.prod(shape)
        spread = [
            (
                tensor.moved(lambda places: np.broadcast_to(places, shape)),
                diagonal(np.broadcast_to(np.asarray(factor, dtype=np.float64), shape)),
            )
            for tensor, factor in terms
        ]
        bias = np.broadcast_to(np.asarray(constant, dtype=np.float64), shape).reshape(count)
        return self.affine(spread, bias, shape)

    def matmul(self, left: Tensor | Array, right: Tensor | Array, bias: Array | None = None) -> Tensor:
        """Multiply matrices as numpy does, where one of the two is a constant, and add a bias."""
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            raise UnsupportedLayerError(
                "a product of two branches is not piecewise linear: one must be constant."
            )
        if isinstance(left, Tensor):
            return self._matmul_constant(left, np.asarray(right, dtype=np.float64), bias)
        if isinstance(right, Tensor):
            product = self._constant_matmul(np.asarray(left, dtype=np.float64), right)
            return product if bias is None else self.scaled([(product, 1.0)], bias)
        raise UnsupportedLayerError("a matrix product of two constants does not read the image.")

    def _matmul_constant(self, left: Tensor, right: Array, bias: Array | None = None) -> Tensor:
        right = (
            right.reshape(right.shape[-2:]) if right.ndim > 2 and math.prod(right.shape[:-2]) == 1 else right
        )
        if right.ndim not in (1, 2) or not left.shape or left.shape[-1] != right.shape[0]:
            raise UnsupportedLayerError(
                f"a matrix product of shapes {left.shape} and {right.shape} cannot be read."
            )
        columns = right.reshape(len(right), -1)
        rows = math.prod(left.shape[:-1])
        check_entries(rows * columns.size, "a matrix product")
        matrix = (
            columns.T if rows == 1 else csr_array(kron(eye_array(rows), csr_array(columns.T), format="csr"))
        )
        shape = (*left.shape[:-1], *right.shape[1:])
        if bias is not None and broadcast(shape, bias.shape) != shape:
            raise ModelError(f"a bias of shape {bias.shape} does not fit a matrix product of shape {shape}.")
        constant = np.zeros(shape) if bias is None else np.broadcast_to(bias, shape)
        return self.affine([(left, matrix)], constant, shape)

    def _constant_matmul(self, left: Array, right: Tensor) -> Tensor:
        left = left.reshape(left.shape[-2:]) if left.ndim > 2 and math.prod(left.shape[:-2]) == 1 else left
        along = right.shape[-2] if len(right.shape) > 1 else right.size
        if left.ndim not in (1, 2) or not right.shape or left.shape[-1] != along:
            raise UnsupportedLayerError(
                f"a matrix product of shapes {left.shape} and {right.shape} cannot be read."
            )
        if len(right.shape) == 1:
            return self._matmul_constant(right, left.T)
        product = self._matmul_constant(right.moved(lambda places: np.swapaxes(places, -1, -2)), left.T)
        return product if left.ndim == 1 else product.moved(lambda places: np.swapaxes(places, -1, -2))

    def convolution(
        self, tensor: Tensor, weight: Array, bias: Array | None, sliding: Sliding, groups: int = 1
    ) -> Tensor:
        """Convolve (1, channels, *sides)."""
        matrix, shape = convolution(weight, self._image(tensor), sliding, groups)
        return self._convolved(tensor, matrix, bias, shape)

    def transposed_convolution(
        self,
        tensor: Tensor,
        weight: Array,
        bias: Array | None,
        sliding: Sliding,
        more: Shape,
        groups: int = 1,
    ) -> Tensor:
        """Spread (1, channels, *sides) as the gradient of a convolution does."""
        matrix, shape = transposed_convolution(weight, self._image(tensor), sliding, more, groups)
        return self._convolved(tensor, matrix, bias, shape)

    def _convolved(self, tensor: Tensor, matrix: Matrix, bias: Array | None, shape: Shape) -> Tensor:
        offsets = np.zeros(shape[0]) if bias is None else np.asarray(bias, dtype=np.float64)
        if offsets.shape != shape[:1]:
            raise ModelError(
                f"a convolution with {shape[0]} outputs needs as many biases, not {offsets.shape}."
            )
        return self.affine([(tensor, matrix)], np.repeat(offsets, math.prod(shape[1:])), (1, *shape))

    def average_pool(
        self, tensor: Tensor, sliding: Sliding, *, count_pads: bool, divisor: int | None = None
    ) -> Tensor:
        """Average windows of (1, channels, *sides)."""
        matrix, shape = average_pool(self._image(tensor), sliding, count_pads=count_pads, divisor=divisor)
        return self.affine([(tensor, matrix)], np.zeros(matrix.shape[0]), (1, *shape))

    def adaptive_average_pool(self, tensor: Tensor, out: Shape) -> Tensor:
        """Average (1, channels, *sides) down to (1, channels, *out)."""
        matrix, shape = adaptive_average_pool(self._image(tensor), out)
        return self.affine([(tensor, matrix)], np.zeros(matrix.shape[0]), (1, *shape))

    def reduced(self, tensor: Tensor, axes: Sequence[int], *, keep: bool, average: bool) -> Tensor:
        """Sum or average over axes."""
        axes = normal_axes(axes, tensor.shape)
        kept = tuple(1 if axis in axes else side for axis, side in enumerate(tensor.shape))
        rows = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), tensor.shape).ravel()
        share = 1.0 / max(1, tensor.size // max(1, math.prod(kept))) if average else 1.0
        matrix = csr_array(
            (np.full(tensor.size, share), (rows, np.arange(tensor.size))),
            shape=(math.prod(kept), tensor.size),
        )
        shape = kept if keep else tuple(side for axis, side in enumerate(kept) if axis not in axes)
        return self.affine([(tensor, matrix)], np.zeros(math.prod(kept)), shape)

    def concatenated(self, parts: Sequence[Tensor | Array], axis: int) -> Tensor:
        """Join tensors and constants along an axis."""
        shapes = [part.shape for part in parts]
        (axis,) = normal_axes([axis], shapes[0])
        if any(s[:axis] + s[axis + 1 :] != shapes[0][:axis] + shapes[0][axis + 1 :] for s in shapes):
            raise ModelError(f"tensors of shapes {shapes} cannot be joined along axis {axis}.")
        tensors = [part for part in parts if isinstance(part, Tensor)]
        if len(tensors) == len(parts) and len({tensor.node for tensor in tensors}) == 1:
            return tensors[0].moved(
                lambda _: np.concatenate([tensor.places for tensor in tensors], axis=axis)
            )
        length = sum(shape[axis] for shape in shapes)
        shape = (*shapes[0][:axis], length, *shapes[0][axis + 1 :])
        check_entries(math.prod(shape), "a concatenation")
        rows = np.arange(math.prod(shape)).reshape(shape)
        bias = np.zeros(math.prod(shape))
        terms: list[tuple[Tensor, Matrix | None]] = []
        for part, where in zip(
            parts, np.split(rows, np.cumsum([s[axis] for s in shapes])[:-1], axis=axis), strict=True
        ):
            if isinstance(part, Tensor):
                terms.append((part, scattered(where.ravel(), len(bias))))
            else:
                bias[where.ravel()] = part.ravel()
        return self.affine(terms, bias, shape)

    def padded(self, tensor: Tensor, before: Sequence[int], after: Sequence[int], value: float) -> Tensor:
        """Surround with a constant; negative numbers cut away."""
        cut = tuple(
            slice(max(0, -b), side - max(0, -a))
            for b, a, side in zip(before, after, tensor.shape, strict=True)
        )
        tensor = tensor.moved(lambda places: places[cut])
        grow = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
        shape = tuple(b + side + a for (b, a), side in zip(grow, tensor.shape, strict=True))
        if shape == tensor.shape:
            return tensor
        check_entries(math.prod(shape), "a padding")
        inside = tuple(slice(b, b + side) for (b, _), side in zip(grow, tensor.shape, strict=True))
        rows = np.arange(math.prod(shape)).reshape(shape)[inside].ravel()
        bias = np.full(math.prod(shape), value, dtype=np.float64)
        bias[rows] = 0.0
        return self.affine([(tensor, scattered(rows, len(bias)))], bias, shape)

    # Kinks.

    def relu(self, tensor: Tensor) -> Tensor:
        """max(0, x)."""
        size = self.sizes[tensor.node]
        if tensor.peeled or not np.array_equal(np.sort(tensor.places, axis=None), np.arange(size)):
            tensor = self.scaled([(tensor, 1.0)])
        self._make_room(tensor.size)
        return self._append(Relu(tensor.size), (tensor.node,), tensor.places)

    def leaky_relu(self, tensor: Tensor, slope: Array | float) -> Tensor:
        """α·x + (1 − α)·max(0, x)."""
        return self.scaled([(tensor, slope), (self.relu(tensor), 1.0 - np.asarray(slope))])

    def clipped(self, tensor: Tensor, low: float | None, high: float | None) -> Tensor:
        """min(max(x, low), high) = low + max(0, x − low) − max(0, x − high)."""
        low = None if low == -math.inf else low
        high = None if high == math.inf else high
        if low is not None and high is not None:
            if low >= high:
                return self.scaled([(tensor, 0.0)], high)
            above = self.relu(self.scaled([(tensor, 1.0)], -high))
            return self.scaled([(self._above(tensor, low), 1.0), (above, -1.0)], low)
        if low is not None:
            rest = self._above(tensor, low)
            return rest if low == 0 else self.scaled([(rest, 1.0)], low)
        if high is not None:
            return self.scaled([(self.relu(self.scaled([(tensor, -1.0)], high)), -1.0)], high)
        return tensor

    def _above(self, tensor: Tensor, low: float) -> Tensor:
        return self.relu(tensor if low == 0 else self.scaled([(tensor, 1.0)], -low))

    def max_pool(self, tensor: Tensor, sliding: Sliding) -> Tensor:
        """The largest entry of each window of (1, channels, *sides)."""
        windows, shape = max_pool_windows(self._image(tensor), sliding)
        return self._maximum(tensor, windows, (1, *shape))

    def largest(self, tensor: Tensor, axes: Sequence[int], *, keep: bool) -> Tensor:
        """The largest entry over axes."""
        axes = normal_axes(axes, tensor.shape)
        kept = [axis for axis in range(len(tensor.shape)) if axis not in axes]
        order = np.arange(tensor.size).reshape(tensor.shape).transpose(*kept, *axes)
        if not tensor.size:
            raise ModelError(f"a tensor of shape {tensor.shape} has no largest entry.")
        count = math.prod(tensor.shape[axis] for axis in axes)
        largest = self._maximum(tensor, order.reshape(-1, count), tuple(tensor.shape[axis] for axis in kept))
        return largest.moved(lambda places: np.expand_dims(places, tuple(axes))) if keep else largest

    def _maximum(self, tensor: Tensor, windows: Indices, shape: Shape) -> Tensor:
        self._make_room(len(windows))
        self.entries += windows.size
        check_entries(self.entries, "the network's matrices and windows")
        if tensor.peeled:
            tensor = self.scaled([(tensor, 1.0)])
        mapped = np.where(windows >= 0, tensor.places.ravel()[windows], -1)
        return self._append(Maximum(mapped), (tensor.node,), np.arange(len(mapped)).reshape(shape))

    def peeled_each(self, tensor: Tensor, name: str) -> Tensor:
        """Leave out what keeps the order of the scores, as a sigmoid of each does."""
        if tensor.peeled:
            raise UnsupportedLayerError(f"a {name} is exact only as the last operation.")
        return replace(tensor, peeled=name)

    def peeled(self, tensor: Tensor, axis: int, name: str) -> Tensor:
        """Leave a softmax out, if it goes over all the scores there are."""
        (axis,) = normal_axes([axis], tensor.shape)
        if tensor.peeled or tensor.shape[axis] != tensor.size:
            raise UnsupportedLayerError(f"a {name} is exact only as the last operation, over all classes.")
        return replace(tensor, peeled=name)

    def _make_room(self, count: int) -> None:
        self.values += count
        if self.values > MOST_VALUES:
            raise ModelError(f"the network has more than {MOST_VALUES:,} values, too many for closecall.")

    def _append(self, layer: Layer, inputs: tuple[int, ...], places: Indices) -> Tensor:
        self.nodes.append(Node(layer, inputs))
        self.sizes.append(layer.size)
        return Tensor(len(self.nodes), places)

    def _over_node(self, tensor: Tensor, matrix: Matrix | None) -> Matrix:
        """A matrix over the tensor's entries as one over its node's whole output."""
        if tensor.peeled:
            raise UnsupportedLayerError(
                f"a {tensor.peeled} in the middle of a network is not piecewise linear."
            )
        places = tensor.places.ravel()
        if matrix is not None and np.array_equal(places, np.arange(self.sizes[tensor.node])):
            return matrix
        selection = chosen(places, self.sizes[tensor.node])
        if matrix is None:
            return selection
        # A dense matrix over a few entries of a long vector would be mostly zeros.
        return matrix @ selection if len(places) == self.sizes[tensor.node] else csr_array(matrix) @ selection

    @staticmethod
    def _image(tensor: Tensor) -> Shape:
        if len(tensor.shape) < 3 or tensor.shape[0] != 1:
            raise ModelError(
                f"a convolution or pooling needs (1, channels, sides…), but a tensor is {tensor.shape}."
            )
        return tensor.shape[1:]
