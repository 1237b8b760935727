"""Images of few values: the 256 numbers that the pixels of an 8-bit picture are read as.

Distances from an image of such numbers to another take few values, too: so many steps in L∞ and L1, the
root of so many in L2, up to the rounding of the numbers to float32. What is proven for a distance just above
one of them is proven up to the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from closecall.arrays import Mask, Vector

if TYPE_CHECKING:
    from closecall.question.domain import Domain

STEPS = 255
# How far above a value of the distance a bound must be to be taken for more than it, as a share of a step and
# of the distance: far more than rounding and the tolerances of solvers.
CLEARLY, CLEARLY_OF_ALL = 1e-3, 2e-6
# What a limit is widened by at most, for the rounding of levels: less than checks of verdicts allow.
MOST_ALLOWED = 0.9e-6
# So many differences of pixels and levels are sorted; of more, none are.
MOST_DIFFERENCES = 4_000_000
# A share of a sum of so many terms by which it may be off in float64.
SUMMING = 1e-11


def levels_of(pixel_range: Sequence[float]) -> Vector:
    """The numbers that 8 bits stand for: for the range [0, 1] those that a picture file is read as."""
    low, high = pixel_range
    numbers = (low + np.arange(STEPS + 1) / STEPS * (high - low)).astype(np.float32)
    ends = np.array([low, high]).astype(np.float32)
    ends = np.where(
        ends.astype(np.float64) < low, np.nextafter(ends, np.float32(np.inf)),
        np.where(ends.astype(np.float64) > high, np.nextafter(ends, np.float32(-np.inf)), ends),
    )  # fmt: skip
    return np.asarray(np.clip(numbers, *ends).astype(np.float64))


def on_levels(image: Vector, levels: Vector) -> Mask:
    """Which pixels are among the levels."""
    return np.asarray(nearest_levels(image, levels) == image)


def nearest_levels(image: Vector, levels: Vector) -> Vector:
    """The level that is nearest to each pixel."""
    return np.asarray(levels[np.rint(places(image, levels)).astype(np.int64)])


def places(image: Vector, levels: Vector) -> Vector:
    """Where pixels lie among the levels, 0 for the first; between two of them in proportion."""
    return np.asarray(np.interp(image, levels, np.arange(len(levels))))


def step_of(levels: Vector) -> float:
    return float((levels[-1] - levels[0]) / (len(levels) - 1))


def unevenness(levels: Vector) -> float:
    """A difference of two levels is a whole number of steps up to this: they are rounded to float32."""
    off = levels - levels[0] - np.arange(len(levels)) * step_of(levels)
    return float(np.ptp(off) + 1e-15 * np.abs(levels).max())


def snapped(lower: Vector, upper: Vector, centre: Vector, levels: Vector) -> tuple[Vector, Vector]:
    """The smallest box around the centre and all levels between two ends, which may be off by rounding."""
    allowance = min(unevenness(levels), 0.25 * np.diff(levels).min())
    least = np.searchsorted(levels, lower - allowance)
    most = np.searchsorted(levels, upper + allowance, side="right") - 1
    some, last = least <= most, len(levels) - 1
    low = np.where(some, np.minimum(levels[np.minimum(least, last)], centre), centre)
    high = np.where(some, np.maximum(levels[np.maximum(most, 0)], centre), centre)
    return low, high


@dataclass(frozen=True, eq=False)
class Distances:
    """The values that the distance of an image of levels may take in a domain."""

    domain: Domain
    levels: Vector

    @cached_property
    def step(self) -> float:
        return step_of(self.levels)

    @cached_property
    def uneven(self) -> float:
        return unevenness(self.levels)

    @cached_property
    def least(self) -> float:
        """No image of levels is nearer than this; infinity where the domain holds none."""
        domain, place = self.domain, places(self.domain.centre, self.levels)
        around = self.levels[np.array([np.floor(place), np.ceil(place)], dtype=np.int64)]
        inside = (around >= domain.lower) & (around <= domain.upper)
        shifts = np.where(inside, np.abs(around - domain.centre), np.inf).min(axis=0)
        return float(domain.norm.distance(shifts)) if np.isfinite(shifts).all() else math.inf

    @cached_property
    def regular(self) -> bool:
        """Whether the original is an image of levels itself."""
        return bool(on_levels(self.domain.centre, self.levels).all())

    @cached_property
    def free(self) -> int:
        return int((self.domain.upper > self.domain.lower).sum())

    @cached_property
    def differences(self) -> Vector | None:
        """In L∞: every value that one pixel's change may have, in order; None where these are too many."""
        domain = self.domain
        moving = np.unique(domain.centre[domain.upper > domain.lower])
        if len(moving) * len(self.levels) > MOST_DIFFERENCES:
            return None
        values = np.unique(np.abs(self.levels[None] - moving[:, None]))
        return values if self.least == 0 else np.unique(np.append(values[values > self.least], self.least))

    def clearly(self, distance: float) -> float:
        """How far apart two numbers near a distance must be to differ by more than rounding."""
        between = self.step
        if self.domain.norm.name == "l2" and distance > 0:
            between = min(between, self.step**2 / (2 * distance))
        return max(CLEARLY * between, CLEARLY_OF_ALL * distance)

    def ends(self, count: int) -> tuple[float, float]:
        """Between which numbers a distance of so many steps lies; in L2 of the root of so many."""
        if count <= 0:
            return 0.0, 0.0
        if self.domain.norm.name == "l0":
            return float(count), float(count)
        moved = min(count, self.free)
        if self.domain.norm.name == "l1":
            off = moved * self.uneven + SUMMING * count * self.step
            return count * self.step - off, count * self.step + off
        steps = min(float(count), math.sqrt(moved * float(count)))
        off = 2 * self.uneven * self.step * steps + moved * self.uneven**2 + SUMMING * count * self.step**2
        middle = count * self.step**2
        return math.sqrt(max(0.0, middle - off)), math.sqrt(middle + off)

    def count(self, distance: float) -> int:
        """So many steps, about."""
        if self.domain.norm.name == "l0":
            return round(distance)
        steps = distance / self.step
        return round(steps**2 if self.domain.norm.name == "l2" else steps)

    def countable(self, distance: float) -> bool:
        """Whether distances near this one are whole numbers of steps, or roots of these, and told apart."""
        if self.domain.norm.name == "linf" or not (self.regular or self.domain.norm.name == "l0"):
            return False
        count = self.count(distance) + 1
        return self.ends(count)[1] < self.ends(count + 1)[0]

    def at_least(self, lower: float) -> float:
        """The least distance that an image of levels may have if none is nearer than `lower`."""
        lower = max(lower, self.least)
        if math.isinf(lower):
            return lower
        clearly = self.clearly(lower)
        if self.domain.norm.name == "linf" and self.differences is not None:
            place = int(np.searchsorted(self.differences, lower - clearly))
            return math.inf if place == len(self.differences) else max(lower, float(self.differences[place]))
        if not self.countable(lower):
            return lower
        count = max(0, self.count(lower) - 1)
        while self.ends(count)[1] < lower - clearly:
            count += 1
        return max(lower, self.ends(count)[0])

    def below(self, distance: float) -> float:
        """No less than the largest value that a distance may take below another; −infinity if none."""
        if self.domain.norm.name == "linf" and self.differences is not None:
            place = int(np.searchsorted(self.differences, distance)) - 1
            return float(self.differences[place]) if place >= 0 else -math.inf
        if not self.countable(distance):
            return distance if distance > self.least else -math.inf
        count = self.count(distance) + 1
        while count >= 0 and self.ends(count)[0] >= distance:
            count -= 1
        return self.ends(count)[1] if count >= 0 else -math.inf

    def enough_for(self, distance: float, gap: float) -> float:
        """What must be proven so that nothing is nearer than a distance by more than a gap."""
        wanted = distance * (1.0 - gap)
        if math.isinf(wanted):
            return wanted
        before = self.below(wanted)
        return min(wanted, before + 1.5 * self.clearly(distance)) if math.isfinite(before) else 0.0

    def up_to(self, most: float) -> float:
        """A limit as the largest distance that it includes, and a little more.

        So many 255ths are meant to include a difference of as many steps, whatever it is rounded to.
        """
        if math.isinf(most):
            return most
        rounded = max(1, min(self.count(most), self.free)) * self.uneven if self.regular else 0.0
        limit = most + min(rounded, MOST_ALLOWED * max(1.0, most))
        before = self.below(float(np.nextafter(limit, np.inf)))
        return min(limit, max(before, 0.0) + self.clearly(most) / 2)
