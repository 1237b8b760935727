"""Mixed integer linear programs as arrays; solvers know nothing else."""

from closecall.milp.program import (
    EnoughError,
    Limits,
    Milp,
    OnProgress,
    Solution,
    Status,
    objective_at,
    violation,
)

__all__ = ["EnoughError", "Limits", "Milp", "OnProgress", "Solution", "Status", "objective_at", "violation"]
