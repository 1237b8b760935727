"""One LP solved again and again by HiGHS: each solve begins at the last basis.

What it says is made safe by weak duality, recomputed here in float64. For any row multipliers y,

    c·v ≥ Σ y⁺·row_lower − Σ y⁻·row_upper + Σ_j min over [lower_j, upper_j] of (c − Aᵀy)_j v_j

holds for every feasible v. So HiGHS only proposes y; the number that is given out is a bound whatever y is,
widened by more than the rounding of the sums.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from closecall.errors import SolverError
from closecall.milp import Milp, Vector
from closecall.solvers.highs import TOLERANCES

Indices = NDArray[np.int64]
Basis = Any  # a highspy.HighsBasis
WarmStatus = Literal["optimal", "infeasible", "unbounded", "cutoff", "limit"]

# Far above the rounding of sums of a thousand terms in float64, far below what matters to a bound.
ROUNDING = 1e-11

_DUAL, _PRIMAL = 1, 4
_ROWWISE = 2
_MINIMISE = 1
_STATUSES: dict[highspy.HighsModelStatus, WarmStatus] = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "unbounded",
    highspy.HighsModelStatus.kObjectiveBound: "cutoff",
}


class WarmProgram:
    """The LP relaxation of a MILP, kept ready in HiGHS; integrality and quadratic terms are dropped."""

    def __init__(self, milp: Milp) -> None:
        self.objective = milp.objective.astype(np.float64)
        self.lower, self.upper = milp.lower.astype(np.float64), milp.upper.astype(np.float64)
        self.row_lower = milp.row_lower.astype(np.float64)
        self.row_upper = milp.row_upper.astype(np.float64)
        self._matrix = csr_array(milp.matrix)
        self._transposes: tuple[csr_array, csr_array] | None = None
        self._feasible = False  # whether the basis is known to be primal feasible
        self._highs = _hand_over(self, self._matrix)

    @property
    def columns(self) -> int:
        return len(self.objective)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    def set_objective(self, columns: Indices, costs: Vector) -> None:
        """Minimise costs·v[columns] from now on; all other costs become zero.

        A basis that was primal feasible stays so, and the next solve is by the primal simplex.
        """
        objective = np.zeros(self.columns)
        objective[columns] = costs
        changed = np.flatnonzero(objective != self.objective).astype(np.int32)
        self.objective = objective
        self._highs.changeColsCost(len(changed), changed, objective[changed])

    def set_column_bounds(self, columns: Indices, lower: Vector, upper: Vector) -> None:
        """Change the bounds of some columns; the next solve is by the dual simplex."""
        self.lower[columns], self.upper[columns] = lower, upper
        self._highs.changeColsBounds(
            len(columns), np.asarray(columns, dtype=np.int32), self.lower[columns], self.upper[columns]
        )
        self._feasible = False

    def set_row_bounds(self, row: int, lower: float, upper: float) -> None:
        """Change the bounds of one row; the next solve is by the dual simplex."""
        self.row_lower[row], self.row_upper[row] = lower, upper
        self._highs.changeRowBounds(row, lower, upper)
        self._feasible = False

    def add_row(self, columns: Indices, entries: Vector, lower: float, upper: float) -> None:
        """Require lower ≤ entries·v[columns] ≤ upper too."""
        places = np.asarray(columns, dtype=np.int32)
        row = csr_array((entries, places, np.array([0, len(places)])), shape=(1, self.columns))
        self._matrix = csr_array(vstack([self._matrix, row], format="csr"))
        self._transposes = None
        self.row_lower, self.row_upper = np.append(self.row_lower, lower), np.append(self.row_upper, upper)
        self._highs.addRow(lower, upper, len(places), places, np.asarray(entries, dtype=np.float64))
        self._feasible = False

    def get_basis(self) -> Basis:
        return self._highs.getBasis()

    def set_basis(self, basis: Basis) -> None:
        """Begin the next solve at a basis of this program; rows that were added since become basic."""
        missing = self.rows - len(basis.row_status)
        if missing > 0:
            basis.row_status = [*basis.row_status, *[highspy.HighsBasisStatus.kBasic] * missing]
        self._highs.setBasis(basis)
        self._feasible = False

    def solve(
        self, *, cutoff: float = math.inf, iterations: int | None = None, seconds: float = math.inf
    ) -> tuple[WarmStatus, float, Vector | None]:
        """Minimise: the status, HiGHS's own objective (unsafe) and the point, None unless it is optimal.

        A `cutoff` stops the dual simplex as soon as the optimum is known to lie above it: status "cutoff".
        After `iterations` simplex steps or `seconds` the status is "limit"; the duals reached are kept.
        """
        highs = self._highs
        highs.setOptionValue("simplex_strategy", _PRIMAL if self._feasible and math.isinf(cutoff) else _DUAL)
        highs.setOptionValue("objective_bound", cutoff)
        highs.setOptionValue("simplex_iteration_limit", 2**31 - 1 if iterations is None else iterations)
        highs.setOptionValue("time_limit", highs.getRunTime() + max(0.0, seconds))
        highs.run()
        status = _STATUSES.get(highs.getModelStatus(), "limit")
        self._feasible = status == "optimal"
        values = np.array(highs.getSolution().col_value) if status == "optimal" else None
        return status, float(highs.getInfo().objective_function_value), values

    def duals(self) -> Vector:
        """The row multipliers that HiGHS reached last; zeros when it has none."""
        multipliers = np.array(self._highs.getSolution().row_dual, dtype=np.float64)
        if len(multipliers) != self.rows or not np.isfinite(multipliers).all():
            return np.zeros(self.rows)
        return multipliers

    def safe_bound(self) -> float:
        """A lower bound on the objective over the whole LP that does not trust HiGHS."""
        return self.weak_duality(self.duals(), self.objective)

    def farkas_proves_infeasible(self) -> bool:
        """Whether HiGHS's dual ray proves that no point is feasible: then 0·v ≥ something positive."""
        _, exists, ray = self._highs.getDualRay()
        if not exists or len(ray) != self.rows:
            return False
        multipliers = np.asarray(ray, dtype=np.float64)
        nothing = np.zeros(self.columns)
        return any(self.weak_duality(side * multipliers, nothing) > 0.0 for side in (1.0, -1.0))

    def reduced_costs(self, multipliers: Vector, objective: Vector) -> Vector:
        """objective − Aᵀ·multipliers."""
        return np.asarray(objective - self._columnwise()[0] @ multipliers)

    def weak_duality(self, multipliers: Vector, objective: Vector) -> float:
        """The right side of the formula above, rounded down."""
        y = np.where(np.isfinite(self.row_lower), multipliers, np.minimum(multipliers, 0.0))
        y = np.where(np.isfinite(self.row_upper), y, np.maximum(y, 0.0))
        sides = np.where(y > 0, self.row_lower, np.where(y < 0, self.row_upper, 0.0))
        costs = self.reduced_costs(y, objective)
        ends = np.where(costs > 0, self.lower, np.where(costs < 0, self.upper, 0.0))
        if not np.isfinite(ends).all():
            return -math.inf
        magnitudes = np.abs(objective) + self._columnwise()[1] @ np.abs(y)
        largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
        widest = np.where(np.isfinite(largest), largest, np.abs(ends))
        rounding = ROUNDING * float(np.abs(y) @ np.abs(sides) + magnitudes @ widest)
        return float(y @ sides + costs @ ends) - rounding

    def _columnwise(self) -> tuple[csr_array, csr_array]:
        if self._transposes is None:
            transposed = csr_array(self._matrix.T.tocsr())
            self._transposes = (transposed, abs(transposed))
        return self._transposes


def _hand_over(program: WarmProgram, matrix: csr_array) -> Any:
    highs = highspy.Highs()
    options: dict[str, float | int | str | bool] = {
        "output_flag": False,
        "log_to_console": False,
        "presolve": "off",
        "solver": "simplex",
        "parallel": "off",
        "threads": 1,
        "random_seed": 0,
        **TOLERANCES,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    nothing = np.zeros(0, dtype=np.int32)
    status = highs.passModel(
        program.columns,
        program.rows,
        matrix.nnz,
        0,
        _ROWWISE,
        1,
        _MINIMISE,
        0.0,
        program.objective,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        matrix.indptr[:-1].astype(np.int32) if program.rows else nothing,
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        np.zeros(program.columns, dtype=np.int32),
        nothing,
        np.zeros(0),
        np.zeros(program.columns, dtype=np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError(
            f"HiGHS refused the LP of {program.columns:,} columns and {program.rows:,} rows: "
            "look for coefficients that are not finite, or above 1e15."
        )
    return highs
