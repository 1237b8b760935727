"""The share of images that are further than every radius, as steps down."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from closecall.report.axes import Axis

STILL_RIGHT = Axis(0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0], "share still right", percent=True)
BEYOND = 1.03  # an axis of radii ends so little beyond the furthest known distance: room for the last step


def jumps_of(distances: Sequence[float], end: float) -> list[float]:
    """The radii at which a share can change, from 0 to the end of the axis."""
    return sorted({0.0, end} | {value for value in distances if 0 <= value <= end})


def both_sides(jumps: Sequence[float]) -> list[float]:
    """Each radius twice, just before and just after the jump there, from 0 on."""
    return [radius for jump in jumps for radius in (jump, jump)][1:]


def surviving(distances: Sequence[float], jumps: Sequence[float]) -> list[float]:
    """The share further than each radius, just before and just after each jump, from 0 on."""
    far = np.sort(np.asarray(distances, dtype=np.float64))
    before, after = np.searchsorted(far, jumps, side="left"), np.searchsorted(far, jumps, side="right")
    shares = 1.0 - np.stack([before, after], axis=1).ravel() / len(far)
    return [float(share) for share in shares[1:]]


def furthest(distances: Sequence[float]) -> float:
    """Where an axis of radii ends."""
    return BEYOND * max((value for value in distances if math.isfinite(value)), default=1.0)
