"""The solvers, each in its own file behind one function: `solve(milp, limits, start, on_progress)`.

What a solver reports is made uniform here: "unbounded" is only said of a model that has a feasible point,
a feasible start is never lost, and the bound never exceeds the objective.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from closecall.arrays import Vector
from closecall.errors import InputError, MissingExtraError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, objective_at, violation
from closecall.solvers.scaling import scaled, widest_row

DEFAULT_LIMITS = Limits()
# How far a solver's claims may be off, as a share: feasibility and integrality tolerances are 1e-6 or less.
SOLVER_TOLERANCE = 1e-6
# Below what a solver may take a coefficient for zero, or lose points to it, with the terms of a row near 1:
# HiGHS drops what is below 1e-12 and Gurobi 1e-13, CPLEX cleans what is below 1e-10, SCIP's epsilon is 1e-9.
SMALLEST_ENTRY = 1e-9
# Beyond this, double precision rounds a row by more than the solvers' tolerance of 1e-9.
WIDEST_ROW = 1e6
START_TOLERANCE = 1e-7  # a start that breaks a row by more than this is no fallback answer


class Solve(Protocol):
    """What each solver's file offers."""

    def __call__(
        self, milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None
    ) -> Solution: ...


# name: the package that must be importable; the file of that name is imported on first use
SOLVERS: dict[str, str] = {
    "highs": "highspy",
    "scip": "pyscipopt",
    "gurobi": "gurobipy",
    "cplex": "cplex",
}


def available() -> tuple[str, ...]:
    """The names of the solvers whose package can be imported."""
    return tuple(name for name, package in SOLVERS.items() if _importable(package))


def solve(
    milp: Milp,
    solver: str = "highs",
    limits: Limits = DEFAULT_LIMITS,
    *,
    start: Vector | None = None,
    on_progress: OnProgress | None = None,
) -> Solution:
    """Minimise by the named solver, within the limits.

    `start` is a point to begin from; if it breaks a constraint it is at worst ignored. Ctrl-C ends the solve
    with status "interrupted" and the best point and bound so far. The bound is the solver's own claim.
    """
    began = time.perf_counter()
    run = cast(Solve, _module(solver).solve)
    if not milp.matrix.has_canonical_format:
        matrix = milp.matrix.copy()
        matrix.sum_duplicates()
        milp = replace(milp, matrix=matrix)
    if start is not None and not np.isfinite(start).all():
        start = None
    safe = scaled(milp, SMALLEST_ENTRY)
    begin = None if start is None else safe.point_there(start)
    limits = safe.limits_there(limits)
    solution = run(safe.milp, limits, begin, safe.progress_back(on_progress))
    if solution.status == "unbounded":
        left = replace(limits, seconds=max(0.0, limits.seconds - (time.perf_counter() - began)))
        solution = _confirm_unbounded(run, safe.milp, left, solution)
    solution = safe.back(solution)
    if widest_row(milp) > WIDEST_ROW:
        solution = without_claims(solution)
    if start is not None:
        solution = _keep_start(milp, start, solution)
    return replace(
        solution,
        bound=min(solution.bound, solution.objective),
        seconds=time.perf_counter() - began,
    )


def tolerances_of(solver: str) -> dict[str, float]:
    """By how much a solver may miss rows, bounds and integrality, by its own names for that."""
    return dict(_module(solver).TOLERANCES)


def _module(solver: str) -> Any:
    """The file of a solver, imported on first use."""
    if solver not in SOLVERS:
        raise InputError(f"The solver must be one of {', '.join(SOLVERS)}; {solver!r} is not known.")
    if not _importable(SOLVERS[solver]):
        raise MissingExtraError(f"The {solver} solver", solver)
    try:
        return importlib.import_module(f".{solver}", __name__)
    except ImportError as broken:
        raise MissingExtraError(f"The {solver} solver", solver) from broken


def _importable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def without_claims(solution: Solution) -> Solution:
    """The point that a solver found in a model about which its word is not taken."""
    status: Status = "limit" if solution.status in ("optimal", "infeasible") else solution.status
    return replace(solution, status=status, bound=-math.inf)


def _confirm_unbounded(run: Solve, milp: Milp, limits: Limits, said: Solution) -> Solution:
    """Tell unbounded from infeasible: without the objective, only an infeasible model has no point."""
    plain = run(replace(milp, objective=np.zeros(milp.columns), quadratic=None), limits, None, None)
    if plain.status == "infeasible":
        return plain
    if plain.values is None:
        return replace(plain, bound=-math.inf)
    return replace(said, values=None, objective=-math.inf, bound=-math.inf)


def _keep_start(milp: Milp, start: Vector, solution: Solution) -> Solution:
    """The start itself, where the solver stopped early with nothing as good."""
    if solution.status not in ("limit", "interrupted") or violation(milp, start) > START_TOLERANCE:
        return solution
    objective = objective_at(milp, start)
    if objective >= solution.objective:
        return solution
    return replace(solution, values=np.array(start, dtype=np.float64), objective=objective)
