"""What every solver must do when it is stopped: by its limits, by Ctrl-C, by a failing progress report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from closecall.arrays import Vector
from closecall.milp import EnoughError, Limits, Milp, objective_at, violation
from closecall.solvers import available, solve

INF = float("inf")
FEASIBLE = 1e-7
OPTIMUM = 10.0
every_solver = pytest.mark.parametrize("solver", available())
both_costs = pytest.mark.parametrize("quadratic", [False, True])


def market_split(quadratic: bool = False) -> Milp:
    """A planted market split: its optimum is 10, and no solver proves or finds it in reasonable time."""
    rows, columns = 6, 50
    random = np.random.default_rng(7)
    weights = random.integers(0, 100, (rows, columns)).astype(float)
    demand = weights @ random.integers(0, 2, columns)
    matrix = np.hstack([weights, np.eye(rows), -np.eye(rows), np.zeros((rows, 1))])
    slack = 2 * rows
    return Milp(
        objective=np.concatenate([np.zeros(columns), np.ones(slack), [OPTIMUM]]),
        matrix=csr_array(matrix),
        row_lower=demand,
        row_upper=demand,
        lower=np.concatenate([np.zeros(columns + slack), [1.0]]),
        upper=np.concatenate([np.ones(columns), np.full(slack, INF), [1.0]]),
        integer=np.arange(columns + slack + 1) < columns,
        quadratic=np.concatenate([np.zeros(columns), np.ones(slack), [0.0]]) if quadratic else None,
    )


def nothing_bought(milp: Milp) -> Vector:
    """A feasible point of a market split: every demand is met by slack."""
    values = np.zeros(milp.columns)
    values[-1] = 1.0
    values[50:56] = milp.row_lower
    return values


@every_solver
@both_costs
def test_time_limit_keeps_a_valid_interval(
    solver: str, quadratic: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    milp = market_split(quadratic)
    solution = solve(milp, solver, Limits(seconds=0.5))
    assert capfd.readouterr() == ("", "")
    assert solution.status == "limit"
    assert solution.bound <= OPTIMUM + 1e-6 <= solution.objective + 1e-5
    if solution.values is not None:
        assert violation(milp, solution.values) <= FEASIBLE


@every_solver
def test_start_is_never_lost(solver: str) -> None:
    milp = market_split()
    start = nothing_bought(milp)
    solution = solve(milp, solver, Limits(seconds=1e-6), start=start)
    assert solution.status == "limit"
    assert solution.values is not None
    assert violation(milp, solution.values) <= FEASIBLE
    assert solution.objective <= objective_at(milp, start)
    assert solution.bound <= OPTIMUM


@every_solver
def test_progress_tells_valid_bounds(solver: str) -> None:
    told: list[tuple[float, float, int, float]] = []
    solve(market_split(), solver, Limits(seconds=0.5), on_progress=lambda *numbers: told.append(numbers))
    assert told
    assert all(lower <= OPTIMUM + 1e-6 <= upper + 1e-5 for lower, upper, _, _ in told)
    assert np.isfinite(told[-1][0])
    assert [nodes for _, _, nodes, _ in told] == sorted(nodes for _, _, nodes, _ in told)


@every_solver
@both_costs
def test_failing_progress_is_raised(solver: str, quadratic: bool) -> None:
    milp = market_split(quadratic)

    def fail(lower: float, upper: float, nodes: int, seconds: float) -> None:
        raise ZeroDivisionError("from on_progress")

    with pytest.raises(ZeroDivisionError, match="from on_progress"):
        solve(milp, solver, Limits(seconds=60), on_progress=fail)


@every_solver
@both_costs
def test_who_has_seen_enough_has_not_pressed_ctrl_c(solver: str, quadratic: bool) -> None:
    def watch(lower: float, upper: float, nodes: int, seconds: float) -> None:
        raise EnoughError

    solution = solve(market_split(quadratic), solver, Limits(seconds=60), on_progress=watch)
    assert solution.status == "limit"
    assert solution.bound <= OPTIMUM + 1e-6 <= solution.objective + 1e-5
    assert solution.seconds < 50


INTERRUPTED = """
import json, signal, sys
sys.path[:0] = {path!r}
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from scipy.sparse import csr_array
from closecall.milp import Limits, Milp
from closecall.solvers import solve
arrays = np.load(sys.argv[1])
milp = Milp(**{{**arrays, "matrix": csr_array(arrays["matrix"])}})

def tell(lower, upper, nodes, seconds):
    if np.isfinite(upper) or seconds > 1:
        print("running", file=sys.stderr, flush=True)

solution = solve(milp, {solver!r}, Limits(seconds=300), on_progress=tell)
print(json.dumps([solution.status, solution.objective, solution.bound, solution.seconds]))
"""


@every_solver
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send SIGINT to one process")
@both_costs
def test_ctrl_c_returns_the_best_so_far(solver: str, quadratic: bool, tmp_path: Path) -> None:
    milp = market_split(quadratic)
    arrays = {**vars(milp), "matrix": milp.matrix.toarray()}
    del arrays["column_names"]
    if not quadratic:
        del arrays["quadratic"]
    np.savez(tmp_path / "hard.npz", **arrays)
    script = INTERRUPTED.format(path=sys.path, solver=solver)
    command = [sys.executable, "-c", script, str(tmp_path / "hard.npz")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        output, complaints = process.communicate(timeout=60)
    assert set(complaints.split()) <= {"running"}
    status, objective, bound, seconds = json.loads(output)
    assert status == "interrupted"
    assert bound <= OPTIMUM + 1e-6 <= objective + 1e-5
    assert seconds < 200


@every_solver
def test_two_threads_leave_no_files(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    solution = solve(market_split(), solver, Limits(seconds=0.5, threads=2))
    assert solution.status == "limit"
    assert solution.bound <= OPTIMUM + 1e-6
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
