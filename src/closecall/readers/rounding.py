"""How far the scores of a network may be off when its original computes with few digits."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from closecall.arrays import Matrix, Vector
from closecall.network import Network
from closecall.network.layers import Affine, Capsules, Layer, Maximum


def rounding_errors(network: Network, values: list[Vector], precision: float) -> Vector:
    """The root mean square of the rounding errors in the scores (batch, classes), as chance would have it.

    A sum of n terms t is off by about precision · √(n · Σ t² + n/3 · (Σ t)²), and errors that come in are
    carried on by the squares of the weights. `values` are those of `Network.values`.
    """
    squares = [(precision * values[0]) ** 2]
    for node, output in zip(network.nodes, values[1:], strict=True):
        errors = [squares[source] for source in node.inputs]
        inputs = [values[source] for source in node.inputs]
        squares.append(_carried(node.layer, errors, inputs, output, precision))
    return np.sqrt(squares[-1])


def _carried(
    layer: Layer, errors: list[Vector], inputs: list[Vector], output: Vector, precision: float
) -> Vector:
    if isinstance(layer, Maximum):
        return layer.forward(errors[0])
    if isinstance(layer, Capsules):
        return _through_routing(layer, errors[0], inputs[0], precision)
    if not isinstance(layer, Affine):
        return errors[0]
    carried, terms = np.zeros_like(output), np.tile(layer.bias**2, (len(output), 1))
    count = np.ones(layer.size)
    for weight, error, value in zip(layer.weights, errors, inputs, strict=True):
        squared = _squared(weight)
        carried += error @ squared.T
        terms += value**2 @ squared.T
        count += _entries_by_row(squared)
    return np.asarray(carried + precision**2 * count * (terms + output**2 / 3))


def _through_routing(layer: Capsules, errors: Vector, values: Vector, precision: float) -> Vector:
    """Errors carried by the slopes of each score, and those of sums over the children in each iteration."""
    carried = np.empty((len(values), layer.size))
    for score in range(layer.size):
        rows = np.zeros_like(carried)
        rows[:, score] = 1.0
        carried[:, score] = (layer.gradient(rows, values)[0] ** 2 * errors).sum(axis=1)
    return carried + precision**2 * layer.iterations * layer.child_shape[0]


def _squared(weight: Matrix) -> Matrix:
    return weight.multiply(weight).tocsr() if issparse(weight) else weight**2


def _entries_by_row(weight: Matrix) -> Vector:
    counts = np.diff(csr_array(weight).indptr) if issparse(weight) else np.count_nonzero(weight, axis=1)
    return np.asarray(counts, dtype=np.float64)
