"""What is said of a solver's tolerances is what the solver itself says when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from closecall.errors import InputError
from closecall.milp import Limits, Milp
from closecall.solvers import SOLVERS, available, tolerances_of

MODEL = Milp(
    objective=np.array([1.0]),
    matrix=csr_array(np.array([[2.0]])),
    row_lower=np.array([3.0]),
    row_upper=np.array([np.inf]),
    lower=np.array([0.0]),
    upper=np.array([9.0]),
    integer=np.array([True]),
)


def asked_of_highs(name: str) -> float:
    from closecall.solvers import highs

    return float(highs._hand_over(MODEL, Limits()).getOptionValue(name)[1])


def asked_of_scip(name: str) -> float:
    from closecall.solvers import scip

    model = scip.Model()
    scip._set_options(model, Limits())
    return float(model.getParam(name))


def asked_of_cplex(name: str) -> float:
    from closecall.solvers import cplex

    with cplex.cplex.Cplex() as model:
        cplex._set_options(model, Limits())
        parameter: Any = model.parameters
        for part in name.split("."):
            parameter = getattr(parameter, part)
        return float(parameter.get())


ASKED: dict[str, Callable[[str], float]] = {
    "highs": asked_of_highs,
    "scip": asked_of_scip,
    "cplex": asked_of_cplex,
}


@pytest.mark.parametrize("solver", ASKED)
def test_the_solver_has_taken_them(solver: str) -> None:
    if solver not in available():
        pytest.skip(f"{solver} is not installed")
    told = tolerances_of(solver)
    assert told
    assert told == {name: ASKED[solver](name) for name in told}


def test_gurobi_takes_them_as_they_are() -> None:
    gurobi = pytest.importorskip("gurobipy")
    with gurobi.Env(empty=True) as environment:
        environment.setParam("OutputFlag", 0)
        environment.start()
        with gurobi.Model(env=environment) as model:
            for name, value in tolerances_of("gurobi").items():
                model.setParam(name, value)
                assert model.getParamInfo(name)[2] == value


def test_each_solver_has_its_own() -> None:
    told = [tuple(tolerances_of(solver)) for solver in available()]
    assert len(set(told)) == len(told)


def test_an_unknown_solver_is_named() -> None:
    with pytest.raises(InputError, match=f"must be one of {', '.join(SOLVERS)}; 'excel' is not known"):
        tolerances_of("excel")
