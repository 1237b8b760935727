"""Affine maps: everything linear, however many inputs it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, issparse

from closecall.arrays import OUTWARD, Matrix, Vector
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.network.layers.planes import Planes
from closecall.settings import DEFAULT, Sizes


def compact(matrix: Matrix, settings: Sizes = DEFAULT.sizes) -> Matrix:
    """Store a matrix as an array when that is the faster way to multiply by it, else as CSR."""
    entries = matrix.shape[0] * matrix.shape[1]
    matrix = csr_array(matrix) if issparse(matrix) else matrix
    filled = matrix.nnz if issparse(matrix) else np.count_nonzero(matrix)
    if filled <= settings.dense_share * entries and entries > settings.dense_entries:
        return csr_array(matrix)
    return np.ascontiguousarray(matrix.todense() if issparse(matrix) else matrix, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Affine:
    """output = Σ weights[k] · input[k] + bias."""

    weights: tuple[Matrix, ...]
    bias: Vector

    @classmethod
    def of(cls, weights: Sequence[Matrix], bias: Vector) -> Affine:
        return cls(tuple(compact(weight) for weight in weights), np.asarray(bias, dtype=np.float64))

    @property
    def size(self) -> int:
        return len(self.bias)

    @cached_property
    def _absolute(self) -> tuple[Matrix, ...]:
        return tuple(abs(weight) for weight in self.weights)

    def forward(self, *inputs: Vector) -> Vector:
        total = np.tile(self.bias, (len(inputs[0]), 1))
        for weight, value in zip(self.weights, inputs, strict=True):
            total += value @ weight.T
        return total

    def gradient(self, slopes: Vector, *inputs: Vector) -> list[Vector]:
        return [slopes @ weight for weight in self.weights]

    def interval(self, lower: list[Vector], upper: list[Vector]) -> tuple[Vector, Vector]:
        centre = self.bias.copy()
        spread = np.zeros(self.size)
        for weight, absolute, low, high in zip(self.weights, self._absolute, lower, upper, strict=True):
            centre += weight @ ((low + high) / 2)
            spread += absolute @ ((high - low) / 2)
        largest = [np.maximum(np.abs(low), np.abs(high)) for low, high in zip(lower, upper, strict=True)]
        spread += OUTWARD * self.sums(largest)
        return centre - spread, centre + spread

    def sums(self, largest: Sequence[Vector]) -> Vector:
        """|bias| + Σ |weight| · largest: what each row adds up to when nothing cancels."""
        total = np.abs(self.bias)
        for weight, size in zip(self._absolute, largest, strict=True):
            total = total + weight @ size
        return np.asarray(total)

    def bound_above(
        self, rows: Matrix, lower: list[Vector], upper: list[Vector]
    ) -> tuple[list[Matrix], Vector]:
        return [rows @ weight for weight in self.weights], np.asarray(rows @ self.bias)

    def carry(self, inputs: Sequence[Planes]) -> Planes:
        """Each weight takes the plane above or below by its sign; rounded outward."""
        low, high = self.interval([planes.low for planes in inputs], [planes.high for planes in inputs])
        below, above, magnitude = 0.0, 0.0, 0.0
        for weight, planes in zip(self.weights, inputs, strict=True):
            centre, spread = (planes.above + planes.below) / 2, (planes.above - planes.below) / 2
            middle, width = weight @ centre, abs(weight) @ spread
            below, above = below + middle - width, above + middle + width
            magnitude = magnitude + abs(weight) @ (np.abs(centre) + spread)
        rounding = OUTWARD * magnitude
        return Planes(low, high, np.asarray(below - rounding), np.asarray(above + rounding))

    def encode_tight(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        total = Expression.constants(self.bias)
        for weight, expression in zip(self.weights, inputs, strict=True):
            total = total + expression.mapped(weight)
        return total

    encode_choices = encode_tight
    encode_paper = encode_tight
