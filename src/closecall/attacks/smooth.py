"""Images that do well by their scores and are smooth: proximal gradient steps for total variation.

Each step goes up the slope of the scores and then to the nearest image of less total variation, in the dual:
argmin ½‖v − z‖² + λ Σ|D v| = z − λ Dᵀ·y for the best |y| ≤ 1, which is kept from step to step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.question.variation import variation
from closecall.settings import DEFAULT, Smooth

ValueAndSlope = Callable[[Vector], tuple[float, Vector]]
MOST_CURVED = 8.0  # no pixel of a picture has more than four neighbours, so ‖D‖² ≤ 8


def climb_smoothly(
    value_and_slope: ValueAndSlope,
    box: tuple[Vector, Vector],
    differences: csr_array,
    weight: float,
    start: Vector,
    until: float,
    settings: Smooth = DEFAULT.smooth,
) -> Vector:
    """The best on climbs from a start, the middle, the lower end, and from there by growing weights."""
    low, high = box
    found: list[tuple[float, Vector]] = []

    def climb(begin: Vector, share: float = 1.0, steps: int = settings.steps) -> Vector:
        trail = Trail(value_and_slope, box, differences, share * weight, settings)
        point = trail.climbed(begin, until, steps)
        value = value_and_slope(point)[0] - weight * variation(differences, point)
        found.append((value, point))
        return point

    for begin in ((low + high) / 2, low, start):
        climb(begin)
    point = low
    for share in settings.growing_weights:
        point = climb(point, share, settings.steps if share == 1.0 else settings.steps // 2)
    return max(found, key=lambda pair: pair[0])[1]


class Trail:
    """One climb: its last multipliers and the box it keeps to."""

    def __init__(
        self,
        value_and_slope: ValueAndSlope,
        box: tuple[Vector, Vector],
        differences: csr_array,
        weight: float,
        settings: Smooth,
    ) -> None:
        self.value_and_slope, self.weight, self.settings = value_and_slope, weight, settings
        self.low, self.high = box
        self.reach = float((self.high - self.low).max())
        self.differences, self.back = differences, csr_array(differences.T)
        self.multipliers = np.zeros(differences.shape[0])

    def climbed(self, point: Vector, until: float, steps: int) -> Vector:
        """The best of so many steps, which shorten like 1/√k."""
        best, most = point, -np.inf
        for step in range(steps):
            if step and out_of_time(until):
                break
            value, slope = self.value_and_slope(point)
            value -= self.weight * variation(self.differences, point)
            if value > most:
                best, most = point, value
            steepest = float(np.abs(slope).max(initial=0.0))
            if not (steepest > 0 or self.weight > 0):
                break
            length = self.settings.first_step * self.reach / np.sqrt(step + 1.0)
            length /= steepest if steepest > 0 else 1.0
            point = np.clip(self.smoothed(point + length * slope, length), self.low, self.high)
        return best

    def smoothed(self, point: Vector, length: float) -> Vector:
        """The nearest image, weighed against its total variation, by a few steps in the dual."""
        most = length * self.weight
        if most == 0:
            return point
        for _ in range(self.settings.dual_steps):
            apart = self.differences @ (point - most * (self.back @ self.multipliers))
            self.multipliers = np.clip(self.multipliers + apart / (MOST_CURVED * most), -1.0, 1.0)
        return np.asarray(point - most * (self.back @ self.multipliers))
