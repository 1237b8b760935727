"""A model made safe to hand over: of ordinary scale, with nothing in it that a solver would drop unseen.

Columns, rows and the objective are multiplied by powers of two where they are far from 1, so that nothing is
rounded. An entry that a solver would take for zero is taken out here instead, and its row is widened by the
most that the entry could add: every point of the given model is one of the model that is solved. Where that
is without limit, the model is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution

NARROWEST = 1e-8  # of a row or a column: ten times the tolerances that solvers are given
FAINT = 1e-4  # of a row's largest entry: below this, solvers lose points to the switch of an integer column
ORDINARY = 6  # doublings that a column, the objective or the largest term of a row may be from 1 and stay
# The same for rows of small terms, or of terms without bounds. A solver's tolerance is generous to small
# ones; to large ones it is so narrow that the rounding of its own steps breaks it: HiGHS lost optima of rows
# of 1,024.
ORDINARY_SMALL_ROW = 10


@dataclass(frozen=True, eq=False)
class Scaled:
    """The model to solve, and the way back: v = columns · v', objective = objective' / cost."""

    milp: Milp
    columns: Vector
    cost: float

    def limits_there(self, limits: Limits) -> Limits:
        """The same limits; the absolute gap may become smaller, never larger."""
        return replace(limits, absolute_gap=limits.absolute_gap * min(1.0, self.cost))

    def point_there(self, values: Vector) -> Vector:
        return np.asarray(values / self.columns)

    def back(self, solution: Solution) -> Solution:
        values = None if solution.values is None else solution.values * self.columns
        objective, bound = solution.objective / self.cost, solution.bound / self.cost
        return replace(solution, values=values, objective=objective, bound=bound)

    def progress_back(self, report: OnProgress | None) -> OnProgress | None:
        if report is None or self.cost == 1.0:
            return report

        def forward(lower: float, upper: float, nodes: int, seconds: float) -> None:
            report(lower / self.cost, upper / self.cost, nodes, seconds)

        return forward


def scaled(milp: Milp, smallest: float) -> Scaled:
    """An equal or wider model without entries below `smallest`, relative to a row and its columns."""
    columns = np.where(milp.integer, 1.0, unit_of(largest_of(milp)))
    matrix = without_idle_columns(milp)
    matrix.data = matrix.data * columns[matrix.indices]
    terms = largest_in_rows(terms_of(matrix, largest_of(milp) / columns))
    unbounded = abs(matrix) @ np.where(np.isfinite(largest_of(milp)), 0.0, 1.0) > 0
    large = (terms > 1) & ~unbounded
    rows = 1.0 / np.where(large, unit_of(terms), unit_of(terms, ORDINARY_SMALL_ROW))
    matrix.data = matrix.data * np.repeat(rows, np.diff(matrix.indptr))
    quadratic = np.zeros(milp.columns) if milp.quadratic is None else milp.quadratic * columns**2
    objective = milp.objective * columns
    cost = 1.0
    if np.isfinite(largest_of(milp)[(objective != 0) | (quadratic != 0)]).all():
        largest = max(np.abs(objective).max(initial=0.0), quadratic.max(initial=0.0))
        cost = float(1.0 / unit_of(np.array([largest]))[0])
    changed = replace(
        milp,
        objective=objective * cost,
        matrix=matrix,
        row_lower=milp.row_lower * rows,
        row_upper=milp.row_upper * rows,
        lower=milp.lower / columns,
        upper=milp.upper / columns,
        quadratic=None if milp.quadratic is None else quadratic * cost,
    )
    return Scaled(with_wide_ranges(without_small_entries(changed, smallest)), columns, cost)


def without_idle_columns(milp: Milp) -> csr_array:
    """The matrix without the entries of columns that are fixed to 0, whose size would speak for their row."""
    matrix = milp.matrix.copy()
    idle = (milp.lower == 0) & (milp.upper == 0)
    if idle.any():
        matrix.data[idle[matrix.indices]] = 0.0
        matrix.eliminate_zeros()
    return matrix


def unit_of(sizes: Vector, ordinary: int = ORDINARY) -> Vector:
    """The power of two nearest to each size; 1 for sizes near 1, for 0 and for infinity."""
    usable = np.isfinite(sizes) & (sizes > 0)
    doublings = np.round(np.log2(np.where(usable, sizes, 1.0)))
    return np.asarray(np.exp2(np.where(np.abs(doublings) > ordinary, doublings, 0.0)))


def largest_of(milp: Milp) -> Vector:
    return np.asarray(np.maximum(np.abs(milp.lower), np.abs(milp.upper)))


def widest_row(milp: Milp) -> float:
    """The most that any term adds to its row, in units of the row's largest entry on a continuous column.

    Where this is W, double precision rounds the row by some 10⁻¹⁵·W, whatever a solver's tolerance is.
    """
    matrix = without_idle_columns(milp)
    continuous = matrix.copy()
    continuous.data = np.where(milp.integer[matrix.indices], 0.0, matrix.data)
    units = largest_in_rows(continuous)
    terms = largest_in_rows(terms_of(matrix, largest_of(milp)))
    return float((terms / np.where(units > 0, units, np.inf)).max(initial=0.0))


def terms_of(matrix: csr_array, largest: Vector) -> csr_array:
    """The most that each entry adds to its row, or the entry itself on a column without bounds.

    A row is rounded by a share of these, and what a solver calls feasible should be a share of them, too.
    """
    sizes = np.where(np.isfinite(largest), largest, 1.0)
    data = np.abs(matrix.data) * np.maximum(sizes, 1.0)[matrix.indices]
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def largest_in_rows(matrix: csr_array) -> Vector:
    largest = np.zeros(matrix.shape[0])
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.maximum.at(largest, row, np.abs(matrix.data))
    return largest


def with_wide_ranges(milp: Milp) -> Milp:
    """Widen rows and columns with a range that is smaller than a solver can tell from none.

    Their presolve takes a range below its tolerance for an equation at one place and not at another, and
    loses the optimum: HiGHS, SCIP and Gurobi have all done so.
    """
    row_lower, row_upper = widened_range(milp.row_lower, milp.row_upper)
    lower, upper = widened_range(milp.lower, milp.upper)
    lower = np.where(milp.integer, milp.lower, lower)
    upper = np.where(milp.integer, milp.upper, upper)
    return replace(milp, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)


def widened_range(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    with np.errstate(invalid="ignore"):
        width = upper - lower
    narrow = (width > 0) & (width < NARROWEST)
    more = np.where(narrow, (NARROWEST - np.where(narrow, width, 0.0)) / 2, 0.0)
    return lower - more, upper + more


def without_small_entries(milp: Milp, smallest: float) -> Milp:
    """Take out what a solver would drop, and widen its rows by as much as it could have added."""
    entries = np.abs(milp.matrix.data)
    rows = np.repeat(np.arange(milp.rows), np.diff(milp.matrix.indptr))
    switches = milp.integer[milp.matrix.indices] & (entries < FAINT * largest_in_rows(milp.matrix)[rows])
    small = ((entries < smallest) | switches) & (entries > 0)
    if not small.any():
        return milp
    row = rows[small]
    most = entries[small] * largest_of(milp)[milp.matrix.indices[small]]
    if not np.isfinite(most).all():
        raise SolverError(
            "the model has coefficients so small that the solver would drop them, on columns without bounds: "
            "bound the columns or choose another method."
        )
    widths = np.bincount(row, weights=most, minlength=milp.rows) * (1 + 1e-12)
    matrix = milp.matrix.copy()
    matrix.data[small] = 0.0
    matrix.eliminate_zeros()
    return replace(milp, matrix=matrix, row_lower=milp.row_lower - widths, row_upper=milp.row_upper + widths)
