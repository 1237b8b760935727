"""CPLEX, by the package `cplex`; its Community Edition takes 1,000 columns and 1,000 rows.

Tolerances: rows, bounds and reduced costs to 1e-9 (the tightest that CPLEX allows), integrality to 1e-9.
"""

from __future__ import annotations

import math
from typing import Any

import cplex
import numpy as np
from cplex.callbacks import Context
from cplex.exceptions import CplexError, CplexSolverError, error_codes

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, objective_at
from closecall.solvers.running import Pulse, mark_interrupted, run_apart

TOLERANCES: dict[str, float] = {
    "mip.tolerances.integrality": 1e-9,
    "simplex.tolerances.feasibility": 1e-9,
    "simplex.tolerances.optimality": 1e-9,
    "barrier.convergetol": 1e-10,
}

COMMUNITY_EDITION = 1000
_DETERMINISTIC = 1
_INFINITY = 1e20
_STATUSES: dict[str, Status] = {
    "optimal": "optimal",
    "optimal_tolerance": "optimal",
    "optimal_infeasible": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "infeasible_or_unbounded": "unbounded",
    "relaxation_unbounded": "unbounded",
    "optimal_face_unbounded": "optimal",
    "abort_user": "interrupted",
    "abort_feasible": "interrupted",
    "abort_infeasible": "interrupted",
}


def solve(milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None) -> Solution:
    """Minimise by CPLEX."""
    pulse = Pulse()
    try:
        with cplex.Cplex() as model, cplex.Aborter() as aborter:
            _silence(model)
            _hand_over(model, milp)
            _set_options(model, limits)
            if milp.integer.any():
                model.set_callback(_Listener(pulse), Context.id.global_progress)
                if start is not None:
                    point = cplex.SparsePair(range(milp.columns), start.tolist())
                    model.MIP_starts.add(point, model.MIP_starts.effort_level.solve_fixed)
            model.use_aborter(aborter)

            def work() -> None:
                model.parameters.timelimit.set(min(1e75, max(0.0, limits.seconds - pulse.seconds)))
                model.solve()

            interrupted = run_apart(work, aborter.abort, pulse, on_progress)
            model.remove_aborter()
            return mark_interrupted(_read(model, milp, pulse), interrupted, pulse)
    except CplexError as refusal:
        raise _explain(refusal, milp) from refusal


class _Listener:
    """Writes CPLEX's bounds into a pulse."""

    def __init__(self, pulse: Pulse) -> None:
        self.pulse = pulse

    def invoke(self, context: Any) -> None:
        self.pulse.lower = _unlimited(context.get_double_info(Context.info.best_bound))
        self.pulse.upper = _unlimited(context.get_double_info(Context.info.best_solution))
        self.pulse.nodes = context.get_long_info(Context.info.node_count)


def _silence(model: Any) -> None:
    model.set_log_stream(None)
    model.set_results_stream(None)
    model.set_warning_stream(None)
    model.set_error_stream(None)


def _set_options(model: Any, limits: Limits) -> None:
    options: dict[str, float | int] = {
        **TOLERANCES,
        "mip.tolerances.mipgap": limits.relative_gap,
        "mip.tolerances.absmipgap": limits.absolute_gap,
        "threads": limits.threads,
        "parallel": _DETERMINISTIC,
        "randomseed": 0,
    }
    for name, value in options.items():
        parameter: Any = model.parameters
        for part in name.split("."):
            parameter = getattr(parameter, part)
        parameter.set(value)


def _hand_over(model: Any, milp: Milp) -> None:
    bounds = {
        "lb": np.clip(milp.lower, -_INFINITY, _INFINITY).tolist(),
        "ub": np.clip(milp.upper, -_INFINITY, _INFINITY).tolist(),
    }
    if milp.integer.any():  # CPLEX takes a model with types for a MIP, even if all are continuous
        bounds["types"] = np.where(milp.integer, "I", "C").tolist()
    model.variables.add(obj=milp.objective.tolist(), **bounds)
    bounded = np.isfinite(milp.row_lower) | np.isfinite(milp.row_upper)
    matrix = milp.matrix[bounded].tocoo()
    lower, upper = milp.row_lower[bounded], milp.row_upper[bounded]
    equal = lower == upper
    senses = np.select([equal, np.isneginf(lower), np.isposinf(upper)], ["E", "L", "G"], "R")
    model.linear_constraints.add(
        rhs=np.where(np.isneginf(lower), upper, lower).tolist(),
        senses="".join(senses.tolist()),
        range_values=np.where(senses == "R", upper - lower, 0.0).tolist(),
    )
    if matrix.nnz:
        entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
        model.linear_constraints.set_coefficients(entries)
    if milp.quadratic is not None and milp.quadratic.any():
        model.objective.set_quadratic((2.0 * milp.quadratic).tolist())  # CPLEX minimises ½ vᵀQv


def _read(model: Any, milp: Milp, pulse: Pulse) -> Solution:
    answer = model.solution
    name = answer.status[answer.get_status()].removeprefix("MIP_")
    status: Status = _STATUSES.get(name, "limit")
    values: Vector | None = None
    if status in ("optimal", "limit", "interrupted") and answer.is_primal_feasible():
        values = np.array(answer.get_values(), dtype=np.float64)
    objective = math.inf if values is None else objective_at(milp, values)
    if status == "infeasible":
        bound = math.inf
    elif not milp.integer.any():
        bound = objective if status == "optimal" else -math.inf
    elif status == "unbounded":
        bound = -math.inf
    else:
        bound = _unlimited(answer.MIP.get_best_objective())
    nodes = int(answer.progress.get_num_nodes_processed()) if milp.integer.any() else 0
    return Solution(status, values, objective, bound, nodes, pulse.seconds)


def _explain(refusal: CplexError, milp: Milp) -> SolverError:
    size = f"{milp.columns:,} columns and {milp.rows:,} rows"
    restricted = isinstance(refusal, CplexSolverError) and refusal.args[2:] == (
        error_codes.CPXERR_RESTRICTED_VERSION,
    )
    if restricted:
        return SolverError(
            f"CPLEX's Community Edition takes {COMMUNITY_EDITION:,} columns and {COMMUNITY_EDITION:,} rows, "
            f"and this model has {size}: install a full CPLEX or choose another solver, such as highs."
        )
    return SolverError(f"CPLEX failed on a model of {size} ({refusal}): try another solver.")


def _unlimited(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= _INFINITY else float(value)
