"""Building a MILP block by block, as arrays: columns, rows and linear expressions over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, vstack

from closecall.arrays import Indices, Vector
from closecall.milp import Milp


@dataclass(frozen=True, eq=False)
class Expression:
    """A block of affine expressions: matrix · v + constant, one row for each."""

    matrix: csr_array
    constant: Vector

    @classmethod
    def constants(cls, constant: Vector) -> Expression:
        return cls(csr_array((len(constant), 0)), constant)

    @classmethod
    def of_columns(cls, columns: Indices) -> Expression:
        count = len(columns)
        width = int(columns.max(initial=-1)) + 1
        matrix = csr_array((np.ones(count), columns, np.arange(count + 1)), shape=(count, width))
        return cls(matrix, np.zeros(count))

    @classmethod
    def scattered(cls, size: int, blocks: list[tuple[Indices, Expression]]) -> Expression:
        """Expressions at the given places of a vector of zeros."""
        total = cls.constants(np.zeros(size))
        for places, block in blocks:
            spread = csr_array(
                (np.ones(len(places)), (places, np.arange(len(places)))), shape=(size, len(places))
            )
            total = total + block.mapped(spread)
        return total

    def __len__(self) -> int:
        return len(self.constant)

    def __add__(self, other: Expression) -> Expression:
        width = max(self.matrix.shape[1], other.matrix.shape[1])
        matrix = widened(self.matrix, width) + widened(other.matrix, width)
        return Expression(csr_array(matrix), self.constant + other.constant)

    def __sub__(self, other: Expression) -> Expression:
        return self + other.scaled(-np.ones(len(other)))

    def scaled(self, factors: Vector) -> Expression:
        repeats = np.diff(self.matrix.indptr)
        data = self.matrix.data * np.repeat(factors, repeats)
        matrix = csr_array((data, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)
        return Expression(matrix, self.constant * factors)

    def mapped(self, matrix: csr_array | Vector) -> Expression:
        """The expressions matrix · self."""
        return Expression(csr_array(csr_array(matrix) @ self.matrix), matrix @ self.constant)

    def taken(self, places: Indices) -> Expression:
        return Expression(csr_array(self.matrix[places]), self.constant[places])

    def at(self, values: Vector) -> Vector:
        """The numbers that the expressions take at a point."""
        return np.asarray(self.matrix @ values[: self.matrix.shape[1]] + self.constant)


def widened(matrix: csr_array, width: int) -> csr_array:
    """The same rows over more columns."""
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


@dataclass(frozen=True)
class Phases:
    """Binary columns that say whether ReLU units are active."""

    columns: Indices
    active_when: int


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of choices y = max(entries): one gap column y − entry ≥ 0 for each, at most `most`.

    Choosing an entry fixes its gap to 0. `unit` is the entry's place in the layer's input, −1 for the
    constant 0 of a ReLU; the entry's value is v[whole] − v[gap]. `output` is the place of its maximum.
    """

    choice: Indices
    gap: Indices
    most: Vector
    whole: Indices
    unit: Indices
    output: Indices


@dataclass(eq=False)
class ProgramBuilder:
    """Collects blocks of columns and rows, then makes one Milp of them."""

    _columns: list[tuple[str, Vector, Vector, bool]] = field(default_factory=list)
    _rows: list[tuple[csr_array, Vector, Vector]] = field(default_factory=list)
    width: int = 0
    phases: list[Phases] = field(default_factory=list)
    units: list[Indices] = field(default_factory=list)
    choices: list[Entries] = field(default_factory=list)

    def copied(self) -> ProgramBuilder:
        """What has been collected so far, to go on with in another way."""
        return ProgramBuilder(
            list(self._columns), list(self._rows), self.width,
            list(self.phases), list(self.units), list(self.choices),
        )  # fmt: skip

    def add_columns(self, name: str, lower: Vector, upper: Vector, *, integer: bool = False) -> Expression:
        self._columns.append((name, lower, upper, integer))
        columns = np.arange(self.width, self.width + len(lower))
        self.width += len(lower)
        return Expression.of_columns(columns)

    def add_rows(self, expressions: Expression, lower: Vector | float, upper: Vector | float) -> None:
        """Require lower ≤ expressions ≤ upper."""
        count = len(expressions)
        self._rows.append(
            (
                expressions.matrix,
                np.broadcast_to(lower, count) - expressions.constant,
                np.broadcast_to(upper, count) - expressions.constant,
            )
        )

    def note_phases(self, z: Expression, *, active_when: int) -> None:
        self.phases.append(Phases(z.matrix.indices.astype(np.int64), active_when))

    def note_units(self, x: Expression) -> None:
        self.units.append(x.matrix.indices.astype(np.int64))

    def build(self, objective: Vector, quadratic: Vector | None = None) -> Milp:
        matrices = [widened(matrix, self.width) for matrix, _, _ in self._rows]
        matrix = csr_array(vstack(matrices, format="csr")) if matrices else csr_array((0, self.width))
        empty: list[Vector] = [np.zeros(0)]
        return Milp(
            objective=objective,
            matrix=matrix,
            row_lower=np.concatenate([lower for _, lower, _ in self._rows] or empty),
            row_upper=np.concatenate([upper for _, _, upper in self._rows] or empty),
            lower=np.concatenate([lower for _, lower, _, _ in self._columns] or empty),
            upper=np.concatenate([upper for _, _, upper, _ in self._columns] or empty),
            integer=np.concatenate(
                [np.full(len(lower), whole) for _, lower, _, whole in self._columns] or empty
            )
            > 0,
            quadratic=quadratic,
            column_names=tuple(
                f"{name}_{block}_{place}"
                for block, (name, lower, _, _) in enumerate(self._columns)
                for place in range(len(lower))
            ),
        )


# Solvers take smaller coefficients for zero, and may then call a feasible model infeasible.
SMALLEST_COEFFICIENT = 1e-6


def coefficients(sizes: Vector) -> Vector:
    """Big-Ms for bounds that are at least as large: zero, or no smaller than a solver can tell from zero."""
    return np.where(sizes > 0, np.maximum(sizes, SMALLEST_COEFFICIENT), 0.0)
