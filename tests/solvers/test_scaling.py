"""A scaled model has the points of the one that was meant, and no number that a solver would drop."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from closecall.errors import SolverError
from closecall.milp import Milp
from closecall.solvers import available, solve
from closecall.solvers.scaling import NARROWEST, scaled, widened_range, widest_row


def model(matrix: list[list[float]], row_lower: list[float], upper: list[float], cost: list[float]) -> Milp:
    return Milp(
        objective=np.array(cost),
        matrix=csr_array(np.array(matrix)),
        row_lower=np.array(row_lower),
        row_upper=np.full(len(row_lower), np.inf),
        lower=np.zeros(len(upper)),
        upper=np.array(upper),
        integer=np.zeros(len(upper), dtype=bool),
    )


def test_a_model_of_ordinary_scale_stays_as_it_is() -> None:
    milp = model([[1.0, 0.5]], [0.25], [1.0, 2.0], [1.0, 1.0])
    safe = scaled(milp, 1e-12)
    assert (safe.milp.matrix.toarray() == milp.matrix.toarray()).all()
    assert safe.cost == 1.0
    assert (safe.columns == 1.0).all()


def test_rows_of_large_terms_are_made_small_and_those_of_small_terms_stay() -> None:
    milp = model([[1000.0, 0.5], [0.002, 0.001]], [250.0, 0.001], [1.0, 2.0], [1.0, 1.0])
    safe = scaled(milp, 1e-12).milp
    assert np.abs(safe.matrix.toarray()[0]).max() == 1000 / 1024
    assert safe.row_lower[0] == 250 / 1024
    assert (safe.matrix.toarray()[1] == milp.matrix.toarray()[1]).all()


@pytest.mark.parametrize("solver", available())
@pytest.mark.parametrize("tiny", [1e-13, 1e-10, 1e-5, 1e5, 1e10])
def test_the_optimum_does_not_depend_on_the_scale(solver: str, tiny: float) -> None:
    """minimise x with y = x·tiny ≥ tiny/2: the optimum is 1/2, whatever the scale of y."""
    milp = model([[tiny, -1.0], [0.0, 1.0]], [0.0, tiny / 2], [1.0, tiny], [1.0, 0.0])
    assert solve(milp, solver).objective == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("solver", available())
def test_small_objectives_are_minimised_sharply(solver: str) -> None:
    milp = model([[1.0]], [3e-9], [1e-8], [1.0])
    solution = solve(milp, solver)
    assert solution.objective == pytest.approx(3e-9, rel=1e-6)
    assert solution.bound <= 3e-9 * (1 + 1e-6)


def test_what_is_dropped_widens_its_row() -> None:
    milp = model([[1.0, 1e-13]], [0.5], [1.0, 4.0], [1.0, 0.0])
    safe = scaled(milp, 1e-12)
    assert safe.milp.matrix.nnz == 1
    assert safe.milp.row_lower[0] == pytest.approx(0.5 - 4e-13, rel=1e-12)


def test_what_cannot_be_widened_is_refused() -> None:
    milp = model([[1.0, 1e-13]], [0.5], [1.0, math.inf], [1.0, 0.0])
    with pytest.raises(SolverError, match="bound the columns"):
        scaled(milp, 1e-12)


def test_columns_fixed_to_zero_do_not_set_the_scale_of_their_row() -> None:
    milp = model([[1.0, 1e14]], [0.5], [1.0, 0.0], [1.0, 0.0])
    assert scaled(milp, 1e-12).milp.matrix.toarray().tolist() == [[1.0, 0.0]]


def test_a_faint_switch_is_left_open() -> None:
    """x ≤ 1e-6·z: whatever z is, x may be 1e-6, which no point of the model that was meant loses by."""
    milp = model([[-1.0, 1e-6]], [0.0], [1.0, 1.0], [-1.0, 0.0])
    milp = replace(milp, integer=np.array([False, True]))
    safe = scaled(milp, 1e-9).milp
    assert safe.matrix.toarray().tolist() == [[-1.0, 0.0]]
    assert safe.row_lower[0] == pytest.approx(-1e-6)


@pytest.mark.parametrize("solver", available())
@pytest.mark.parametrize("wide", [1e3, 1e8])
def test_nothing_is_claimed_of_rows_that_rounding_blurs(solver: str, wide: float) -> None:
    """minimise z with x ≤ wide·z, x ≥ wide/2: the point is found either way, the bound only in the first."""
    milp = model([[-1.0, wide], [1.0, 0.0]], [0.0, wide / 2], [wide, 1.0], [0.0, 1.0])
    milp = replace(milp, integer=np.array([False, True]))
    assert widest_row(milp) == pytest.approx(wide)
    solution = solve(milp, solver)
    assert solution.objective == pytest.approx(1.0)
    assert solution.bound == (pytest.approx(1.0) if wide == 1e3 else -math.inf)
    assert solution.status == ("optimal" if wide == 1e3 else "limit")


def test_no_proof_of_emptiness_from_rows_that_rounding_blurs() -> None:
    milp = model([[1.0, -1.0]], [2e8], [1e8, 1e8], [1.0, 0.0])
    assert solve(milp, "highs").status == "limit"
    assert solve(milp, "highs").bound == -math.inf


def test_ranges_that_solvers_take_for_equations_are_widened() -> None:
    lower, upper = widened_range(np.array([0.0, 0.5, 0.0, -np.inf]), np.array([1e-11, 0.5, 1.0, 3.0]))
    np.testing.assert_allclose(upper - lower, [NARROWEST, 0.0, 1.0, np.inf])
    assert lower[0] <= 0.0
    assert upper[0] >= 1e-11
    np.testing.assert_array_equal([lower[1], upper[1], lower[2], upper[2]], [0.5, 0.5, 0.0, 1.0])
