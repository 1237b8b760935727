"""Solvers by name: the unknown, the missing, and what is imported when."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from closecall.errors import InputError
from closecall.milp import Milp
from closecall.solvers import SOLVERS, available, solve

MODEL = Milp(
    objective=np.array([1.0]),
    matrix=csr_array(np.array([[2.0]])),
    row_lower=np.array([3.0]),
    row_upper=np.array([np.inf]),
    lower=np.array([0.0]),
    upper=np.array([9.0]),
    integer=np.array([True]),
)

ONLY_HIGHS = """
import json, sys
sys.path[:0] = {path!r}
for package in ("pyscipopt", "gurobipy", "cplex"):
    sys.modules[package] = None
import numpy as np
from scipy.sparse import csr_array
from closecall.errors import MissingExtraError
from closecall.milp import Milp
from closecall.solvers import available, solve
one = np.ones(1)
milp = Milp(one, csr_array([[2.0]]), 3 * one, 9 * one, 0 * one, 9 * one, np.array([True]))
messages = []
for solver in ("scip", "gurobi", "cplex"):
    try:
        solve(milp, solver)
    except MissingExtraError as missing:
        messages.append(str(missing))
print(json.dumps([available(), messages, solve(milp).objective, "torch" in sys.modules]))
"""


def test_unknown_solver_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"one of highs, scip, gurobi, cplex; 'glpk' is not known"):
        solve(MODEL, "glpk")


def test_highs_is_the_default() -> None:
    assert "highs" in available()
    assert set(available()) <= set(SOLVERS)
    assert solve(MODEL).objective == 2.0


def test_highs_alone_is_enough() -> None:
    script = ONLY_HIGHS.format(path=sys.path)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names, messages, objective, torch = json.loads(run.stdout)
    assert names == ["highs"]
    assert messages == [
        f'The {solver} solver needs an optional package: pip install "closecall[{solver}]".'
        for solver in ("scip", "gurobi", "cplex")
    ]
    assert objective == 2.0
    assert not torch
