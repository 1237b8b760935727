"""Couplings, c_j = softmax_j(b), over an affine form of the logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.bounds.capsules.curves import range_over
from closecall.bounds.capsules.forms import UP, Blocks, Form, spread

# |σ″| = σ(1 − σ)|1 − 2σ| ≤ 1/(6√3) < 0.1 for the logistic function σ(z) = 1/(1 + e⁻ᶻ).
BEND = 0.1


@dataclass(frozen=True, eq=False)
class Couplings:
    """c = centre + slope · shared·(d, e) + f, |f| ≤ error: one error of its own for each coupling."""

    centre: Vector  # (children, classes)
    shared: Vector  # (children, classes, columns)
    error: Vector
    blocks: Blocks
    reach: Vector  # how far each can be from its centre in all


def sigmoid(values: Vector) -> Vector:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-values)))


def sigmoid_slope(values: Vector) -> Vector:
    share = sigmoid(values)
    return np.asarray(share * (1 - share))


def coupled(logits: Form) -> Couplings:
    """The softmax over the last axis of logits (children, classes).

    c_j = σ(z_j) with z_j = b_j − L_j and L_j = log Σ_{k≠j} exp(b_k). L_j is convex, so with p = ∇L_j at the
    centre b°, p_k = exp(b°_k)/Σ_{m≠j} exp(b°_m), and logits b = b° + δ,

        0 ≤ L_j(b) − L_j(b°) − p·δ ≤ Q = ½ max Var(δ),

    the variance being one of δ_k under p at some point between (the second derivative of L_j along δ).
    Adding one number to all logits changes neither it nor z_j, so δ may be taken less p·δ; if then
    |δ_k| ≤ r_k, the variance is at most max r_k² and at most Σ_k p̂_k r_k², where the k-th probability can
    become no more than p̂_k = p_k exp(r_k)/(p_k exp(r_k) + Σ_{m≠k} p_m exp(−r_m)).
    So z_j lies in a range, on which σ(z) − λ z is bounded by `range_over`; where that is wider than the range
    of σ itself, λ = 0.
    """
    rest, total = without_each(logits.centre)
    shared = logits.shared - np.matmul(rest, logits.shared)
    sizes = logits.size()
    slack = logits.slack + np.matmul(rest, logits.slack[..., None])[..., 0]
    slack = slack * UP + 4 * OUTWARD * (1 + sizes + sizes.max(-1, keepdims=True))
    centre, radius = logits.centre - total, spread(logits.ball, shared, logits.blocks) + slack
    bent = convexity(logits, rest) * UP
    low, high = centre - radius - bent, centre + radius
    chord, middle, error = straightened(low, high)
    # z = centre − Q/2 + shared·(d, e) + f, |f| ≤ slack + Q/2.
    error = (error + chord * (slack + bent / 2)) * UP
    reach = (error + chord * radius) * UP
    return Couplings(
        middle + chord * (centre - bent / 2), chord[..., None] * shared, error, logits.blocks, reach
    )


def without_each(logits: Vector) -> tuple[Vector, Vector]:
    """For each class j: the softmax over the other classes (children, j, k), and their log Σ exp."""
    classes = logits.shape[-1]
    spaced = np.where(np.eye(classes, dtype=bool), -np.inf, logits[:, None])
    most = spaced.max(-1, keepdims=True)
    powers = np.exp(spaced - most)
    sums = powers.sum(-1, keepdims=True)
    return powers / sums, (most + np.log(sums))[..., 0]


def convexity(logits: Form, rest: Vector) -> Vector:
    """Q of `coupled`: by how much log Σ exp of the others may lie above its tangent."""
    found = np.empty_like(logits.centre)
    rounding = 4 * OUTWARD * logits.size()
    for own in range(found.shape[-1]):
        shares = rest[:, own]  # of all classes, 0 for this one
        mean = np.matmul(shares[:, None], logits.shared)
        slack = (logits.slack + (shares * logits.slack).sum(-1, keepdims=True)) * UP
        reach = spread(logits.ball, logits.shared - mean, logits.blocks) + slack
        reach += rounding + rounding.max(-1, keepdims=True)
        reach[:, own] = 0.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            raised, lowered = shares * np.exp(reach), shares * np.exp(-reach)
            largest = raised / (raised + np.maximum(lowered.sum(-1, keepdims=True) - lowered, 0.0)) * UP
            most = (np.minimum(largest, 1.0) * reach**2).sum(-1)
        found[:, own] = np.fmin(most, (reach**2).max(-1)) / 2
    return found


def straightened(low: Vector, high: Vector) -> tuple[Vector, Vector, Vector]:
    """λ, m and D with |σ(z) − λ z − m| ≤ D for low ≤ z ≤ high; λ is the chord's slope or 0."""
    least, most = sigmoid(low), sigmoid(high)
    width = high - low
    chord = np.divide(most - least, width, out=np.zeros_like(width), where=width > 1e-6)
    flat = chord[..., None].reshape(-1, 1)
    bottom, top = range_over(
        lambda z: sigmoid(z) - flat * z, lambda z: sigmoid_slope(z) - flat, BEND, low.ravel(), high.ravel()
    )
    bottom, top = bottom.reshape(low.shape), top.reshape(low.shape)
    error = (top - bottom) / 2 * UP + OUTWARD * (1 + np.maximum(abs(low), abs(high)))
    constant = (most - least) / 2 * UP + OUTWARD
    straight = error + chord * width / 2 < constant * 2
    return (
        np.where(straight, chord, 0.0),
        np.where(straight, (bottom + top) / 2, (least + most) / 2),
        np.where(straight, error, constant),
    )
