"""A scaled model has the points of the one that was meant, and no number that a solver would drop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from closecall.errors import SolverError
from closecall.milp import Milp
from closecall.solvers import available, solve
from closecall.solvers.scaling import scaled


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
