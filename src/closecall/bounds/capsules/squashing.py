"""Squash over an affine form: s ↦ s·φ(‖s‖) with φ(n) = n/(1 + n²)."""

from __future__ import annotations

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.bounds.capsules.curves import range_over
from closecall.bounds.capsules.forms import UP, Form, length, spread

# |φ″(n)| = |2n(n² − 3)|/(1 + n²)³ ≤ 6n/(1 + n²)² ≤ 6 · 3√3/16 < 2.
BEND = 2.0


def phi(lengths: Vector) -> Vector:
    return np.asarray(lengths / (1 + lengths**2))


def phi_slope(lengths: Vector) -> Vector:
    return np.asarray((1 - lengths**2) / (1 + lengths**2) ** 2)


def squashed(form: Form) -> Form:
    """The squash of vectors (n, dimensions), with two new errors for each: a number and a vector.

    With centre s, shift δ, ‖δ‖ ≤ r, n = ‖s + δ‖, direction a = s/‖s‖ and any numbers α, β, κ,

        squash(s + δ) = κ s + α δ + β (a·δ) s + (φ(n) − α) δ + e s,   e = φ(n) − κ − β (a·δ).

    The fourth term is no longer than D r, D = max |φ(n) − α| over the lengths there can be. For e:
    ‖s‖ + a·δ ≤ n, since a·(s + δ) ≤ ‖s + δ‖. The other way n ≤ ‖s‖ + a·δ + T: with R ≥ |a·δ|, T = R + r
    will do, since n ≤ ‖s‖ + r, and, where p = ‖s‖ − R > 0, T = r²/(2p), by √(q² + t²) ≤ q + t²/(2q) for
    q ≥ p. So e lies within [φ(n) − κ − β(n − ‖s‖)] + β·[0, T], the first over the range of n by `range_over`.
    """
    centre, whole = form.centre, length(form)
    lengths = np.sqrt((centre**2).sum(-1))
    axes = np.divide(centre, lengths[:, None], out=np.zeros_like(centre), where=lengths[:, None] > 0)
    along = np.matmul(axes[:, None], form.shared)[:, 0]
    fuzz = OUTWARD * (lengths + form.size().sum(-1))
    loose_along = (np.abs(axes) * form.slack).sum(-1)
    radial = np.minimum(spread(form.ball, along, form.blocks) + loose_along, whole) + fuzz
    low = np.maximum(lengths - radial, 0.0)
    high = np.minimum(lengths + whole, np.sqrt((lengths + radial) ** 2 + whole**2)) * UP + fuzz
    alpha, loose = middle_of_phi(low, high)
    beta = phi_slope(lengths)
    bottom, top = range_over(
        lambda n: phi(n) - beta[:, None] * (n - lengths[:, None]),
        lambda n: phi_slope(n) - beta[:, None], BEND, low, high,
    )  # fmt: skip
    slimmest = np.maximum(lengths - radial, 0.0)
    beyond = radial + whole
    sharper = np.divide(whole**2, 2 * slimmest, out=np.full_like(whole, np.inf), where=slimmest > 0)
    beyond = np.minimum(beyond, sharper) * UP + fuzz
    bottom, top = bottom + np.minimum(beta, 0) * beyond - fuzz, top + np.maximum(beta, 0) * beyond + fuzz
    kappa, error = (bottom + top) / 2, (top - bottom) / 2 * UP + OUTWARD * np.maximum(abs(bottom), abs(top))
    shared = alpha[:, None, None] * form.shared + (beta[:, None] * centre)[..., None] * along[:, None]
    count, dimensions = centre.shape
    columns = np.zeros((count, dimensions, count))
    columns[np.arange(count), :, np.arange(count)] = error[:, None] * centre
    terms = np.abs(centre) * (1 + whole[:, None]) + form.radius()  # α ≤ ½ and |β| ≤ 1
    slack = (
        alpha[:, None] * form.slack
        + np.abs(centre) * np.abs(beta * loose_along)[:, None]
        + 4 * OUTWARD * terms * (1 + np.abs(kappa) + error)[:, None]
    )
    loosened = np.zeros((count, dimensions, count, dimensions))
    loosened[np.arange(count), :, np.arange(count)] = (loose * whole * UP)[:, None, None] * np.eye(dimensions)
    shared = np.concatenate([shared, columns, loosened.reshape(count, dimensions, -1)], -1)
    blocks = (*form.blocks, (count, 1), (count, dimensions))
    return Form(form.ball, kappa[:, None] * centre, shared, slack, blocks)


def middle_of_phi(low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """α and D with |φ(n) − α| ≤ D for low ≤ n ≤ high: φ rises up to n = 1 and falls from there."""
    least = np.minimum(phi(low), phi(high))
    most = phi(np.clip(1.0, low, high))
    return (least + most) / 2, (most - least) / 2 + OUTWARD
