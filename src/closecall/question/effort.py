"""How hard to try to answer a question."""

from __future__ import annotations

import math
from dataclasses import dataclass

from closecall.question.checks import check, check_choice, check_number
from closecall.question.names import METHOD_NAMES, SOLVER_NAMES, MethodName, SolverName


@dataclass(frozen=True)
class Effort:
    """By which method and solver, for how many seconds, on how many threads, and to which relative gap.

    Nothing here changes what an answer means, only whether there is one.
    """

    method: MethodName = "auto"
    solver: SolverName = "highs"
    time_limit: float = 60.0
    threads: int = 1
    gap: float = 1e-4

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHOD_NAMES)
        check_choice("solver", self.solver, SOLVER_NAMES)
        for name in ("time limit", "threads", "gap"):
            check_number(name, getattr(self, name.replace(" ", "_")))
        check(
            math.isfinite(self.time_limit) and self.time_limit > 0,
            f"the time limit must be a positive number of seconds, got {self.time_limit:g}.",
        )
        check(self.threads >= 1, f"threads must be at least 1, got {self.threads}.")
        check(float(self.threads).is_integer(), f"threads must be a whole number, got {self.threads}.")
        check(0 <= self.gap < 1, f"the gap must be at least 0 and below 1, got {self.gap:g}.")
