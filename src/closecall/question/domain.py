"""Where an image may go: the pixel box, cut by a ball around the image."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import OUTWARD, Vector
from closecall.question.norms import Norm


def in_float32(point: Vector, lower: Vector | float, upper: Vector | float) -> NDArray[np.float32]:
    """Round to float32, as models take images, without leaving the box."""
    image = np.asarray(point, dtype=np.float32)
    image = np.where(image.astype(np.float64) > upper, np.nextafter(image, np.float32(-np.inf)), image)
    return np.where(image.astype(np.float64) < lower, np.nextafter(image, np.float32(np.inf)), image)


@dataclass(frozen=True, eq=False)
class Domain:
    """{ v : lower ≤ v ≤ upper, ‖v − centre‖ ≤ radius }, with the centre inside the box."""

    centre: Vector
    lower: Vector
    upper: Vector
    norm: Norm
    radius: float = np.inf

    @property
    def down(self) -> Vector:
        """How far each pixel may fall; one pixel alone can use up the whole radius, except in L0."""
        room = self.centre - self.lower
        return room if self.norm.name == "l0" else np.minimum(room, self.radius)

    @property
    def up(self) -> Vector:
        room = self.upper - self.centre
        return room if self.norm.name == "l0" else np.minimum(room, self.radius)

    def maximum(self, rows: Vector) -> Vector:
        """An upper bound, exact but for outward rounding, on rows·v over the domain."""
        largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
        value = rows @ self.centre + self.norm.most(rows, self.down, self.up, self.radius)
        return np.asarray(value + OUTWARD * (np.abs(rows) @ largest))

    def furthest(self, rows: Vector) -> Vector:
        """The shifts from the centre that maximise rows·v over the domain."""
        return self.norm.furthest(rows, self.down, self.up, self.radius)

    def box(self) -> tuple[Vector, Vector]:
        """The smallest box around the domain."""
        return self.centre - self.down, self.centre + self.up

    def within(self, radius: float) -> Domain:
        return replace(self, radius=min(self.radius, radius))

    def distance(self, point: Vector) -> float:
        return float(self.norm.distance(np.asarray(point, dtype=np.float64).ravel() - self.centre))

    def pulled_inside(self, point: Vector) -> Vector:
        """The point, or where the way to it leaves the ball: a solver's point may be a little outside."""
        distance = self.distance(point)
        if distance <= self.radius or self.norm.name == "l0":
            return point
        return np.asarray(self.centre + (self.radius / distance) * (1 - 1e-12) * (point - self.centre))

    def clip(self, point: Vector) -> Vector:
        """The nearest point of the box (not of the ball)."""
        return np.clip(point, self.lower, self.upper)
