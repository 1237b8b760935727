"""What a method is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closecall.domain import Domain
from closecall.encode import Costs
from closecall.milp import Limits, OnProgress
from closecall.network import Network
from closecall.query import Goal
from closecall.stages import Clock

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a method needs; `nearest` is False when any witness in the domain will do."""

    network: Network
    domain: Domain
    goal: Goal
    clock: Clock
    nearest: bool = True
    gap: float = 1e-4
    solver: str = "highs"
    threads: int = 1
    costs: Costs | None = None
    on_progress: OnProgress | None = None

    @property
    def limits(self) -> Limits:
        return Limits(seconds=self.clock.left, threads=self.threads, relative_gap=self.gap / 2)


@dataclass(frozen=True)
class Finding:
    """A witness (if any) and the proven distance below which there is none; infinity: none in the domain."""

    witness: Vector | None
    lower: float
    nodes: int = 0
    interrupted: bool = False
