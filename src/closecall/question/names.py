"""The names that a question and the effort for it may use, known without importing anything heavy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

NormName = Literal["l1", "l2", "linf", "l0"]
Outputs = Literal["logits", "relu"]
MethodName = Literal["auto", "milp", "milp-improved", "milp-basic"]
SolverName = Literal["highs", "scip", "gurobi", "cplex"]
# The number of a class or several, any other class, or that of the paper.
Target = int | Sequence[int] | Literal["any", "paper"]

NORM_NAMES: tuple[str, ...] = get_args(NormName)
OUTPUT_NAMES: tuple[str, ...] = get_args(Outputs)
METHOD_NAMES: tuple[str, ...] = get_args(MethodName)
SOLVER_NAMES: tuple[str, ...] = get_args(SolverName)
