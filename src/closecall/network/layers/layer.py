"""What each kind of layer must be able to say about itself."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from closecall.arrays import Matrix, Vector
from closecall.milp.builder import Expression, ProgramBuilder

# A phase that has less room than this, and far less than the other, is left open to both: a binary for it
# would need coefficients that solvers stumble over. That only adds points to the model, so its bounds hold.
DUST, DUST_SHARE = 1e-6, 1e-3


def is_dust(room: Vector, other: Vector) -> NDArray[np.bool_]:
    """Which rooms are next to nothing beside the other side's."""
    return np.asarray((room < DUST) & (room < DUST_SHARE * other))


def by_sign(rows: Matrix) -> tuple[Matrix, Matrix]:
    """The positive and the negative part of rows, which add up to them."""
    if issparse(rows):
        positive, negative = rows.copy(), rows.copy()
        positive.data, negative.data = np.maximum(rows.data, 0.0), np.minimum(rows.data, 0.0)
        return positive, negative
    return np.maximum(rows, 0.0), np.minimum(rows, 0.0)


class Layer(Protocol):
    """One vector-valued function of one or more vectors."""

    @property
    def size(self) -> int:
        """The length of the output vector."""

    def forward(self, *inputs: Vector) -> Vector:
        """Map rows of inputs (batch, n) to rows of outputs (batch, size)."""

    def gradient(self, slopes: Vector, *inputs: Vector) -> list[Vector]:
        """Carry slopes (batch, size) of some function of the outputs back to each of the inputs."""

    def interval(self, lower: list[Vector], upper: list[Vector]) -> tuple[Vector, Vector]:
        """Bound the outputs when every input lies anywhere between its bounds."""

    def bound_above(
        self, rows: Matrix, lower: list[Vector], upper: list[Vector]
    ) -> tuple[list[Matrix], Vector]:
        """Give new rows and constants with rows·output ≤ Σ new rows·input + constants within the bounds."""

    def encode_tight(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """Add the columns and rows of the tight form; give the outputs as expressions."""

    def encode_choices(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """Add columns and rows without binaries: the choices are left to whoever fixes gap columns to 0."""

    def encode_paper(
        self, builder: ProgramBuilder, inputs: list[Expression], lower: list[Vector], upper: list[Vector]
    ) -> Expression:
        """Add the columns and rows of the form in Fischetti & Jo; give the outputs as expressions."""
