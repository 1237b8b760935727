"""What a batched search knows at its end, and who is told on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from closecall.arrays import Vector
from closecall.milp import OnProgress

Status = Literal["proven", "witness", "limit", "interrupted"]


@dataclass(frozen=True)
class Outcome:
    """What is known at the end; no image of the box within the distance `lower` reaches the goal."""

    status: Status
    witness: Vector | None
    lower: float
    nodes: int
    seconds: float


@dataclass(frozen=True)
class Watch:
    """Who is told of the interval, and of each nearer witness."""

    on_progress: OnProgress | None = None
    on_witness: Callable[[Vector], object] | None = None
