"""Verified bounds hold and are sharp, for linear and quadratic objectives."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from closecall.milp import Milp
from closecall.solvers import solve
from closecall.solvers.verified import solve_verified


def random_model(seed: int, *, quadratic: bool) -> Milp:
    generator = np.random.default_rng(seed)
    columns, rows = 8, 5
    return Milp(
        objective=generator.normal(size=columns),
        matrix=csr_array(generator.normal(size=(rows, columns))),
        row_lower=np.full(rows, -np.inf),
        row_upper=generator.random(rows),
        lower=-np.ones(columns),
        upper=np.ones(columns),
        integer=np.zeros(columns, dtype=bool),
        quadratic=generator.random(columns) if quadratic else None,
    )


@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_and_are_sharp(seed: int, quadratic: bool) -> None:
    milp = random_model(seed, quadratic=quadratic)
    optimum = solve(milp, "highs").objective
    found = solve_verified(milp, 10.0)
    assert found.bound <= optimum + 1e-9
    assert found.bound == pytest.approx(optimum, abs=1e-5)


@pytest.mark.parametrize("quadratic", [False, True])
def test_infinity_only_without_a_point(quadratic: bool) -> None:
    milp = random_model(0, quadratic=quadratic)
    empty = replace(milp, row_lower=np.full(milp.rows, 100.0), row_upper=np.full(milp.rows, np.inf))
    assert solve_verified(empty, 10.0).bound == math.inf
    assert solve_verified(empty, 10.0).values is None
