"""Outer approximation by HiGHS against independent truths: scipy's SLSQP, enumeration, other solvers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, objective_at, violation
from closecall.solvers import available, highs, solve
from closecall.solvers.outer_approximation import solve_quadratic


def nearest_point(seed: int, columns: int, rows: int, binaries: int = 0) -> Milp:
    """Minimise Σ v² over A·v ≥ b in a box, the first columns binary."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, columns))
    centre = random.random(columns)
    inside = random.random(columns) - centre
    inside[:binaries] = random.integers(0, 2, binaries)
    whole = np.arange(columns) < binaries
    return Milp(
        objective=np.zeros(columns),
        matrix=csr_array(matrix),
        row_lower=matrix @ inside,
        row_upper=np.full(rows, np.inf),
        lower=np.where(whole, 0.0, -centre),
        upper=np.where(whole, 1.0, 1.0 - centre),
        integer=whole,
        quadratic=np.ones(columns),
    )


def continuous_optimum(milp: Milp) -> float:
    """By scipy's SLSQP, which shares no code with the linear solvers."""
    assert milp.quadratic is not None
    matrix, quadratic = milp.matrix.toarray(), milp.quadratic
    answer = minimize(
        lambda values: objective_at(milp, values),
        np.clip(np.zeros(milp.columns), milp.lower, milp.upper),
        jac=lambda values: milp.objective + 2 * quadratic * values,
        bounds=list(zip(milp.lower, milp.upper, strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda values: matrix @ values - milp.row_lower,
            "jac": lambda values: matrix,
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(answer.fun) if answer.success else np.inf


def linear_only(milp: Milp, limits: Limits, start: Vector | None, on_progress: OnProgress | None) -> Solution:
    """HiGHS as if it knew no QPs at all."""
    if milp.quadratic is not None and milp.quadratic.any():
        raise SolverError("no QP today")
    return highs.solve_natively(milp, limits, start, on_progress)


@pytest.mark.parametrize("solve_linear", [highs.solve_natively, linear_only])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_continuous_optimum_equals_scipys(seed: int, solve_linear: object) -> None:
    milp = nearest_point(seed, 12, 6)
    solution = solve_quadratic(milp, Limits(), None, None, solve_linear)  # type: ignore[arg-type]
    optimum = continuous_optimum(milp)
    assert solution.status == "optimal"
    assert solution.values is not None
    assert violation(milp, solution.values) <= 1e-8
    assert solution.objective == pytest.approx(optimum, rel=3e-6)
    assert solution.bound <= optimum * (1 + 1e-8)


@pytest.mark.parametrize("solve_linear", [highs.solve_natively, linear_only])
@pytest.mark.parametrize("seed", [3, 4])
def test_mixed_optimum_equals_enumeration(seed: int, solve_linear: object) -> None:
    milp = nearest_point(seed, 8, 4, binaries=4)
    solution = solve_quadratic(milp, Limits(), None, None, solve_linear)  # type: ignore[arg-type]
    optimum = np.inf
    for choice in itertools.product([0.0, 1.0], repeat=4):
        fixed = np.array(choice)
        lower, upper = milp.lower.copy(), milp.upper.copy()
        lower[:4] = upper[:4] = fixed
        optimum = min(optimum, continuous_optimum(replace(milp, lower=lower, upper=upper)))
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(optimum, rel=3e-6)
    assert solution.bound <= optimum * (1 + 1e-8)


def test_other_solvers_agree_on_a_larger_model() -> None:
    milp = nearest_point(5, 60, 20, binaries=15)
    optima = [solve(milp, solver).objective for solver in available()]
    assert optima == pytest.approx([optima[0]] * len(optima), rel=3e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_columns_without_bounds_whatever_their_scale(scale: float) -> None:
    # minimise −y + (x / scale)² with y ≤ x: the optimum is −scale² / 4 at x = scale² / 2
    milp = Milp(
        objective=np.array([0.0, -1.0]),
        matrix=csr_array(np.array([[-1.0, 1.0]])),
        row_lower=np.array([-np.inf]),
        row_upper=np.array([0.0]),
        lower=np.full(2, -np.inf),
        upper=np.full(2, np.inf),
        integer=np.zeros(2, dtype=bool),
        quadratic=np.array([1 / scale**2, 0.0]),
    )
    solution = solve(milp)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(-(scale**2) / 4, rel=1e-5, abs=1e-8)
    assert solution.bound <= -(scale**2) / 4 * (1 - 1e-9) + 1e-12


def test_a_linear_column_that_never_stops_is_unbounded() -> None:
    milp = nearest_point(6, 4, 2)
    free = replace(
        milp,
        objective=np.array([0.0, 0.0, 0.0, -1.0]),
        matrix=csr_array(np.abs(milp.matrix.toarray())),
        upper=np.array([*milp.upper[:3], np.inf]),
        quadratic=np.array([1.0, 1.0, 1.0, 0.0]),
    )
    assert solve(free).status == "unbounded"


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_a_start_a_hair_outside_does_not_cut_off_the_optimum(seed: int) -> None:
    milp = nearest_point(seed, 8, 4, binaries=3)
    best = solve(milp)
    assert best.values is not None
    start = best.values * (1 - 1e-8)
    assert 0 < violation(milp, start) < 1e-7
    again = solve(milp, start=start)
    assert again.status == "optimal"
    assert again.objective == pytest.approx(best.objective, rel=3e-6)
    assert again.bound <= best.objective


def test_progress_never_tells_more_than_is_proven() -> None:
    milp = nearest_point(10, 40, 20, binaries=20)
    told: list[tuple[float, float]] = []
    best = solve(milp, on_progress=lambda lower, upper, nodes, seconds: told.append((lower, upper)))
    assert told
    assert best.status == "optimal"
    assert all(lower <= best.objective * (1 + 1e-9) for lower, _ in told)
    assert all(upper >= best.bound * (1 - 1e-9) for _, upper in told)
    assert [lower for lower, _ in told] == sorted(lower for lower, _ in told)
