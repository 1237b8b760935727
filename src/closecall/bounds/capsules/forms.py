"""Affine forms: values as linear functions of the image's shift and of errors that they share.

A form stands for z_k = centre_k + Σ_p shared_kp · d_p + Σ_q shared_kq · e_q + f_k, where d is the shift of
the image within its domain, the errors e_q ∈ [−1, 1] are the same for all values, and |f_k| ≤ slack_k may be
anything. Linear functions of forms are forms with no loss; what a function bends by becomes an error of its
own. Every sum is rounded outward: the slack grows by OUTWARD times all that was added up without its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closecall.arrays import OUTWARD, Indices, Vector
from closecall.question.domain import Domain

UP = 1 + OUTWARD  # a sum of numbers that are not negative, times this, is an upper bound on the exact sum


@dataclass(frozen=True, eq=False)
class Ball:
    """The shifts of the pixels that can move, as the first columns of every form.

    In L∞ the domain is a box: the shifts are from its middle, in half widths. In L1 and L2 they are from the
    original, in the units of the pixels; `radius` then allows each pixel the larger of its two rooms.
    """

    domain: Domain
    pixels: Indices
    middle: Vector
    scale: Vector

    @classmethod
    def around(cls, domain: Domain) -> Ball:
        low, high = domain.box()
        pixels = np.flatnonzero(high > low)
        if domain.norm.name == "linf":
            # Each end is a rounded sum: the box is widened by what that may be off.
            reach = (high - low) / 2 + OUTWARD * np.maximum(np.abs(low), np.abs(high))
            return cls(domain, pixels, (low + high) / 2, reach[pixels])
        return cls(domain, pixels, domain.centre, np.ones(len(pixels)))

    def image(self) -> Form:
        """The pixels themselves."""
        shared = np.zeros((len(self.middle), len(self.pixels)))
        shared[self.pixels, np.arange(len(self.pixels))] = self.scale
        return Form(self, self.middle, shared, np.zeros(len(self.middle)))

    def radius(self, rows: Vector) -> Vector:
        """The most that Σ |r_p d_p| can be over the domain, for rows (…, pixels)."""
        sizes, norm = np.abs(rows), self.domain.norm.name
        if norm == "linf":
            return np.asarray(sizes.sum(-1) * UP)
        rooms = np.maximum(self.domain.down, self.domain.up)[self.pixels]
        by_box = sizes @ rooms
        if not np.isfinite(self.domain.radius):
            return np.asarray(by_box * UP)
        dual = sizes.max(-1, initial=0.0) if norm == "l1" else np.sqrt((sizes**2).sum(-1))
        return np.asarray(np.minimum(by_box, dual * self.domain.radius) * UP)

    def most(self, rows: Vector) -> Vector:
        """An upper bound on Σ r_p d_p over the domain, for rows (n, pixels)."""
        if self.domain.norm.name == "linf":
            return self.radius(rows)
        down, up = self.domain.down[self.pixels], self.domain.up[self.pixels]
        most = self.domain.norm.most(rows, down, up, self.domain.radius)
        return np.asarray(most + OUTWARD * self.radius(rows))


@dataclass(frozen=True, eq=False)
class Form:
    """Values of any shape (…), and their columns (…, shifts and errors)."""

    ball: Ball
    centre: Vector
    shared: Vector
    slack: Vector

    @property
    def columns(self) -> int:
        return int(self.shared.shape[-1])

    def radius(self) -> Vector:
        """How far each value can be from its centre."""
        return np.asarray(spread(self.ball, self.shared) + self.slack)

    def size(self) -> Vector:
        """The most that the terms of each value add up to without their signs."""
        return np.asarray(np.abs(self.centre) + self.radius())

    def reshaped(self, *shape: int) -> Form:
        return Form(
            self.ball, self.centre.reshape(shape), self.shared.reshape(*shape, -1), self.slack.reshape(shape)
        )


def spread(ball: Ball, shared: Vector) -> Vector:
    """The most that columns (…, shifts and errors) can add up to."""
    count = len(ball.pixels)
    errors = np.abs(shared[..., count:]).sum(-1)
    return np.asarray((ball.radius(shared[..., :count]) + errors) * UP)


def widened(shared: Vector, columns: int) -> Vector:
    """The same columns and as many zeros as are missing."""
    missing = columns - shared.shape[-1]
    return np.concatenate([shared, np.zeros((*shared.shape[:-1], missing))], axis=-1) if missing else shared


def with_own_errors(shared: Vector, sizes: Vector) -> Vector:
    """One new column for each value that has an error of its own, of size ≥ 0."""
    flat = sizes.ravel()
    own = np.flatnonzero(flat)
    columns = np.zeros((flat.size, len(own)))
    columns[own, np.arange(len(own))] = flat[own]
    return np.concatenate([shared, columns.reshape(*sizes.shape, len(own))], axis=-1)
