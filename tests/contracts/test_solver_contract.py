"""What every solver must do, asked of each one that is installed."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint
from scipy.optimize import milp as scipy_milp
from scipy.sparse import csr_array

from closecall.errors import SolverError
from closecall.milp import Milp, objective_at, violation
from closecall.solvers import available, solve

INF = float("inf")
FEASIBLE = 1e-7
every_solver = pytest.mark.parametrize("solver", available())


def program(
    objective: Sequence[float],
    rows: Sequence[tuple[float, Sequence[float], float]],
    bounds: Sequence[tuple[float, float]],
    integer: Sequence[int] | None = None,
    quadratic: Sequence[float] | None = None,
) -> Milp:
    """A small model; each row is (lower side, entries, upper side)."""
    columns = len(objective)
    return Milp(
        objective=np.array(objective, dtype=float),
        matrix=csr_array(np.array([row[1] for row in rows], dtype=float).reshape(len(rows), columns)),
        row_lower=np.array([row[0] for row in rows], dtype=float),
        row_upper=np.array([row[2] for row in rows], dtype=float),
        lower=np.array([bound[0] for bound in bounds], dtype=float),
        upper=np.array([bound[1] for bound in bounds], dtype=float),
        integer=np.isin(np.arange(columns), integer or []),
        quadratic=None if quadratic is None else np.array(quadratic, dtype=float),
    )


def brute_force(milp: Milp) -> float:
    """The optimum of a model whose columns are all integer, by trying every point."""
    ranges = [np.arange(lower, upper + 1) for lower, upper in zip(milp.lower, milp.upper, strict=True)]
    points = np.array(list(itertools.product(*ranges)))
    activity = points @ milp.matrix.toarray().T
    fits = ((activity >= milp.row_lower) & (activity <= milp.row_upper)).all(axis=1)
    costs = points @ milp.objective
    if milp.quadratic is not None:
        costs = costs + points**2 @ milp.quadratic
    return float(costs[fits].min(initial=INF))


def check_optimum(milp: Milp, solver: str, optimum: float, tolerance: float = 1e-6) -> None:
    solution = solve(milp, solver)
    assert solution.status == "optimal"
    assert solution.values is not None
    assert violation(milp, solution.values) <= FEASIBLE
    assert solution.objective == pytest.approx(optimum, rel=tolerance, abs=tolerance)
    assert solution.objective == objective_at(milp, solution.values)
    assert solution.bound <= optimum + 1e-7 * (1 + abs(optimum))
    assert solution.objective - solution.bound <= max(1e-8, 2e-6 * abs(solution.objective))


KNOWN = {
    "lp": (program([1, 1], [(3, [1, 2], INF)], [(0, INF), (0, INF)]), 1.5),
    "milp": (program([1, 1], [(3, [1, 2], INF)], [(0, INF), (0, INF)], [0, 1]), 2.0),
    "equality": (program([2, 3], [(4, [1, 1], 4)], [(0, 3), (0, 3)]), 9.0),
    "range": (program([-1, -1], [(1, [1, 1], 2.5)], [(0, INF), (0, INF)]), -2.5),
    "range from below": (program([1, 1], [(1.5, [1, 1], 2.5)], [(0, 9), (0, 9)], [0, 1]), 2.0),
    "free columns": (program([1, 1], [(-4, [1, 0], INF), (-2.5, [0, 1], INF)], [(-INF, INF)] * 2), -6.5),
    "free integer": (program([1, 1], [(-4, [1, 0], INF), (-2.5, [0, 1], INF)], [(-INF, INF)] * 2, [1]), -6.0),
    "negative lower bounds": (program([1, -1], [(-INF, [1, 1], 0)], [(-3, -1), (-5, 5)], [0]), -6.0),
    "fixed columns": (program([1, 5], [(0, [1, 1], 10)], [(-1, 4), (2, 2)], [1]), 9.0),
    "free row": (program([1], [(-INF, [1], INF)], [(2, 5)]), 2.0),
    "no rows": (program([1, -1], [], [(-1, 3), (0, 5)]), -6.0),
    "no rows, integer": (program([1, -1], [], [(-1.5, 3), (0, 5.5)], [0, 1]), -6.0),
    "empty row": (program([1], [(-1, [0], 1)], [(2, 5)], [0]), 2.0),
    "no objective": (program([0, 0], [(1, [1, 1], 1)], [(0, 1), (0, 1)], [0, 1]), 0.0),
}


@every_solver
@pytest.mark.parametrize("name", KNOWN)
def test_known_optimum(solver: str, name: str) -> None:
    milp, optimum = KNOWN[name]
    check_optimum(milp, solver, optimum)


@every_solver
def test_knapsack_is_solved_far_beyond_the_usual_gap(solver: str) -> None:
    random = np.random.default_rng(1)
    weights = random.integers(10_000, 20_000, 14)
    knapsack = program(
        -(weights + random.integers(0, 5, 14)), [(0, weights, 100_003)], [(0, 1)] * 14, range(14)
    )
    check_optimum(knapsack, solver, brute_force(knapsack), tolerance=1e-12)


@every_solver
def test_set_cover(solver: str) -> None:
    random = np.random.default_rng(2)
    covers = (random.random((20, 12)) < 0.25).astype(float)
    covers[np.arange(20), random.integers(0, 12, 20)] = 1.0
    cover = program(random.integers(1, 9, 12), [(1, row, INF) for row in covers], [(0, 1)] * 12, range(12))
    check_optimum(cover, solver, brute_force(cover))


@every_solver
@pytest.mark.parametrize("integer", [[], [0, 1]])
@pytest.mark.parametrize("quadratic", [None, [0, 1]])
def test_infeasible(solver: str, integer: list[int], quadratic: list[float] | None) -> None:
    milp = program([1, 1], [(3, [1, 1], INF)], [(0, 1), (0, 1)], integer, quadratic)
    solution = solve(milp, solver)
    assert solution.status == "infeasible"
    assert solution.values is None
    assert solution.bound == INF


@every_solver
@pytest.mark.parametrize("integer", [[], [0, 1]])
@pytest.mark.parametrize("quadratic", [None, [0, 0, 1]])
def test_unbounded(solver: str, integer: list[int], quadratic: list[float] | None) -> None:
    milp = program([-1, -1, 0], [(0, [1, -1, 0], 0)], [(0, INF), (0, INF), (-1, 1)], integer, quadratic)
    solution = solve(milp, solver)
    assert solution.status == "unbounded"
    assert solution.bound == -INF


@every_solver
@pytest.mark.parametrize("integer", [[], [0, 1, 2]])
@pytest.mark.parametrize("quadratic", [None, [0, 1, 0]])
def test_infeasible_is_not_called_unbounded(
    solver: str, integer: list[int], quadratic: list[float] | None
) -> None:
    rows = [(-INF, [0, 1, 1], 1), (3, [0, 1, 1], INF)]
    solution = solve(program([-1, 0, 0], rows, [(0, INF)] * 3, integer, quadratic), solver)
    assert solution.status == "infeasible"


QUADRATIC = {
    # (x − 1)² + (y − 3)² − 10 with x + y ≤ 3: the foot of a perpendicular
    "projection": (program([-2, -6], [(-INF, [1, 1], 3)], [(0, INF)] * 2, quadratic=[1, 1]), -9.5),
    "rounded": (program([-2, -6], [(-INF, [1, 1], 3)], [(0, INF)] * 2, [0, 1], [1, 1]), -9.0),
    # minimise −y + x² with y ≤ 1000 x: the linear column alone would run away
    "no bounds": (program([-1, 0], [(-INF, [1, -1000], 0)], [(-INF, INF)] * 2, quadratic=[0, 1]), -250_000.0),
    "without rows": (program([-3, 1], [], [(-INF, INF), (2, 5)], quadratic=[2, 0]), 0.875),
    "at zero": (program([0, 0], [(-1, [1, 1], 1)], [(-5, 5)] * 2, [1], [1, 1]), 0.0),
    "half": (program([0, 0, 1], [(2.5, [1, 1, 0], INF)], [(0, 9), (0, 9), (1, 9)], [0], [1, 1, 0]), 4.25),
}


@every_solver
@pytest.mark.parametrize("name", QUADRATIC)
def test_known_quadratic_optimum(solver: str, name: str) -> None:
    milp, optimum = QUADRATIC[name]
    check_optimum(milp, solver, optimum)


@every_solver
def test_integer_quadratic_equals_brute_force(solver: str) -> None:
    random = np.random.default_rng(3)
    for _ in range(3):
        rows = [(random.integers(-4, 0), random.integers(-3, 4, 5), random.integers(0, 5)) for _ in range(3)]
        costs = random.normal(size=5)
        milp = program(costs * 3, rows, [(-2, 3)] * 5, range(5), random.random(5))
        check_optimum(milp, solver, brute_force(milp))


@every_solver
@pytest.mark.parametrize("start", [[0.0, 0.0], [0.5, 9.0], [np.nan, 0.0], [2.0, 1.0], [0.0, 2.0]])
@pytest.mark.parametrize("quadratic", [None, [0.0, 1.0]])
def test_any_start_gives_the_same_optimum(
    solver: str, start: list[float], quadratic: list[float] | None
) -> None:
    milp = program([1, 1], [(3, [1, 2], INF)], [(0, 7), (0, 7)], [0, 1], quadratic)
    solution = solve(milp, solver, start=np.array(start))
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(brute_force(milp))


@every_solver
def test_solves_in_another_thread(solver: str) -> None:
    milp, optimum = KNOWN["milp"]
    answers: list[float] = []
    thread = threading.Thread(target=lambda: answers.append(solve(milp, solver).objective))
    thread.start()
    thread.join()
    assert answers == pytest.approx([optimum])


@every_solver
def test_nothing_is_printed(solver: str, capfd: pytest.CaptureFixture[str]) -> None:
    for milp, _ in [*KNOWN.values(), *QUADRATIC.values()]:
        solve(milp, solver, start=milp.lower)
    assert capfd.readouterr() == ("", "")


@every_solver
def test_ctrl_c_works_as_before_afterwards(solver: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    solve(*KNOWN["milp"][:1], solver)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@every_solver
def test_the_same_question_takes_the_same_path(solver: str) -> None:
    random = np.random.default_rng(5)
    rows = [(-INF, random.integers(1, 50, 25), 300) for _ in range(3)]
    milp = program(-random.integers(1, 50, 25), rows, [(0, 1)] * 25, range(25))
    first, second = solve(milp, solver), solve(milp, solver)
    assert first.values is not None
    assert second.values is not None
    assert first.nodes == second.nodes
    assert np.array_equal(first.values, second.values)


@every_solver
def test_entries_given_twice_are_added(solver: str) -> None:
    twice = csr_array((np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    milp = Milp(**{**vars(program([1], [(3, [1], INF)], [(0, 9)])), "matrix": twice})
    assert solve(milp, solver).objective == pytest.approx(1.5)


def refusal_of(solver: str, milp: Milp) -> str:
    if solver not in available():
        pytest.skip(f"{solver} is not installed")
    try:
        solve(milp, solver)
    except SolverError as refusal:
        return str(refusal)
    pytest.skip(f"{solver} has a full licence here")


@pytest.mark.parametrize(("solver", "limit"), [("gurobi", 2000), ("cplex", 1000)])
def test_size_refusal_is_one_sentence(solver: str, limit: int) -> None:
    columns = limit + 1
    message = refusal_of(solver, program([1] * columns, [(1, [1] * columns, INF)], [(0, 1)] * columns, [0]))
    assert f"{limit:,} columns" in message
    assert f"{columns:,} columns" in message
    assert "another solver" in message


def test_size_refusal_names_the_limit_of_quadratic_models() -> None:
    message = refusal_of("gurobi", program([1] * 300, [], [(0, 1)] * 300, [0], [1] * 300))
    assert "200 columns" in message
    assert "300 columns" in message


@st.composite
def small_programs(draw: st.DrawFn, all_integer: bool, quadratic: bool = False) -> Milp:
    columns = draw(st.integers(1, 4))
    entry = st.integers(-4, 4)
    vector = st.lists(entry, min_size=columns, max_size=columns)
    bounds = draw(
        st.lists(st.tuples(st.integers(-2, 0), st.integers(0, 2)), min_size=columns, max_size=columns)
    )
    rows = []
    for _ in range(draw(st.integers(0, 3))):
        lower = draw(st.one_of(st.just(-INF), st.integers(-6, 2)))
        upper = draw(st.one_of(st.just(INF), st.integers(int(max(lower, -3)), 6)))
        rows.append((lower, draw(vector), upper))
    integer = list(range(columns)) if all_integer else draw(st.lists(st.integers(0, columns - 1)))
    squares = draw(st.lists(st.sampled_from([0, 0.25, 1, 3]), min_size=columns, max_size=columns))
    return program(draw(vector), rows, bounds, integer, squares if quadratic else None)


@every_solver
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(milp=small_programs(all_integer=True))
def test_integer_programs_equal_brute_force(solver: str, milp: Milp) -> None:
    optimum = brute_force(milp)
    if optimum == INF:
        assert solve(milp, solver).status == "infeasible"
    else:
        check_optimum(milp, solver, optimum)


@every_solver
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(milp=small_programs(all_integer=True, quadratic=True))
def test_integer_quadratic_programs_equal_brute_force(solver: str, milp: Milp) -> None:
    optimum = brute_force(milp)
    if optimum == INF:
        assert solve(milp, solver).status == "infeasible"
    else:
        check_optimum(milp, solver, optimum)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(milp=small_programs(all_integer=False))
def test_solvers_agree_on_mixed_programs(milp: Milp) -> None:
    truth = scipy_milp(
        milp.objective,
        integrality=milp.integer.astype(int),
        bounds=Bounds(milp.lower, milp.upper),
        constraints=LinearConstraint(milp.matrix.toarray(), milp.row_lower, milp.row_upper)
        if milp.rows
        else None,
    )
    for solver in available():
        solution = solve(milp, solver)
        if truth.status == 0:
            check_optimum(milp, solver, truth.fun)
        else:
            assert solution.status == "infeasible"
