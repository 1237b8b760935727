"""A continuous model solved by HiGHS, with a lower bound that does not rest on HiGHS's word.

A linear objective is bounded by weak duality (see `warm`). A convex quadratic one, f(v) = c·v + Σ q v², lies
above its tangent at any point p: f(v) ≥ (c + 2 q p)·v − Σ q p², which is linear. With p the minimiser that
HiGHS names, the two have the same minimum.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from closecall.arrays import Vector
from closecall.milp import Limits, Milp
from closecall.solvers import solve
from closecall.solvers.incremental_lp import ROUNDING, WarmProgram


@dataclass(frozen=True, eq=False)
class Verified:
    """The minimiser, if one was found, and a lower bound; infinity when there is proven to be no point."""

    values: Vector | None
    bound: float


def solve_verified(milp: Milp, seconds: float) -> Verified:
    """Minimise the model without its integrality; nothing is claimed that weak duality does not confirm."""
    until = time.perf_counter() + seconds
    if milp.quadratic is None or not milp.quadratic.any():
        return minimised(milp, seconds)
    relaxed = replace(milp, integer=np.zeros(milp.columns, dtype=bool))
    solution = solve(relaxed, "highs", Limits(seconds=seconds))
    if solution.status == "interrupted":
        raise KeyboardInterrupt
    near = np.clip(np.zeros(milp.columns), milp.lower, milp.upper)
    point = near if solution.values is None else solution.values
    squares = milp.quadratic * point
    tangent = replace(relaxed, objective=milp.objective + 2.0 * squares, quadratic=None)
    below = minimised(tangent, max(0.0, until - time.perf_counter()))
    offset = float(squares @ point)
    return Verified(solution.values, below.bound - offset - ROUNDING * offset)


def minimised(milp: Milp, seconds: float) -> Verified:
    program = WarmProgram(milp)
    status, _, values = program.solve(seconds=seconds)
    if status == "infeasible":
        return Verified(None, math.inf if program.farkas_proves_infeasible() else -math.inf)
    return Verified(values, program.safe_bound())
