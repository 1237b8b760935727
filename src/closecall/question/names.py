"""The names that a question and the effort for it may use, and what they stand for; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

NormName = Literal["l1", "l2", "linf", "l0"]
Outputs = Literal["logits", "relu"]
ChangeName = Literal["brightness", "contrast", "brightness+contrast"]
Pixels = Literal["8bit"]
MethodName = Literal["auto", "milp", "milp-improved", "milp-basic"]
SolverName = Literal["highs", "scip", "gurobi", "cplex"]
# The number of a class or several, any other class, or that of the paper.
Target = int | Sequence[int] | Literal["any", "paper"]

NORM_NAMES: tuple[str, ...] = get_args(NormName)
OUTPUT_NAMES: tuple[str, ...] = get_args(Outputs)
CHANGE_NAMES: tuple[str, ...] = get_args(ChangeName)
PIXELS_NAMES: tuple[str, ...] = get_args(Pixels)
METHOD_NAMES: tuple[str, ...] = get_args(MethodName)
SOLVER_NAMES: tuple[str, ...] = get_args(SolverName)

# How far each number may go. Brightness: from all black to all white. Contrast: from all grey, which is none
# of it, to 10 times that of the image, where nearly every pixel is black or white.
CHANGE_LIMITS = {"brightness": (-1.0, 1.0), "contrast": (-1.0, 9.0)}
