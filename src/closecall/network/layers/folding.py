"""Affine maps substituted into an affine map, and what rounding leaves of them when their numbers cancel.

A product of two matrices is rounded by a share of what its terms add up to without their signs. Where that is
far more than the product itself, as for a matrix and its inverse, the product is taken in extended precision;
where even that does not tell, the network is refused.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from closecall.arrays import Matrix, Vector
from closecall.errors import ModelError
from closecall.network.layers.affine import Affine, compact

# What rounding may change of a row, as a share of what is left of it: a tenth of what LP and MILP solvers are
# allowed. Rows that are rounded by more are folded in extended precision, or the network is refused.
TOLERATED = 1e-10


class Folding:
    """One affine map that takes others in: the weights on each source, and what they are sums of."""

    def __init__(self, layer: Affine) -> None:
        self.layer = layer
        self.kept: list[tuple[Matrix, int]] = []
        self.inner: list[tuple[Matrix, Affine, tuple[int, ...]]] = []

    def keep(self, weight: Matrix, source: int) -> None:
        self.kept.append((weight, source))

    def substitute(self, weight: Matrix, inner: Affine, sources: tuple[int, ...]) -> None:
        self.inner.append((weight, inner, sources))

    def result(self) -> tuple[Affine, tuple[int, ...]]:
        weights, bias = self._summed(np.float64)
        if self.inner and not self._faithful(weights, bias, np.float64).all():
            weights, bias = self._summed(np.longdouble)
            if not self._faithful(weights, bias, np.longdouble).all():
                raise ModelError(
                    "layers without an activation between them cancel each other so far that rounding hides "
                    "what is left of them: merge them before you export the model."
                )
        numbers = [compact(weight.astype(np.float64)) for weight in weights.values()]
        return Affine(tuple(numbers), bias.astype(np.float64)), tuple(weights)

    def _summed(self, precision: type[np.floating]) -> tuple[dict[int, Matrix], Vector]:
        """The weights on each source and the bias, in a precision."""
        weights: dict[int, Matrix] = {}
        bias = self.layer.bias.astype(precision)
        terms = [(weight.astype(precision), source) for weight, source in self.kept]
        for outer, inner, sources in self.inner:
            wide = outer.astype(precision)
            bias = bias + wide @ inner.bias.astype(precision)
            parts = zip(inner.weights, sources, strict=True)
            terms += [(wide @ part.astype(precision), source) for part, source in parts]
        for matrix, source in terms:
            weights[source] = weights[source] + matrix if source in weights else matrix
        return weights, bias

    def _faithful(self, weights: dict[int, Matrix], bias: Vector, precision: type[np.floating]) -> Vector:
        """For each row whether its rounding can be neglected, as it can where exactly nothing is left."""
        left = np.abs(bias) + sum(row_sums(weight) for weight in weights.values())
        before = np.abs(self.layer.bias) + sum(row_sums(weight) for weight, _ in self.kept)
        count = 1
        for outer, inner, _ in self.inner:
            inside = np.abs(inner.bias) + sum(row_sums(part) for part in inner.weights)
            before = before + abs(outer) @ inside
            count += most_entries(outer)
        rounding = count * float(np.finfo(precision).eps) * before
        exact = left == 0 if precision is np.longdouble else before == 0
        return np.asarray((rounding <= TOLERATED * left) | exact)


def row_sums(matrix: Matrix) -> Vector:
    return np.asarray(abs(matrix).sum(axis=1), dtype=np.float64).ravel()


def most_entries(matrix: Matrix) -> int:
    """The length of the fullest row."""
    return int(np.diff(csr_array(matrix).indptr).max(initial=0)) if issparse(matrix) else int(matrix.shape[1])
