"""Where an image may go: the pixel box, cut by a ball around the image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import OUTWARD, Mask, Vector
from closecall.question.levels import Distances, snapped
from closecall.question.norms import Norm


def in_float32(point: Vector, lower: Vector | float, upper: Vector | float) -> NDArray[np.float32]:
    """Round to float32, as models take images, without leaving the box."""
    image = np.asarray(point, dtype=np.float32)
    image = np.where(image.astype(np.float64) > upper, np.nextafter(image, np.float32(-np.inf)), image)
    return np.where(image.astype(np.float64) < lower, np.nextafter(image, np.float32(np.inf)), image)


@dataclass(frozen=True, eq=False)
class Domain:
    """{ v : lower ≤ v ≤ upper, ‖v − centre‖ ≤ radius }, with the centre inside the box.

    A `budget` is a ball in a second norm that cuts it once more: never L∞, which is a box, nor L2. With
    `levels`, only images count whose pixels are among these numbers, which rise; the box is around these.
    """

    centre: Vector
    lower: Vector
    upper: Vector
    norm: Norm
    radius: float = np.inf
    budget: tuple[Norm, float] | None = None
    levels: Vector | None = None

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
        """An upper bound on rows·v over the domain: exact but for outward rounding, and for a budget."""
        largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
        most = self.norm.most(rows, self.down, self.up, self.radius)
        if self.budget is not None:
            norm, amount = self.budget
            most = np.minimum(most, norm.most(rows, self.down, self.up, amount))
        value = rows @ self.centre + most
        return np.asarray(value + OUTWARD * (np.abs(rows) @ largest))

    def furthest(self, rows: Vector) -> Vector:
        """The shifts from the centre that maximise rows·v over the domain; with a budget, good ones."""
        if self.budget is None:
            return self.norm.furthest(rows, self.down, self.up, self.radius)
        norm, amount = self.budget
        if norm.name == "l0":
            useful = norm.furthest(rows, self.down, self.up, amount) != 0
            return self.norm.furthest(np.where(useful, rows, 0.0), self.down, self.up, self.radius)
        if self.norm.name == "linf":
            return norm.furthest(rows, self.down, self.up, amount)
        shifts = self.norm.furthest(rows, self.down, self.up, self.radius)
        lengths = norm.distance(shifts)[:, None]
        return np.asarray(shifts * np.minimum(1.0, amount / np.maximum(lengths, amount)))

    @property
    def sparse(self) -> bool:
        """Whether the number of pixels that change is limited: between two such points there need be none."""
        return self.norm.name == "l0" or (self.budget is not None and self.budget[0].name == "l0")

    def affords(self, point: Vector) -> bool:
        """Whether a point keeps to the budget."""
        if self.budget is None:
            return True
        norm, amount = self.budget
        return float(norm.distance(np.asarray(point, dtype=np.float64).ravel() - self.centre)) <= amount

    def only(self, allowed: Mask) -> Domain:
        """The same where other pixels keep the value of the centre."""
        lower, upper = (np.where(allowed, end, self.centre) for end in (self.lower, self.upper))
        return replace(self, lower=lower, upper=upper)

    def of_levels(self, levels: Vector) -> Domain:
        """The images of this domain whose pixels are among some levels; limits become values of these."""
        levels = np.unique(levels)
        lower, upper = snapped(self.lower, self.upper, self.centre, levels)
        whole = replace(self, lower=lower, upper=upper, levels=levels)
        radius, budget = whole.distances.up_to(self.radius), self.budget
        if budget is not None:
            norm, amount = budget
            budget = norm, replace(whole, norm=norm).distances.up_to(amount)
        return replace(whole, radius=radius, budget=budget)

    @cached_property
    def distances(self) -> Distances:
        """What distances images of its levels may have."""
        if self.levels is None:
            raise ValueError("a domain without levels has every distance")
        return Distances(self, self.levels)

    def box(self) -> tuple[Vector, Vector]:
        """The smallest box around the domain."""
        return self.centre - self.down, self.centre + self.up

    def within(self, radius: float) -> Domain:
        return replace(self, radius=min(self.radius, radius))

    def distance(self, point: Vector) -> float:
        return float(self.norm.distance(np.asarray(point, dtype=np.float64).ravel() - self.centre))

    def pulled_inside(self, point: Vector) -> Vector:
        """The point, or where the way to it leaves the balls: a solver's point may be a little outside."""
        share = 1.0
        for norm, most in ((self.norm, self.radius), *([self.budget] if self.budget else [])):
            length = float(norm.distance(np.asarray(point, dtype=np.float64).ravel() - self.centre))
            if length > most and norm.name != "l0":
                share = min(share, (most / length) * (1 - 1e-12))
        return point if share == 1.0 else np.asarray(self.centre + share * (point - self.centre))

    def clip(self, point: Vector) -> Vector:
        """The nearest point of the box (not of the ball)."""
        return np.clip(point, self.lower, self.upper)
