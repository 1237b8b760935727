"""Box ∩ ball in torch: the point furthest along each row, for a radius of its own in each row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from closecall.question.domain import Domain
from closecall.question.norms import CHANGED, FIRST_SORTED


@dataclass(frozen=True, eq=False)
class TorchBall:
    """A domain in torch: { v : −down ≤ v − centre ≤ up, ‖v − centre‖ ≤ radius }.

    It has one radius, or one for each row (batch, 1).
    """

    centre: Tensor
    down: Tensor
    up: Tensor
    norm: str
    radius: Tensor

    @classmethod
    def of(cls, domain: Domain, dtype: torch.dtype) -> TorchBall:
        centre, lower, upper = (
            torch.from_numpy(array.copy()) for array in (domain.centre, domain.lower, domain.upper)
        )
        radius = torch.tensor(float(domain.radius), dtype=torch.float64)
        ball = cls(centre, centre - lower, upper - centre, domain.norm.name, radius)
        return ball.to(dtype)

    def to(self, dtype: torch.dtype) -> TorchBall:
        parts = (self.centre, self.down, self.up)
        centre, down, up = (part.to(dtype) for part in parts)
        return TorchBall(centre, down, up, self.norm, self.radius.to(dtype))

    def within(self, radius: Tensor | float) -> TorchBall:
        return replace(self, radius=torch.as_tensor(radius, dtype=self.centre.dtype))

    def furthest(self, rows: Tensor) -> Tensor:
        """The shift d in the box and the ball with the largest a·d, for each row a."""
        if self.norm == "linf":
            return torch.where(rows > 0, *self.extremes)
        rooms = torch.where(rows > 0, self.up, self.down)
        return torch.sign(rows) * FURTHEST[self.norm](rows.abs(), rooms, self.radius)

    def most(self, rows: Tensor) -> Tensor:
        """An upper bound on a·d for each row a, exact but for the rounding of its own sum (see `norms`)."""
        if self.norm != "l2":
            return (rows * self.furthest(rows)).sum(1)
        gains = rows.abs()
        rooms = torch.where(rows > 0, self.up, self.down)
        by_ball = torch.minimum(gains, rooms / step_l2(gains, rooms, self.radius))
        by_ball = torch.where(gains > 0, by_ball, 0.0)
        radius = torch.where(torch.isinf(self.radius), 0.0, self.radius).reshape(-1)
        return ((gains - by_ball) * rooms).sum(1) + radius * by_ball.square().sum(1).sqrt()

    @cached_property
    def largest(self) -> Tensor:
        """The largest that each pixel can be without its sign, anywhere in the box."""
        return torch.maximum((self.centre - self.down).abs(), (self.centre + self.up).abs())

    @cached_property
    def extremes(self) -> tuple[Tensor, Tensor]:
        """How far each pixel alone may rise and fall."""
        if self.norm == "l0":
            return self.up, -self.down
        return torch.minimum(self.up, self.radius), -torch.minimum(self.down, self.radius)

    def box(self) -> tuple[Tensor, Tensor]:
        """The smallest box around the ball."""
        rise, fall = self.extremes
        return self.centre + fall, self.centre + rise


def furthest_l1(gains: Tensor, rooms: Tensor, radius: Tensor) -> Tensor:
    """Spend the radius on the largest gains first; sorted are only as many of them as it takes."""
    pixels, useful = gains.shape[1], torch.where(rooms > 0, gains, 0.0)
    count = min(pixels, FIRST_SORTED)
    while True:
        best, order = useful.topk(count, dim=1)
        taken = rooms.gather(1, order)
        spent = taken.cumsum(1)
        if count == pixels or bool(((spent[:, -1:] >= radius) | (best[:, -1:] == 0)).all()):
            break
        count = min(pixels, 4 * count)
    left = radius - (spent - taken)
    return torch.zeros_like(rooms).scatter_(1, order, torch.minimum(left.clamp_(min=0), taken))


def furthest_l2(gains: Tensor, rooms: Tensor, radius: Tensor) -> Tensor:
    """d = min(room, t·gain) with the t that uses up the radius."""
    return torch.where(gains > 0, torch.minimum(rooms, step_l2(gains, rooms, radius) * gains), 0.0)


def step_l2(gains: Tensor, rooms: Tensor, radius: Tensor) -> Tensor:
    """That t (batch, 1), found among the sorted ends of the rooms; infinity where the box is all inside."""
    rooms = torch.where(gains > 0, rooms, 0.0)
    stops = torch.where(gains > 0, rooms / gains, torch.inf)
    sorted_stops, order = stops.sort(dim=1)
    squares = rooms.square().gather(1, order)
    spent = squares.cumsum(1) - squares
    growing = gains.square().gather(1, order).flip(1).cumsum(1).flip(1)
    t = torch.where(growing > 0, (radius**2 - spent).clamp_(min=0) / growing, torch.inf).sqrt_()
    step = t.gather(1, (t <= sorted_stops).to(torch.uint8).argmax(dim=1, keepdim=True))
    return torch.where(squares.sum(1, keepdim=True) <= radius**2, torch.inf, step)


def furthest_l0(gains: Tensor, rooms: Tensor, radius: Tensor) -> Tensor:
    order = (gains * rooms).argsort(dim=1, descending=True)
    places = torch.arange(gains.shape[1], dtype=gains.dtype)
    kept = torch.where(places + 1 <= radius + CHANGED, rooms.gather(1, order), 0.0)
    return torch.zeros_like(rooms).scatter_(1, order, kept)


FURTHEST = {"l1": furthest_l1, "l2": furthest_l2, "l0": furthest_l0}
