"""Squash over an affine form: s ↦ s·φ(‖s‖) with φ(n) = n/(1 + n²)."""

from __future__ import annotations

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.bounds.capsules.curves import range_over
from closecall.bounds.capsules.forms import UP, Form, spread

# |φ″(n)| = |2n(n² − 3)|/(1 + n²)³ ≤ 6n/(1 + n²)² ≤ 6 · 3√3/16 < 2.
BEND = 2.0


def phi(lengths: Vector) -> Vector:
    return np.asarray(lengths / (1 + lengths**2))


def phi_slope(lengths: Vector) -> Vector:
    return np.asarray((1 - lengths**2) / (1 + lengths**2) ** 2)


def squashed(form: Form) -> Form:
    """The squash of vectors (n, dimensions), with one new error for each vector and one for each entry.

    With centre s, shift δ, |δ_k| ≤ r_k, n = ‖s + δ‖, direction a = s/‖s‖ and any numbers α, β, κ,

        squash(s + δ) = κ s + α δ + β (a·δ) s + (φ(n) − α) δ + e s,   e = φ(n) − κ − β (a·δ).

    The fourth term is at most D r_k in entry k, D = max |φ(n) − α| over the lengths there can be. For e:
    ‖s‖ + a·δ ≤ n, since a·(s + δ) ≤ ‖s + δ‖. The other way n ≤ ‖s‖ + a·δ + T: with R ≥ |a·δ|, T = R + ‖r‖
    will do, since n ≤ ‖s‖ + ‖r‖, and, where p = ‖s‖ − R > 0, T = ‖r‖²/(2p), by √(q² + t²) ≤ q + t²/(2q) for
    q ≥ p. So e lies within [φ(n) − κ − β(n − ‖s‖)] + β·[0, T], the first over the range of n by `range_over`.
    """
    centre, reach = form.centre, form.radius()
    lengths = np.sqrt((centre**2).sum(-1))
    axes = np.divide(centre, lengths[:, None], out=np.zeros_like(centre), where=lengths[:, None] > 0)
    along = np.matmul(axes[:, None], form.shared)[:, 0]
    whole = np.sqrt((reach**2).sum(-1)) * UP
    fuzz = OUTWARD * (lengths + reach.sum(-1))
    radial = np.minimum(spread(form.ball, along) + (np.abs(axes) * form.slack).sum(-1) + fuzz, whole + fuzz)
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
    terms = np.abs(centre) * (1 + whole[:, None]) + reach  # α ≤ ½ and |β| ≤ 1
    slack = (
        alpha[:, None] * form.slack
        + np.abs(centre) * np.abs(beta * (np.abs(axes) * form.slack).sum(-1))[:, None]
        + 4 * OUTWARD * terms * (1 + np.abs(kappa) + error)[:, None]
    )
    own = loose[:, None] * reach * UP
    # The errors of one vector's entries come after those of all the vectors.
    diagonal = np.zeros((count, dimensions, count * dimensions))
    entry = np.arange(count * dimensions)
    diagonal.reshape(count * dimensions, -1)[entry, entry] = own.ravel()
    return Form(form.ball, kappa[:, None] * centre, np.concatenate([shared, columns, diagonal], -1), slack)


def middle_of_phi(low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """α and D with |φ(n) − α| ≤ D for low ≤ n ≤ high: φ rises up to n = 1 and falls from there."""
    least = np.minimum(phi(low), phi(high))
    most = phi(np.clip(1.0, low, high))
    return (least + most) / 2, (most - least) / 2 + OUTWARD
