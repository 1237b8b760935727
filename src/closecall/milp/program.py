"""A mixed integer linear program as plain arrays: what every solver is given.

minimise   objective · v + Σ quadratic · v²
subject to row_lower ≤ matrix · v ≤ row_upper
           lower ≤ v ≤ upper,  v integer where `integer`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Vector

Status = Literal["optimal", "infeasible", "unbounded", "limit", "interrupted"]


@dataclass(frozen=True)
class Milp:
    """A minimisation problem; `quadratic` (if given) is a non-negative diagonal."""

    objective: Vector
    matrix: csr_array
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integer: NDArray[np.bool_]
    quadratic: Vector | None = None
    column_names: tuple[str, ...] = field(default=(), repr=False)

    @property
    def columns(self) -> int:
        return len(self.objective)

    @property
    def rows(self) -> int:
        return len(self.row_lower)

    @property
    def binaries(self) -> int:
        return int(self.integer.sum())


@dataclass(frozen=True)
class Limits:
    """When a solver must stop."""

    seconds: float = 60.0
    threads: int = 1
    relative_gap: float = 1e-6
    absolute_gap: float = 1e-9


@dataclass(frozen=True)
class Solution:
    """What a solver says; nothing in it is trusted before it is replayed.

    `bound` is the solver's proven lower bound on the objective, −inf when it has none;
    `values` is the best feasible point, None when it has none.
    """

    status: Status
    values: Vector | None
    objective: float
    bound: float
    nodes: int
    seconds: float


def objective_at(milp: Milp, values: Vector) -> float:
    """The objective of a point, feasible or not."""
    linear = float(milp.objective @ values)
    return linear if milp.quadratic is None else linear + float(milp.quadratic @ values**2)


def violation(milp: Milp, values: Vector) -> float:
    """By how much a point breaks the worst of its rows, bounds and integrality; 0 when it breaks none."""
    activity = milp.matrix @ values
    whole = values[milp.integer]
    excesses = (
        milp.row_lower - activity,
        activity - milp.row_upper,
        milp.lower - values,
        values - milp.upper,
        np.abs(whole - np.round(whole)),
    )
    return max(float(excess.max(initial=0.0)) for excess in excesses)


class EnoughError(Exception):
    """Raised by whoever watches a solver's progress: what is known by now will do."""


class OnProgress(Protocol):
    """Called now and then with the proven lower bound, the best objective, the nodes and the seconds.

    It may raise EnoughError; the solver then stops as at a limit.
    """

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None: ...
