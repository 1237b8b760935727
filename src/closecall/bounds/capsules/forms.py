"""Affine forms: values as linear functions of the image's shift and of errors that they share.

A form stands for z_k = centre_k + Σ_p shared_kp · d_p + Σ_q shared_kq · e_q + f_k, where d is the shift of
the image within its domain, the errors e are the same for all values, and |f_k| ≤ slack_k may be anything.
Errors come in blocks: each error of a block is a vector of so many numbers whose length is at most 1. Linear
functions of forms are forms with no loss; what a function bends by becomes an error of its own. Every sum is
rounded outward: the slack grows by OUTWARD times all that was added up without its sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from closecall.arrays import OUTWARD, Indices, Vector
from closecall.question.domain import Domain

UP = 1 + OUTWARD  # a sum of numbers that are not negative, times this, is an upper bound on the exact sum

# Columns whose squares underflow are not seen, and add up to less than this.
UNSEEN = 1e-140

Blocks = tuple[tuple[int, int], ...]  # how many errors, and of how many numbers each


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
        return Form(self, self.middle, shared, np.zeros(len(self.middle)), ())

    @property
    def rooms(self) -> Vector:
        """How far each shift can be from 0, in its own unit."""
        if self.domain.norm.name == "linf":
            return np.ones(len(self.pixels))
        return np.maximum(self.domain.down, self.domain.up)[self.pixels]

    def radius(self, rows: Vector) -> Vector:
        """The most that Σ |r_p d_p| can be over the domain, for rows (…, pixels)."""
        sizes, norm = np.abs(rows), self.domain.norm.name
        by_box = sizes @ self.rooms
        if norm == "linf" or not np.isfinite(self.domain.radius):
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

    def length(self, columns: Vector) -> Vector | None:
        """The longest that Σ_p column_p d_p can be in a ball, for columns (…, dimensions, pixels)."""
        radius, norm = self.domain.radius, self.domain.norm.name
        if norm == "linf" or not np.isfinite(radius):
            return None
        if norm == "l1":
            return np.asarray(np.sqrt((columns**2).sum(-2).max(-1, initial=0.0)) * radius * UP)
        return np.asarray(np.sqrt(largest_eigenvalue(columns @ columns.swapaxes(-1, -2))) * radius * UP)


@dataclass(frozen=True, eq=False)
class Form:
    """Values of any shape (…), and their columns (…, shifts and errors)."""

    ball: Ball
    centre: Vector
    shared: Vector
    slack: Vector
    blocks: Blocks

    def radius(self) -> Vector:
        """How far each value can be from its centre."""
        return np.asarray(spread(self.ball, self.shared, self.blocks) + self.slack)

    def size(self) -> Vector:
        """The most that the terms of each value add up to without their signs."""
        return np.asarray(np.abs(self.centre) + self.radius())

    def reshaped(self, *shape: int) -> Form:
        return Form(
            self.ball, self.centre.reshape(shape), self.shared.reshape(*shape, -1),
            self.slack.reshape(shape), self.blocks,
        )  # fmt: skip


def in_blocks(ball: Ball, shared: Vector, blocks: Blocks) -> Iterator[tuple[int, int, int]]:
    """Where each block of columns begins, how many errors it has, and of how many numbers."""
    start = len(ball.pixels)
    for count, numbers in blocks:
        yield start, count, numbers
        start += count * numbers
    if start != shared.shape[-1]:
        raise ValueError("columns and blocks of a form do not agree")


def spread(ball: Ball, shared: Vector, blocks: Blocks) -> Vector:
    """The most that columns (…, shifts and errors) can add up to."""
    shifts = ball.radius(shared[..., : len(ball.pixels)])
    return np.asarray((shifts + error_spread(ball, shared, blocks)) * UP)


def error_spread(ball: Ball, shared: Vector, blocks: Blocks) -> Vector:
    """The most that the columns of errors can add up to."""
    total = np.zeros(shared.shape[:-1])
    for start, count, numbers in in_blocks(ball, shared, blocks):
        part = shared[..., start : start + count * numbers]
        if numbers == 1:
            total += np.abs(part).sum(-1)
        else:
            parted = part.reshape(*part.shape[:-1], count, numbers)
            total += np.sqrt((parted**2).sum(-1)).sum(-1)
    return total * UP


def length(form: Form) -> Vector:
    """How far vectors (…, dimensions) can be from their centres, as lengths."""
    weights = column_weights(form.ball, (form.shared**2).sum(-2), form.blocks)
    scatter, mass, ends = scattered(form.ball, form.shared, form.blocks, weights)
    most = np.sqrt(largest_eigenvalue(scatter) * mass) * UP + ends + UNSEEN
    by_entry = np.sqrt((form.radius() ** 2).sum(-1)) * UP
    return np.asarray(np.fmin(most + np.sqrt((form.slack**2).sum(-1)) * UP, by_entry))


def scattered(ball: Ball, shared: Vector, blocks: Blocks, weights: Vector) -> tuple[Vector, Vector, Vector]:
    """S, T and L with ‖M Σ columns‖ ≤ √(λ_max(M S Mᵀ) T) + ‖M‖ L for all shifts and errors, and any M.

    With any weights t > 0, w·Σ_q c_q e_q = Σ_q (w·c_q/√t_q)(√t_q e_q) ≤ √(wᵀ S w) · √(Σ_q t_q e_q²) for
    S = Σ_q c_q c_qᵀ/t_q, by Cauchy and Schwarz. The numbers of one error have one weight, and their squares
    add up to no more than 1, so the last sum is at most the sum T of the weights of all errors. In L1 and L2
    L is the length of what the shifts add up to; in a box they are errors like any other.
    """
    pixels = len(ball.pixels)
    ends = ball.length(shared[..., :pixels])
    first = 0 if ends is None else pixels
    columns, own = shared[..., first:], weights[..., first:]
    inverse = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
    if ends is None:
        rooms = ball.rooms
        mass = (own[..., :pixels] * rooms**2).sum(-1)
        ends = np.zeros(mass.shape)
    else:
        mass = np.zeros(ends.shape)
    for start, count, numbers in in_blocks(ball, shared, blocks):
        mass = mass + own[..., start - first : start - first + count * numbers : numbers].sum(-1)
    scatter = np.matmul(columns * inverse[..., None, :], columns.swapaxes(-1, -2))
    return scatter, mass * UP, ends


def column_weights(ball: Ball, squares: Vector, blocks: Blocks) -> Vector:
    """A weight for each column from the square of its size; the numbers of one error share theirs."""
    squares = squares.copy()
    for start, count, numbers in in_blocks(ball, squares, blocks):
        if numbers > 1:
            part = squares[..., start : start + count * numbers]
            whole = part.reshape(*part.shape[:-1], count, numbers).sum(-1)
            squares[..., start : start + count * numbers] = np.repeat(whole, numbers, axis=-1)
    return np.asarray(np.sqrt(squares))


def largest_eigenvalue(matrices: Vector) -> Vector:
    """An upper bound on the largest eigenvalue of positive semidefinite matrices; infinity if they overflow.

    What rounding changes in the entries, and in the eigenvalues that LAPACK finds, is far less than OUTWARD
    times the trace.
    """
    traces = np.trace(matrices, axis1=-2, axis2=-1)
    usable = np.asarray(np.isfinite(matrices).all((-2, -1)))
    largest = np.linalg.eigvalsh(np.where(usable[..., None, None], matrices, 0.0))[..., -1]
    return np.asarray(np.where(usable, np.maximum(largest, 0.0) + OUTWARD * traces, np.inf))


def widened(ball: Ball, shared: Vector, blocks: Blocks) -> Vector:
    """The same columns, and zeros for the errors that came later."""
    columns = len(ball.pixels) + sum(count * numbers for count, numbers in blocks)
    missing = columns - shared.shape[-1]
    return np.concatenate([shared, np.zeros((*shared.shape[:-1], missing))], axis=-1) if missing else shared
