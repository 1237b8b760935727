"""SCIP, by the package `pyscipopt`.

Tolerances: rows, bounds, integrality and reduced costs to 1e-9, which is SCIP's own epsilon. A quadratic cost
becomes an epigraph column with t ≥ c·v + q·v². SCIP searches in one thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pyscipopt import SCIP_EVENTTYPE, SCIP_STAGE, Eventhdlr, Model
from pyscipopt.scip import Expr, ExprCons, Term

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, objective_at
from closecall.solvers.running import Pulse, mark_interrupted, run_apart
from closecall.solvers.silence import without_lines

TOLERANCES: dict[str, float] = {
    "numerics/feastol": 1e-9,
    "numerics/dualfeastol": 1e-9,
    # What SCIP takes for zero must lie well below what it takes for feasible: with both at 1e-9 its presolve
    # and its cuts have lost the optimum.
    "numerics/epsilon": 1e-12,
    "numerics/sumepsilon": 1e-10,
}

INFINITY = 1e20
# What SoPlex says whenever SCIP asks it for a tolerance that only builds with GMP offer.
SOPLEX_REMARK = b"Cannot set "
_STATUSES: dict[str, Status] = {
    "optimal": "optimal",
    "gaplimit": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "inforunbd": "unbounded",
}
_INTERRUPTIBLE = (SCIP_STAGE.PRESOLVING, SCIP_STAGE.SOLVING)


def solve(milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None) -> Solution:
    """Minimise by SCIP."""
    pulse = Pulse()
    model = Model()
    _set_options(model, limits)
    variables = _hand_over(model, milp)
    if start is not None:
        _hand_over_start(model, milp, variables, start)
    listener = _Listener(pulse)
    model.includeEventhdlr(listener, "closecall", "reports bounds")

    def work() -> None:
        model.setParam("limits/time", min(INFINITY, max(0.0, limits.seconds - pulse.seconds)))
        model.optimizeNogil()

    def stop() -> None:
        if model.getStage() in _INTERRUPTIBLE:
            model.interruptSolve()

    try:
        with without_lines(SOPLEX_REMARK):
            interrupted = run_apart(work, stop, pulse, on_progress)
        return mark_interrupted(_read(model, milp, variables, pulse), interrupted, pulse)
    except (OSError, MemoryError, Warning) as failure:
        raise SolverError(
            f"SCIP failed on a model of {milp.columns:,} columns and {milp.rows:,} rows ({failure}): "
            "try another solver."
        ) from failure


class _Listener(Eventhdlr):  # type: ignore[misc]
    """Writes SCIP's bounds into a pulse after each node and each better point."""

    events = (SCIP_EVENTTYPE.NODESOLVED, SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.LPSOLVED)

    def __init__(self, pulse: Pulse) -> None:
        self.pulse = pulse

    def eventinit(self) -> None:
        for event in self.events:
            self.model.catchEvent(event, self)

    def eventexec(self, event: Any) -> None:
        self.pulse.lower = _unlimited(self.model.getDualbound())
        self.pulse.upper = _unlimited(self.model.getPrimalbound())
        self.pulse.nodes = self.model.getNTotalNodes()


def _set_options(model: Any, limits: Limits) -> None:
    model.hideOutput()
    options: dict[str, bool | int | float] = {
        **TOLERANCES,
        "limits/gap": limits.relative_gap,
        "limits/absgap": limits.absolute_gap,
        "lp/threads": limits.threads,
        "randomization/randomseedshift": 0,
        "misc/catchctrlc": False,
    }
    for name, value in options.items():
        model.setParam(name, value)


def _hand_over(model: Any, milp: Milp) -> list[Any]:
    lower = np.clip(milp.lower, -INFINITY, INFINITY).tolist()
    upper = np.clip(milp.upper, -INFINITY, INFINITY).tolist()
    quadratic = np.zeros(milp.columns) if milp.quadratic is None else milp.quadratic
    costs = np.where(quadratic > 0, 0.0, milp.objective).tolist()
    kinds = np.where(milp.integer, "I", "C").tolist()
    variables = [model.addVar(f"v{j}", kinds[j], lower[j], upper[j], costs[j]) for j in range(milp.columns)]
    terms = [Term(variable) for variable in variables]
    row_lower = np.clip(milp.row_lower, -INFINITY, INFINITY).tolist()
    row_upper = np.clip(milp.row_upper, -INFINITY, INFINITY).tolist()
    starts, indices = milp.matrix.indptr.tolist(), milp.matrix.indices.tolist()
    entries = milp.matrix.data.tolist()
    for i in range(milp.rows):
        row = slice(starts[i], starts[i + 1])
        expression = Expr({terms[j]: entry for j, entry in zip(indices[row], entries[row], strict=True)})
        model.addCons(ExprCons(expression, lhs=row_lower[i], rhs=row_upper[i]), name=f"r{i}")
    return variables + [
        _add_epigraph(model, variables[j], float(milp.objective[j]), float(quadratic[j]))
        for j in np.flatnonzero(quadratic).tolist()
    ]


def _add_epigraph(model: Any, variable: Any, linear: float, square: float) -> Any:
    """A column t ≥ c·v + q·v² of cost 1; the parabola's minimum bounds it, so that no LP is unbounded."""
    epigraph = model.addVar(f"{variable.name}_cost", "C", -(linear**2) / (4 * square), INFINITY, 1.0)
    model.addCons(square * variable * variable + linear * variable - epigraph <= 0.0)
    return epigraph


def _hand_over_start(model: Any, milp: Milp, variables: list[Any], start: Vector) -> None:
    values = start.tolist()
    if milp.quadratic is not None:
        curved = np.flatnonzero(milp.quadratic)
        values += (milp.objective * start + milp.quadratic * start**2)[curved].tolist()
    point = model.createSol()
    for variable, value in zip(variables, values, strict=True):
        model.setSolVal(point, variable, value)
    model.addSol(point)


def _read(model: Any, milp: Milp, variables: list[Any], pulse: Pulse) -> Solution:
    status: Status = _STATUSES.get(model.getStatus(), "limit")
    values: Vector | None = None
    if status in ("optimal", "limit", "interrupted") and model.getNSols() > 0:
        best = model.getBestSol()
        values = np.array([best[variable] for variable in variables[: milp.columns]])
    objective = math.inf if values is None else objective_at(milp, values)
    bound = math.inf if status == "infeasible" else _unlimited(model.getDualbound())
    return Solution(status, values, objective, bound, int(model.getNTotalNodes()), pulse.seconds)


def _unlimited(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= INFINITY else float(value)
