"""HiGHS: the solver that is always installed.

Tolerances: rows, bounds and integrality to 1e-9, reduced costs to 1e-9; matrix entries below 1e-12 are
dropped by HiGHS. The bound is HiGHS's dual bound for a model with integer columns, the optimum for an LP.
"""

from __future__ import annotations

import math
from typing import Any

import highspy
import numpy as np

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, objective_at
from closecall.solvers.outer_approximation import solve_quadratic
from closecall.solvers.running import Pulse, mark_interrupted, run_apart

TOLERANCES: dict[str, float] = {
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "small_matrix_value": 1e-12,
}

# Two rules of HiGHS 1.15's presolve, which put one column for another where an equation says so, lose optima
# of well-scaled models with a few dozen columns.
_DOUBLETON_EQUATIONS, _AGGREGATOR = 1 << 9, 1 << 12
_ROWWISE = 2
_TRIANGULAR = 1
_MINIMISE = 1
_STATUSES: dict[highspy.HighsModelStatus, Status] = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "unbounded",
}
_FAILURES = (
    highspy.HighsModelStatus.kLoadError,
    highspy.HighsModelStatus.kModelError,
    highspy.HighsModelStatus.kPresolveError,
    highspy.HighsModelStatus.kSolveError,
    highspy.HighsModelStatus.kPostsolveError,
)


def solve(milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None) -> Solution:
    """Minimise by HiGHS; a quadratic objective goes through outer approximation."""
    if milp.quadratic is not None and milp.quadratic.any():
        return solve_quadratic(milp, limits, start, on_progress, solve_natively)
    return solve_natively(milp, limits, start, on_progress)


def solve_natively(
    milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None
) -> Solution:
    """Minimise an LP, a MILP or a QP without integer columns by HiGHS itself."""
    pulse = Pulse()
    highs = _hand_over(milp, limits)
    if start is not None and milp.integer.any():
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        highs.setSolution(solution)
    stopping = _listen(highs, pulse)

    def work() -> None:
        highs.setOptionValue("time_limit", max(0.0, limits.seconds - pulse.seconds))
        highs.run()
        highspy.Highs.resetGlobalScheduler(False)  # the scheduler belongs to this thread, which ends here

    interrupted = run_apart(work, lambda: stopping.append(True), pulse, on_progress)
    return mark_interrupted(_read(highs, milp, pulse), interrupted, pulse)


def _hand_over(milp: Milp, limits: Limits) -> Any:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("log_to_console", False)
    options: dict[str, float | int] = {
        **TOLERANCES,
        "mip_rel_gap": limits.relative_gap,
        "mip_abs_gap": limits.absolute_gap,
        "threads": limits.threads,
        "random_seed": 0,
        "presolve_rule_off": _DOUBLETON_EQUATIONS | _AGGREGATOR,
    }
    for name, value in options.items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS does not accept {name} = {value!r}; choose another limit.")
    if _pass_arrays(highs, milp) == highspy.HighsStatus.kError:
        raise SolverError(
            f"HiGHS refused the model of {milp.columns:,} columns and {milp.rows:,} rows: "
            "look for coefficients that are not finite, or above 1e15."
        )
    return highs


def _pass_arrays(highs: Any, milp: Milp) -> Any:
    matrix = milp.matrix
    quadratic = np.zeros(0) if milp.quadratic is None else milp.quadratic
    squares = np.flatnonzero(quadratic).astype(np.int32)
    starts = np.zeros(milp.columns, dtype=np.int32)
    if len(squares):
        starts = np.searchsorted(squares, np.arange(milp.columns)).astype(np.int32)
    return highs.passModel(
        milp.columns,
        milp.rows,
        matrix.nnz,
        len(squares),
        _ROWWISE,
        _TRIANGULAR,
        _MINIMISE,
        0.0,
        milp.objective.astype(np.float64),
        milp.lower.astype(np.float64),
        milp.upper.astype(np.float64),
        milp.row_lower.astype(np.float64),
        milp.row_upper.astype(np.float64),
        matrix.indptr[:-1].astype(np.int32) if milp.rows else np.zeros(0, dtype=np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        starts,
        squares,
        2.0 * quadratic[squares],  # HiGHS minimises ½ vᵀQv
        milp.integer.astype(np.int32),
    )


def _listen(highs: Any, pulse: Pulse) -> list[bool]:
    """Let HiGHS look up, whenever it checks its own limits, whether it must stop."""
    stopping: list[bool] = []

    def look_up(event: Any) -> None:
        if stopping:
            event.interrupt()

    def look_up_in_tree(event: Any) -> None:
        pulse.lower = event.data_out.mip_dual_bound
        pulse.upper = event.data_out.mip_primal_bound
        pulse.nodes = event.data_out.mip_node_count
        look_up(event)

    highs.cbMipInterrupt += look_up_in_tree
    highs.cbSimplexInterrupt += look_up
    highs.cbIpmInterrupt += look_up
    return stopping


def _read(highs: Any, milp: Milp, pulse: Pulse) -> Solution:
    model_status = highs.getModelStatus()
    if model_status in _FAILURES:
        raise SolverError(
            f"HiGHS failed with {highs.modelStatusToString(model_status)!r} on a model of {milp.columns:,} "
            f"columns and {milp.rows:,} rows: try another solver."
        )
    status: Status = _STATUSES.get(model_status, "limit")
    info = highs.getInfo()
    values: Vector | None = None
    if (
        status != "unbounded"
        and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    ):
        values = np.array(highs.getSolution().col_value, dtype=np.float64)
    objective = math.inf if values is None else objective_at(milp, values)
    if status == "infeasible":
        bound = math.inf
    elif milp.integer.any():
        bound = float(info.mip_dual_bound)
    else:
        bound = objective if status == "optimal" else -math.inf
    nodes = max(0, int(info.mip_node_count)) if milp.integer.any() else 0
    return Solution(status, values, objective, bound, nodes, pulse.seconds)
