"""Planes over the rises and falls of pixels, d ≥ 0, and how choices are bounded by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closecall.arrays import Indices, Vector


@dataclass(frozen=True, eq=False)
class Lead:
    """y = max(entries) exceeds the entry `leader` (−1: the constant 0) by at most offset + rise·d."""

    leader: Indices
    offset: Vector
    rise: Vector


@dataclass(frozen=True, eq=False)
class Planes:
    """low + below·d ≤ value ≤ high + above·d, a row for each unit."""

    low: Vector
    high: Vector
    below: Vector
    above: Vector

    def led_by(self, lead: Lead) -> Planes:
        """Planes of the maxima: the leader below, the leader and its lead above."""
        led = lead.leader >= 0
        low, high = np.where(led, self.low[lead.leader], 0.0), np.where(led, self.high[lead.leader], 0.0)
        below = np.where(led[:, None], self.below[lead.leader], 0.0)
        above = np.where(led[:, None], self.above[lead.leader], 0.0)
        return Planes(low, high + lead.offset, below, above + lead.rise)


def bound_positive_part(start: Vector, slopes: Vector, radius: float) -> tuple[Vector, Vector]:
    """max(0, start + slopes·d) ≤ offset + rise·d for all d ≥ 0 with Σ d ≤ radius."""
    return np.maximum(start, 0.0), np.maximum(slopes + np.minimum(start, 0.0)[:, None] / radius, 0.0)
