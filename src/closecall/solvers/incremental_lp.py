"""One LP solved again and again by HiGHS: each solve begins at the last basis.

What it says is made safe by weak duality, recomputed here in float64. For any row multipliers y,

    c·v ≥ Σ y⁺·row_lower − Σ y⁻·row_upper + Σ_j min over [lower_j, upper_j] of (c − Aᵀy)_j v_j

holds for every feasible v. So HiGHS only proposes y; the number that is given out is a bound whatever y is,
widened by more than the rounding of the sums.

Columns may be `lazy`: left at their lower bound and out of HiGHS until their reduced cost says that they
would lower the objective. Bounds always count all columns, so a lazy one that is missing can weaken a bound,
never falsify it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import highspy
import numpy as np
from scipy.sparse import csr_array, vstack

from closecall.arrays import Indices, Vector
from closecall.errors import SolverError
from closecall.milp import Milp
from closecall.settings import DEFAULT
from closecall.solvers.highs import TOLERANCES
from closecall.solvers.scaling import largest_in_rows, unit_of

WarmStatus = Literal["optimal", "infeasible", "unbounded", "cutoff", "limit"]

# Far above the rounding of sums of a thousand terms in float64, far below what matters to a bound.
ROUNDING = 1e-11

PRICED = 1e-9  # the reduced cost below which a lazy column is asked for

EXTRAORDINARY = 20  # doublings from 1 at which a row is scaled

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


@dataclass
class Basis:
    """A basis of HiGHS, with the sizes it was made for: reading them from HiGHS copies whole lists."""

    held: Any
    rows: int
    columns: int


class WarmProgram:
    """The LP relaxation of a MILP, kept ready in HiGHS; integrality and quadratic terms are dropped."""

    def __init__(self, milp: Milp, lazy: Indices | None = None) -> None:
        self.objective = milp.objective.astype(np.float64)
        self.lower, self.upper = milp.lower.astype(np.float64), milp.upper.astype(np.float64)
        self.row_lower = milp.row_lower.astype(np.float64)
        self.row_upper = milp.row_upper.astype(np.float64)
        self._matrix = csr_array(milp.matrix)
        self._scale_rows()
        self._transposes: tuple[csr_array, csr_array] | None = None
        self._strategy = _DUAL
        self._bound: float | None = None  # of the last run, once it was asked for
        present = np.ones(self.columns, dtype=bool)
        if lazy is not None and len(lazy) > DEFAULT.solvers.first_lazy_columns:
            weight = abs(self._matrix)[:, lazy].max(axis=0).toarray().ravel()
            present[lazy[np.argsort(-weight)[DEFAULT.solvers.first_lazy_columns :]]] = False
        self._listed = np.flatnonzero(present)  # the columns in HiGHS, in its order
        self._place = np.full(self.columns, -1)
        self._place[self._listed] = np.arange(len(self._listed))
        self._highs = _hand_over(self, self._matrix, self._listed)

    @property
    def columns(self) -> int:
        return len(self.objective)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    def _scale_rows(self) -> None:
        """Multiply rows of extraordinary size by powers of two: HiGHS refuses entries above 1e15."""
        factors = 1.0 / unit_of(largest_in_rows(self._matrix), ordinary=EXTRAORDINARY)
        if (factors != 1.0).any():
            repeats = np.diff(self._matrix.indptr)
            self._matrix = self._matrix.copy()
            self._matrix.data = self._matrix.data * np.repeat(factors, repeats)
            self.row_lower, self.row_upper = self.row_lower * factors, self.row_upper * factors

    def set_objective(self, columns: Indices, costs: Vector) -> None:
        """Minimise costs·v[columns] from now on; all other costs become zero.

        The basis stays primal feasible, so the next solve is by the primal simplex.
        """
        self._bound = None
        objective = np.zeros(self.columns)
        objective[columns] = costs
        changed = np.flatnonzero(objective != self.objective)
        self.objective = objective
        changed = changed[self._place[changed] >= 0]
        places = self._place[changed].astype(np.int32)
        self._highs.changeColsCost(len(places), places, objective[changed])
        self._strategy = _PRIMAL

    def set_column_bounds(self, columns: Indices, lower: Vector, upper: Vector) -> None:
        """Change the bounds of some columns; the next solve is by the dual simplex."""
        self._bound = None
        changed = (self.lower[columns] != lower) | (self.upper[columns] != upper)
        columns = columns[changed]
        self.lower[columns], self.upper[columns] = lower[changed], upper[changed]
        places = self._place[columns]
        if (places < 0).any():
            columns, places = columns[places >= 0], places[places >= 0]
        self._highs.changeColsBounds(
            len(columns), places.astype(np.int32), self.lower[columns], self.upper[columns]
        )
        self._strategy = _DUAL

    def add_row(self, columns: Indices, entries: Vector, lower: float, upper: float) -> None:
        """Require lower ≤ entries·v[columns] ≤ upper too."""
        row = csr_array((entries, columns, np.array([0, len(columns)])), shape=(1, self.columns))
        self.add_rows(row, np.array([lower]), np.array([upper]))

    def add_rows(self, rows: csr_array, lower: Vector, upper: Vector) -> None:
        """Require lower ≤ rows·v ≤ upper too."""
        self._bound = None
        self._matrix = csr_array(vstack([self._matrix, rows], format="csr"))
        self._transposes = None
        self.row_lower, self.row_upper = (
            np.concatenate([self.row_lower, lower]),
            np.concatenate([self.row_upper, upper]),
        )
        here = rows if len(self._listed) == self.columns else csr_array(rows[:, self._listed])
        self._highs.addRows(
            rows.shape[0],
            lower.astype(np.float64),
            upper.astype(np.float64),
            here.nnz,
            here.indptr[:-1].astype(np.int32),
            here.indices.astype(np.int32),
            here.data.astype(np.float64),
        )

    def get_basis(self) -> Basis:
        return Basis(self._highs.getBasis(), self.rows, len(self._listed))

    def set_basis(self, basis: Basis) -> None:
        """Begin the next solve at a basis of this program.

        Rows that were added since become basic, columns stay at their lower bound.
        """
        more_rows, more_columns = self.rows - basis.rows, len(self._listed) - basis.columns
        if more_rows or more_columns:
            held = basis.held
            held.row_status = [*held.row_status, *[highspy.HighsBasisStatus.kBasic] * more_rows]
            held.col_status = [*held.col_status, *[highspy.HighsBasisStatus.kLower] * more_columns]
            basis.rows, basis.columns = self.rows, len(self._listed)
        self._highs.setBasis(basis.held)
        self._strategy = _DUAL

    def solve(
        self, *, cutoff: float = math.inf, iterations: int | None = None, seconds: float = math.inf
    ) -> tuple[WarmStatus, float, Vector | None]:
        """Minimise: the status, HiGHS's own objective (unsafe) and the point, None unless it is optimal.

        A `cutoff` stops the dual simplex as soon as the optimum is known to lie above it: status "cutoff".
        After `iterations` simplex steps or `seconds` the status is "limit"; the duals reached are kept.
        """
        until = time.perf_counter() + seconds
        while True:
            status, value = self._run(cutoff, iterations, until - time.perf_counter())
            if iterations is not None or status == "limit" or not self._list_more(status, cutoff):
                break
        if status != "optimal":
            return status, value, None
        values = self.lower.copy()
        values[self._listed] = self._highs.getSolution().col_value
        return status, value, values

    def _run(self, cutoff: float, iterations: int | None, seconds: float) -> tuple[WarmStatus, float]:
        highs = self._highs
        highs.setOptionValue("simplex_strategy", self._strategy if math.isinf(cutoff) else _DUAL)
        highs.setOptionValue("objective_bound", cutoff)
        highs.setOptionValue("simplex_iteration_limit", 2**31 - 1 if iterations is None else iterations)
        highs.setOptionValue("time_limit", highs.getRunTime() + max(0.0, seconds))
        highs.run()
        self._bound = None
        status = _STATUSES.get(highs.getModelStatus(), "limit")
        return status, float(highs.getInfo().objective_function_value)

    def _list_more(self, status: WarmStatus, cutoff: float) -> bool:
        """Hand HiGHS the lazy columns that could change its answer; False when it holds for all columns."""
        if len(self._listed) == self.columns:
            return False
        if status == "infeasible":
            ray = self.farkas()
            if ray is None:
                return self._append(np.flatnonzero(self._place < 0))
            if self.weak_duality(ray, np.zeros(self.columns)) > 0.0:
                return False
            costs = self.reduced_costs(ray, np.zeros(self.columns))
        else:
            if status == "cutoff" and self.safe_bound() >= cutoff:
                return False
            costs = self.reduced_costs(self.duals(), self.objective)
        wanting = np.flatnonzero((self._place < 0) & (costs < -PRICED) & (self.lower < self.upper))
        return self._append(wanting[np.argsort(costs[wanting])[: DEFAULT.solvers.more_lazy_columns]])

    def _append(self, columns: Indices) -> bool:
        if not len(columns):
            return False
        block = self._columnwise()[0][columns]
        self._highs.addCols(
            len(columns),
            self.objective[columns],
            self.lower[columns],
            self.upper[columns],
            block.nnz,
            block.indptr[:-1].astype(np.int32),
            block.indices.astype(np.int32),
            block.data,
        )
        self._place[columns] = np.arange(len(self._listed), len(self._listed) + len(columns))
        self._listed = np.concatenate([self._listed, columns])
        self._strategy = _PRIMAL
        return True

    def farkas(self) -> Vector | None:
        """HiGHS's dual ray, turned so that it speaks for infeasibility."""
        _, exists, ray = self._highs.getDualRay()
        if not exists or len(ray) != self.rows:
            return None
        multipliers = np.asarray(ray, dtype=np.float64)
        nothing = np.zeros(self.columns)
        return max((multipliers, -multipliers), key=lambda y: self.weak_duality(y, nothing, listed_only=True))

    def duals(self) -> Vector:
        """The row multipliers that HiGHS reached last; zeros when it has none."""
        multipliers = np.array(self._highs.getSolution().row_dual, dtype=np.float64)
        if len(multipliers) != self.rows or not np.isfinite(multipliers).all():
            return np.zeros(self.rows)
        return multipliers

    def safe_bound(self) -> float:
        """A lower bound on the objective over the whole LP that does not trust HiGHS."""
        if self._bound is None:
            self._bound = self.weak_duality(self.duals(), self.objective)
        return self._bound

    def farkas_proves_infeasible(self) -> bool:
        """Whether HiGHS's dual ray proves that no point is feasible: then 0·v ≥ something positive."""
        ray = self.farkas()
        return ray is not None and self.weak_duality(ray, np.zeros(self.columns)) > 0.0

    def reduced_costs(self, multipliers: Vector, objective: Vector) -> Vector:
        """objective − Aᵀ·multipliers."""
        return np.asarray(objective - self._columnwise()[0] @ multipliers)

    def weak_duality(self, multipliers: Vector, objective: Vector, *, listed_only: bool = False) -> float:
        """The right side of the formula above, rounded down; a bound only if no column is left out of it."""
        y = np.where(np.isfinite(self.row_lower), multipliers, np.minimum(multipliers, 0.0))
        y = np.where(np.isfinite(self.row_upper), y, np.maximum(y, 0.0))
        sides = np.where(y > 0, self.row_lower, np.where(y < 0, self.row_upper, 0.0))
        costs = self.reduced_costs(y, objective)
        if listed_only:
            costs = np.where(self._place >= 0, costs, 0.0)
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


def _hand_over(program: WarmProgram, full: csr_array, listed: Indices) -> Any:
    matrix = full if len(listed) == program.columns else csr_array(full[:, listed])
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
        len(listed),
        program.rows,
        matrix.nnz,
        0,
        _ROWWISE,
        1,
        _MINIMISE,
        0.0,
        program.objective[listed],
        program.lower[listed],
        program.upper[listed],
        program.row_lower,
        program.row_upper,
        matrix.indptr[:-1].astype(np.int32) if program.rows else nothing,
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        np.zeros(len(listed), dtype=np.int32),
        nothing,
        np.zeros(0),
        np.zeros(len(listed), dtype=np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError(
            f"HiGHS refused the LP of {program.columns:,} columns and {program.rows:,} rows: "
            "look for coefficients that are not finite, or above 1e15."
        )
    return highs
