"""Gurobi, by the package `gurobipy`; its free licence takes 2,000 columns and 2,000 rows, or 200 columns
with a quadratic objective.

Tolerances: rows, bounds, integrality and reduced costs to 1e-9, the tightest that Gurobi allows.
"""

from __future__ import annotations

import math
from typing import Any

import gurobipy as gp
import numpy as np
from gurobipy import GRB
from scipy.sparse import csr_array, diags_array, vstack

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, objective_at
from closecall.solvers.running import Pulse, mark_interrupted, run_apart

TOLERANCES: dict[str, float] = {
    "FeasibilityTol": 1e-9,
    "IntFeasTol": 1e-9,
    "OptimalityTol": 1e-9,
    "BarConvTol": 1e-10,
}

FREE_LICENCE = 2000
FREE_LICENCE_QUADRATIC = 200
_STATUSES: dict[int, Status] = {
    GRB.OPTIMAL: "optimal",
    GRB.INFEASIBLE: "infeasible",
    GRB.UNBOUNDED: "unbounded",
    GRB.INF_OR_UNBD: "unbounded",
    GRB.INTERRUPTED: "interrupted",
}


def solve(milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None) -> Solution:
    """Minimise by Gurobi."""
    try:
        with gp.Env(empty=True) as environment:
            environment.setParam("OutputFlag", 0)
            environment.start()
            with gp.Model(env=environment) as model:
                return _solve(model, milp, limits, start, on_progress)
    except gp.GurobiError as refusal:
        raise _explain(refusal, milp) from refusal


def _solve(
    model: Any, milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None
) -> Solution:
    pulse = Pulse()
    variables = _hand_over(model, milp)
    if start is not None and milp.integer.any():
        variables.Start = start
    options: dict[str, float | int] = {
        **TOLERANCES,
        "MIPGap": limits.relative_gap,
        "MIPGapAbs": limits.absolute_gap,
        "Threads": limits.threads,
        "Seed": 0,
        # Without it, cuts have lost the optimum of a model with coefficients from 2e-9 to 1e3.
        "NumericFocus": 1,
    }
    for name, value in options.items():
        model.setParam(name, value)

    def listen(model: Any, where: int) -> None:
        if where == GRB.Callback.MIP:
            pulse.lower = _unlimited(model.cbGet(GRB.Callback.MIP_OBJBND))
            pulse.upper = _unlimited(model.cbGet(GRB.Callback.MIP_OBJBST))
            pulse.nodes = int(model.cbGet(GRB.Callback.MIP_NODCNT))

    def work() -> None:
        model.setParam("TimeLimit", max(0.0, limits.seconds - pulse.seconds))
        model.optimize(listen)

    interrupted = run_apart(work, model.terminate, pulse, on_progress)
    return mark_interrupted(_read(model, milp, variables, pulse), interrupted, pulse)


def _hand_over(model: Any, milp: Milp) -> Any:
    kinds = np.where(milp.integer, GRB.INTEGER, GRB.CONTINUOUS)
    variables = model.addMVar(milp.columns, lb=milp.lower, ub=milp.upper, vtype=kinds)
    equal = milp.row_lower == milp.row_upper
    above = ~equal & np.isfinite(milp.row_lower)
    below = ~equal & np.isfinite(milp.row_upper)
    matrix = csr_array(vstack([milp.matrix[rows] for rows in (equal, above, below)]))
    sides = np.concatenate([milp.row_lower[equal], milp.row_lower[above], milp.row_upper[below]])
    senses = np.repeat(["=", ">", "<"], [equal.sum(), above.sum(), below.sum()])
    if len(sides):
        model.addMConstr(matrix, variables, senses, sides)
    quadratic = None if milp.quadratic is None else diags_array(milp.quadratic, format="csr")
    model.setMObjective(quadratic, milp.objective, 0.0, sense=GRB.MINIMIZE)
    return variables


def _read(model: Any, milp: Milp, variables: Any, pulse: Pulse) -> Solution:
    status: Status = _STATUSES.get(model.Status, "limit")
    values: Vector | None = None
    if status in ("optimal", "limit", "interrupted") and model.SolCount > 0:
        values = np.array(variables.X, dtype=np.float64)
    objective = math.inf if values is None else objective_at(milp, values)
    if status == "infeasible":
        bound = math.inf
    elif milp.integer.any():
        bound = _unlimited(model.ObjBound)
    else:
        bound = objective if status == "optimal" else -math.inf
    nodes = int(model.NodeCount) if milp.integer.any() else 0
    return Solution(status, values, objective, bound, nodes, pulse.seconds)


def _explain(refusal: gp.GurobiError, milp: Milp) -> SolverError:
    equal = milp.row_lower == milp.row_upper
    sides = int(np.isfinite(milp.row_lower).sum() + np.isfinite(milp.row_upper).sum() - equal.sum())
    size = f"{milp.columns:,} columns and {sides:,} one-sided rows"
    if refusal.errno == GRB.Error.SIZE_LIMIT_EXCEEDED:
        curved = milp.quadratic is not None and milp.quadratic.any()
        columns = FREE_LICENCE_QUADRATIC if curved else FREE_LICENCE
        return SolverError(
            f"Gurobi's size-limited licence takes {columns:,} columns and {FREE_LICENCE:,} rows"
            f"{' with a quadratic objective' if curved else ''}, and this model has {size}: "
            "install a full Gurobi licence or choose another solver, such as highs."
        )
    if refusal.errno == GRB.Error.NO_LICENSE:
        return SolverError(
            f"Gurobi found no valid licence ({refusal.message}): "
            "install one or choose another solver, such as highs."
        )
    return SolverError(f"Gurobi failed on a model of {size} ({refusal.message}): try another solver.")


def _unlimited(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= GRB.INFINITY else float(value)
