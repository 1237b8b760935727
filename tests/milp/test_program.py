"""Points of a model measured by hand; MPS and LP files read back by other people's readers."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from closecall.errors import InputError
from closecall.milp import Milp, objective_at, violation
from closecall.milp.lp_format import write_lp, write_milp
from closecall.milp.mps_format import write_mps
from closecall.solvers import available, solve

INF = float("inf")

# every kind of row and column: equality, both sides, one side, no side; free, fixed, half-bounded, integer
EVERYTHING = Milp(
    objective=np.array([1.0, -2.0, 0.1, 3.0, -1.0, 0.0]),
    matrix=csr_array(
        np.array(
            [
                [1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
                [0.0, 1.0, -1.0, 0.0, 1.0 / 3.0, 0.0],
                [1.0, 0.0, 2.0, 1.0, 0.0, 0.0],
                [0.0, 0.0, 1.0, 0.0, 1.0, 0.0],
                [5.0, 5.0, 5.0, 5.0, 5.0, 0.0],
            ]
        )
    ),
    row_lower=np.array([2.5, -1.0, -4.0, -INF, -INF]),
    row_upper=np.array([2.5, 3.0, INF, 4.0, INF]),
    lower=np.array([-INF, 0.0, -INF, 2.0, -3.0, 1.0]),
    upper=np.array([INF, 7.0, 5.0, 2.0, INF, INF]),
    integer=np.array([False, True, True, False, True, False]),
)
MIXED_QUADRATIC = replace(EVERYTHING, quadratic=np.array([0.5, 0.0, 1.0, 0.0, 0.25, 0.0]))
CONTINUOUS_QUADRATIC = replace(MIXED_QUADRATIC, integer=np.zeros(6, dtype=bool))


def highs_optimum(path: Path) -> float:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def scip_optimum(path: Path) -> float:
    model = pytest.importorskip("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    return float(model.getObjVal())


def gurobi_optimum(path: Path) -> float:
    gurobi = pytest.importorskip("gurobipy")
    with gurobi.Env(params={"OutputFlag": 0}) as environment, gurobi.read(str(path), environment) as model:
        model.optimize()
        return float(model.ObjVal)


def cplex_optimum(path: Path) -> float:
    cplex = pytest.importorskip("cplex")
    with cplex.Cplex() as model:
        for silence in (model.set_log_stream, model.set_results_stream, model.set_warning_stream):
            silence(None)
        model.read(str(path))
        model.solve()
        return float(model.solution.get_objective_value())


READERS = {"highs": highs_optimum, "scip": scip_optimum, "gurobi": gurobi_optimum, "cplex": cplex_optimum}


def test_objective_of_a_point() -> None:
    values = np.array([1.0, 2.0, 3.0, 2.0, -2.0, 1.0])
    assert objective_at(EVERYTHING, values) == pytest.approx(1 - 4 + 0.3 + 6 + 2)
    assert objective_at(MIXED_QUADRATIC, values) == pytest.approx(5.3 + 0.5 + 9 + 1)


def test_violation_finds_the_worst_break() -> None:
    feasible = np.array([0.5, 2.0, 1.0, 2.0, 0.0, 1.0])
    assert violation(EVERYTHING, feasible) == 0.0
    for column, value, broken in [
        (0, 0.75, 0.25),  # the equality
        (1, 2.5, 0.5),  # integrality and the equality
        (2, 6.0, 3.0),  # the range's lower side; its upper bound and the one-sided row are broken by less
        (4, 4.0, 1.0),  # the row with an upper side only
        (5, 0.5, 0.5),  # a lower bound
        (3, 2.125, 0.125),  # a fixed column
    ]:
        values = feasible.copy()
        values[column] = value
        assert violation(EVERYTHING, values) == pytest.approx(broken)


@pytest.mark.parametrize("reader", ["highs", "scip", "gurobi", "cplex"])
@pytest.mark.parametrize("named", [False, True])
def test_mps_read_back_has_the_same_optimum(reader: str, named: bool, tmp_path: Path) -> None:
    milp = replace(EVERYTHING, column_names=tuple(f"x[{j},0]" for j in range(6)) if named else ())
    write_mps(milp, tmp_path / "model.mps")
    assert READERS[reader](tmp_path / "model.mps") == pytest.approx(solve(milp).objective, abs=1e-6)


@pytest.mark.parametrize("reader", ["highs", "gurobi", "cplex"])
def test_mps_keeps_a_quadratic_objective(reader: str, tmp_path: Path) -> None:
    milp = CONTINUOUS_QUADRATIC if reader == "highs" else MIXED_QUADRATIC
    write_mps(milp, tmp_path / "model.mps")
    assert READERS[reader](tmp_path / "model.mps") == pytest.approx(solve(milp).objective, abs=1e-5)


def test_solvers_agree_on_every_kind_of_row_and_column() -> None:
    for milp in (EVERYTHING, MIXED_QUADRATIC, CONTINUOUS_QUADRATIC):
        optima = [solve(milp, solver).objective for solver in available()]
        assert optima == pytest.approx([optima[0]] * len(optima), abs=1e-5)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10_000), columns=st.integers(1, 6), rows=st.integers(0, 5))
def test_mps_read_back_is_the_same_model(
    tmp_path_factory: pytest.TempPathFactory, seed: int, columns: int, rows: int
) -> None:
    random = np.random.default_rng(seed)
    sides = np.sort(random.normal(size=(2, rows)), axis=0)
    bounds = np.sort(random.normal(size=(2, columns)), axis=0)
    milp = Milp(
        objective=random.normal(size=columns),
        matrix=csr_array(random.normal(size=(rows, columns)) * (random.random((rows, columns)) < 0.7)),
        row_lower=np.where(random.random(rows) < 0.5, sides[0], -INF),
        row_upper=sides[1],
        lower=np.where(random.random(columns) < 0.7, bounds[0], -INF),
        upper=np.where(random.random(columns) < 0.7, bounds[1], INF),
        integer=random.random(columns) < 0.4,
    )
    path = tmp_path_factory.mktemp("mps") / "model.mps"
    write_mps(milp, path)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(path))
    read = highs.getLp()
    assert np.array_equal(read.col_cost_, milp.objective)
    assert np.array_equal(read.col_lower_, milp.lower)
    assert np.array_equal(read.col_upper_, milp.upper)
    assert np.array_equal(read.row_lower_, milp.row_lower)
    assert read.row_upper_ == pytest.approx(milp.row_upper, rel=1e-15)  # written as lower side and width
    kinds = read.integrality_ or [highspy.HighsVarType.kContinuous] * columns
    assert [kind == highspy.HighsVarType.kInteger for kind in kinds] == milp.integer.tolist()
    highs.ensureColwise()
    matrix = highs.getLp().a_matrix_
    entries = csr_array((matrix.value_, matrix.index_, matrix.start_), shape=(columns, rows)).T
    assert np.array_equal(entries.toarray(), milp.matrix.toarray())


@pytest.mark.parametrize("names", [("a b", "c"), ("a", "a"), ("", "b"), ("a",)])
def test_mps_refuses_names_it_cannot_write_and_keeps_the_old_file(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    milp = Milp(
        objective=np.ones(2),
        matrix=csr_array((0, 2)),
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
        lower=np.zeros(2),
        upper=np.ones(2),
        integer=np.zeros(2, dtype=bool),
        column_names=names,
    )
    path = tmp_path / "model.mps"
    path.write_text("old")
    with pytest.raises(InputError, match="2 different column names"):
        write_mps(milp, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_sizes() -> None:
    assert (EVERYTHING.columns, EVERYTHING.rows, EVERYTHING.binaries) == (6, 5, 3)


@pytest.mark.parametrize("reader", READERS)
def test_lp_read_back_has_the_same_optimum(reader: str, tmp_path: Path) -> None:
    """With a row without entries, too."""
    matrix = csr_array(np.vstack([EVERYTHING.matrix.toarray(), np.zeros(6)]))
    sides = np.append(EVERYTHING.row_lower, -1.0), np.append(EVERYTHING.row_upper, INF)
    milp = replace(EVERYTHING, matrix=matrix, row_lower=sides[0], row_upper=sides[1])
    write_milp(milp, tmp_path / "model.lp")
    assert READERS[reader](tmp_path / "model.lp") == pytest.approx(solve(EVERYTHING).objective, abs=1e-6)


@pytest.mark.parametrize("reader", READERS)
def test_lp_keeps_a_quadratic_objective(reader: str, tmp_path: Path) -> None:
    milp = CONTINUOUS_QUADRATIC if reader == "highs" else MIXED_QUADRATIC
    write_lp(milp, tmp_path / "model.lp")
    assert READERS[reader](tmp_path / "model.lp") == pytest.approx(solve(milp).objective, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_lp_read_back_has_the_same_numbers(seed: int, tmp_path: Path) -> None:
    """Bit by bit, on rows long enough to be folded; an upper side beside a lower one is a row of its own."""
    random = np.random.default_rng(seed)
    rows, columns = 7, 40
    sides = np.sort(random.normal(size=(2, rows)), axis=0)
    bounds = np.sort(random.normal(size=(2, columns)), axis=0) * 10.0 ** random.integers(-9, 9, columns)
    milp = Milp(
        objective=random.normal(size=columns) * 10.0 ** random.integers(-9, 9, columns),
        matrix=csr_array(random.normal(size=(rows, columns)) * (random.random((rows, columns)) < 0.7)),
        row_lower=np.where(np.arange(rows) % 3 != 0, sides[0], -INF),
        row_upper=np.where(np.arange(rows) % 3 != 1, sides[1], INF),
        lower=np.where(random.random(columns) < 0.7, bounds[0], -INF),
        upper=np.where(random.random(columns) < 0.7, bounds[1], INF),
        integer=random.random(columns) < 0.4,
        column_names=tuple(f"rise_{seed}_{place}" for place in range(columns)),
    )
    write_lp(milp, tmp_path / "model.lp")
    assert max(map(len, (tmp_path / "model.lp").read_text().splitlines())) <= 255
    both = np.isfinite(milp.row_lower) & np.isfinite(milp.row_upper)
    order = np.repeat(np.arange(rows), 1 + both)
    second = np.append(False, order[1:] == order[:-1])
    first = both[order] & ~second
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(tmp_path / "model.lp")) == highspy.HighsStatus.kOk
    read = highs.getLp()
    assert tuple(read.col_names_) == milp.column_names
    assert np.array_equal(read.col_cost_, milp.objective)
    assert np.array_equal(read.col_lower_, milp.lower)
    assert np.array_equal(read.col_upper_, milp.upper)
    assert np.array_equal(read.row_lower_, np.where(second, -INF, milp.row_lower[order]))
    assert np.array_equal(read.row_upper_, np.where(first, INF, milp.row_upper[order]))
    assert [kind == highspy.HighsVarType.kInteger for kind in read.integrality_] == milp.integer.tolist()
    highs.ensureColwise()
    matrix = highs.getLp().a_matrix_
    entries = csr_array((matrix.value_, matrix.index_, matrix.start_), shape=(columns, len(order))).T
    assert np.array_equal(entries.toarray(), milp.matrix.toarray()[order])


def test_a_compressed_mps_file(tmp_path: Path) -> None:
    write_milp(EVERYTHING, tmp_path / "model.mps")
    write_milp(EVERYTHING, tmp_path / "model.mps.gz")
    packed = gzip.decompress((tmp_path / "model.mps.gz").read_bytes())
    assert packed == (tmp_path / "model.mps").read_bytes()


@pytest.mark.parametrize("name", ["model", "model.txt", "model.gz", "lp"])
def test_a_name_that_does_not_say_how(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is written as .mps, .mps.gz, .lp"):
        write_milp(EVERYTHING, tmp_path / name)


@pytest.mark.parametrize("name", ["a b", "free", "e12", "infinite", "x[1]", "1x", "c1", ""])
def test_lp_refuses_names_that_a_reader_would_not_take(name: str, tmp_path: Path) -> None:
    names = (name, *(f"c{j}" for j in range(1, 6)))
    with pytest.raises(InputError, match="6 different column names"):
        write_lp(replace(EVERYTHING, column_names=names), tmp_path / "model.lp")
    assert list(tmp_path.iterdir()) == []
