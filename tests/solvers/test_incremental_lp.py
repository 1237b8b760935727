"""The warm LP against scipy's linprog; its safe bounds hold whatever the multipliers are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from closecall.milp import Milp
from closecall.solvers.incremental_lp import WarmProgram


def random_lp(seed: int, rows: int = 8, columns: int = 6) -> Milp:
    """Some rows with two sides, some with one, one an equation; a finite box with a feasible point."""
    generator = np.random.default_rng(seed)
    matrix = generator.normal(size=(rows, columns)) * (generator.random((rows, columns)) < 0.7)
    inside = generator.uniform(-1, 1, columns)
    activity = matrix @ inside
    row_lower, row_upper = activity - generator.random(rows), activity + generator.random(rows)
    row_lower[1::3], row_upper[2::3] = -np.inf, np.inf
    row_lower[0] = row_upper[0] = activity[0]
    return Milp(
        objective=generator.normal(size=columns),
        matrix=csr_array(matrix),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.full(columns, -2.0),
        upper=np.full(columns, 2.0),
        integer=generator.random(columns) < 0.5,
    )


def truth(milp: Milp) -> float:
    """scipy's optimum of the LP, infinity when it is infeasible."""
    dense = milp.matrix.toarray()
    above, below = np.isfinite(milp.row_upper), np.isfinite(milp.row_lower)
    found = linprog(
        milp.objective,
        A_ub=np.vstack([dense[above], -dense[below]]),
        b_ub=np.concatenate([milp.row_upper[above], -milp.row_lower[below]]),
        bounds=list(zip(milp.lower, milp.upper, strict=True)),
    )
    return float(found.fun) if found.status == 0 else np.inf


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_the_optimum_is_scipys_after_every_change(seed: int) -> None:
    milp = random_lp(seed)
    program = WarmProgram(milp)
    generator = np.random.default_rng(seed)
    for step in range(6):
        if step % 3 == 1:
            milp = replace(milp, objective=generator.normal(size=milp.columns))
            program.set_objective(np.arange(milp.columns), milp.objective)
        elif step % 3 == 2:
            column = int(generator.integers(milp.columns))
            lower, upper = milp.lower.copy(), milp.upper.copy()
            lower[column], upper[column] = sorted(generator.uniform(-2, 2, 2))
            milp = replace(milp, lower=lower, upper=upper)
            program.set_column_bounds(np.array([column]), lower[[column]], upper[[column]])
        status, value, values = program.solve()
        expected = truth(milp)
        if np.isinf(expected):
            assert status == "infeasible"
            assert program.farkas_proves_infeasible()
            return
        assert status == "optimal"
        assert value == pytest.approx(expected, abs=1e-7)
        assert values is not None
        assert milp.objective @ values == pytest.approx(expected, abs=1e-7)
        assert program.safe_bound() <= expected + 1e-12
        assert program.safe_bound() == pytest.approx(expected, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_any_multipliers_give_a_bound(seed: int) -> None:
    milp = random_lp(seed)
    program = WarmProgram(milp)
    generator = np.random.default_rng(seed)
    for size in (0.0, 0.1, 1.0, 10.0):
        multipliers = size * generator.normal(size=milp.rows)
        assert program.weak_duality(multipliers, milp.objective) <= truth(milp) + 1e-12


@pytest.mark.parametrize("steps", [0, 1, 2, 4])
def test_stopped_early_the_bound_still_holds(steps: int) -> None:
    for seed in range(20):
        milp = random_lp(seed, rows=20, columns=15)
        program = WarmProgram(milp)
        status, _, _ = program.solve(iterations=steps)
        assert status in ("limit", "optimal")
        assert program.safe_bound() <= truth(milp) + 1e-12


def test_without_time_nothing_is_claimed() -> None:
    milp = random_lp(3, rows=20, columns=15)
    program = WarmProgram(milp)
    status, _, values = program.solve(seconds=0.0)
    assert (status, values) in (("limit", None), ("optimal", values))
    assert program.safe_bound() <= truth(milp) + 1e-12
    assert program.solve()[1] == pytest.approx(truth(milp))


def test_a_cutoff_below_the_optimum_is_proven_to_be_below_it() -> None:
    cut = 0
    for seed in range(40):
        milp = random_lp(seed, rows=20, columns=15)
        program = WarmProgram(milp)
        program.solve()
        basis, optimum = program.get_basis(), truth(milp)
        program.set_column_bounds(np.arange(3), np.full(3, 0.5), np.full(3, 0.5))
        lower, upper = milp.lower.copy(), milp.upper.copy()
        lower[:3] = upper[:3] = 0.5
        harder = truth(replace(milp, lower=lower, upper=upper))
        program.set_basis(basis)
        cutoff = optimum + 0.3 * (min(harder, optimum + 1.0) - optimum)
        status, value, _ = program.solve(cutoff=cutoff)
        if status == "cutoff":
            cut += 1
            assert program.safe_bound() >= cutoff - 1e-7
            assert harder > cutoff
        elif status == "optimal":
            assert value == pytest.approx(harder, abs=1e-7)
        assert program.safe_bound() <= harder + 1e-12 or status == "infeasible"
    assert cut > 5


def test_added_rows_count() -> None:
    for seed in range(20):
        milp = random_lp(seed)
        program = WarmProgram(milp)
        _, value, values = program.solve()
        basis = program.get_basis()
        assert values is not None
        cut = np.random.default_rng(seed).normal(size=milp.columns)
        side = float(cut @ values) - 0.2
        program.add_row(np.arange(milp.columns), cut, -np.inf, side)
        program.set_basis(basis)
        more = replace(
            milp,
            matrix=csr_array(np.vstack([milp.matrix.toarray(), cut])),
            row_lower=np.append(milp.row_lower, -np.inf),
            row_upper=np.append(milp.row_upper, side),
        )
        expected = truth(more)
        status, reached, _ = program.solve()
        if np.isinf(expected):
            assert status == "infeasible"
            assert program.farkas_proves_infeasible()
        else:
            assert reached == pytest.approx(expected, abs=1e-7)
            assert reached >= value - 1e-9
            assert program.safe_bound() == pytest.approx(expected, abs=1e-6)


def test_an_unbounded_column_gives_no_bound_but_never_a_wrong_one() -> None:
    milp = replace(random_lp(0), lower=np.full(6, -np.inf))
    program = WarmProgram(milp)
    assert program.weak_duality(np.zeros(milp.rows), np.abs(milp.objective) + 1.0) == -np.inf
    assert program.weak_duality(np.zeros(milp.rows), np.zeros(6)) == pytest.approx(0.0, abs=1e-9)


def test_a_feasible_program_is_never_proven_infeasible() -> None:
    for seed in range(30):
        program = WarmProgram(random_lp(seed))
        program.solve()
        assert not program.farkas_proves_infeasible()
