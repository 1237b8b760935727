"""How hard to try: what is refused, and that the names are those of the methods and solvers there are."""

from __future__ import annotations

import math
import re
from typing import Any, get_args

import numpy as np
import pytest

from closecall.errors import QueryError
from closecall.question.effort import Effort
from closecall.question.names import MethodName, NormName, SolverName
from closecall.question.norms import NORMS
from closecall.search.methods import METHODS
from closecall.solvers import SOLVERS


def test_the_literals_name_what_there_is() -> None:
    assert get_args(MethodName) == tuple(METHODS)
    assert get_args(SolverName) == tuple(SOLVERS)
    assert get_args(NormName) == tuple(NORMS)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"method": "fast"}, "unknown method 'fast': choose one of auto, milp"),
        ({"method": ["auto"]}, "unknown method ['auto']"),
        ({"solver": "excel"}, "unknown solver 'excel': choose one of highs, scip, gurobi, cplex."),
        ({"time_limit": 0}, "the time limit must be a positive number of seconds, got 0."),
        ({"time_limit": math.inf}, "a positive number of seconds, got inf."),
        ({"time_limit": "60"}, "the time limit must be a number, got '60'."),
        ({"threads": 0}, "threads must be at least 1, got 0."),
        ({"threads": 1.5}, "threads must be a whole number, got 1.5."),
        ({"threads": math.inf}, "threads must be a whole number, got inf."),
        ({"threads": True}, "the threads must be a number, got True."),
        ({"gap": 1}, "the gap must be at least 0 and below 1, got 1."),
        ({"gap": math.nan}, "the gap must be at least 0 and below 1, got nan."),
    ],
)
def test_an_effort_without_meaning(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(QueryError, match=re.escape(words)):
        Effort(**wish)


def test_numbers_of_numpy_will_do() -> None:
    assert Effort(threads=np.int64(2), time_limit=np.float32(1.5)).threads == 2
