"""What scores y_j = n_j²/(1 + n_j²), n_j = ‖s_j‖, can be when the sums s_j are affine forms."""

from __future__ import annotations

import numpy as np

from closecall.arrays import OUTWARD, Mask, Vector
from closecall.bounds.capsules.forms import UP, Form, error_spread, length
from closecall.question.goal import Goal

# The largest slope of n²/(1 + n²), at n = 1/√3: 3√3/8 < 0.65.
STEEPEST = 0.65
# ρ² of `furthest_ahead` is ‖s°‖² and these shares of ‖r‖²: whichever is best counts.
SHARES_OF_RADIUS = (0.01, 0.1, 0.3, 1.0)


def excluded_capsule_cases(sums: Form, goal: Goal) -> Mask:
    """Which cases have some row out of reach: Σ_j a_j y_j < threshold for all images of the domain."""
    return np.array([
        any(most_of(sums, row) < least for row, least in zip(case.matrix, case.threshold, strict=True))
        for case in goal.cases
    ])  # fmt: skip


def most_of(sums: Form, row: Vector) -> float:
    """An upper bound on Σ_j a_j y_j.

    By the range of each length alone; and, where the row is a y_t − b y_d with 0 < a ≤ b, by
    a y_t − b y_d ≤ a (y_t − y_d) ≤ a · 0.65 · max(0, n_t − n_d), which is below 0 if n_t < n_d.
    """
    low, high = ranges(sums)
    scores_low, scores_high = low**2 / (1 + low**2), high**2 / (1 + high**2)
    terms = np.where(row > 0, row * scores_high, row * scores_low)
    most = float(terms.sum() + OUTWARD * (1 + np.abs(terms).sum()))
    (ahead,), (behind,) = np.nonzero(row > 0), np.nonzero(row < 0)
    if len(ahead) == len(behind) == 1 and row[ahead[0]] <= -row[behind[0]]:
        lead = furthest_ahead(sums, int(ahead[0]), int(behind[0]))
        # n_t < n_d says no more than y_t < y_d; of no use to a caller is how far.
        by_lead = 0.0 if lead <= 0 else float(row[ahead[0]]) * STEEPEST * UP * lead
        most = min(most, by_lead)  # a lead that is not a number changes nothing
    return most


def ranges(sums: Form) -> tuple[Vector, Vector]:
    """The least and the largest length of each sum: ‖s°‖ − r and ‖s°‖ + r."""
    middle, reach = np.sqrt((sums.centre**2).sum(-1)), length(sums)
    fuzz = OUTWARD * middle
    return np.maximum(middle - reach - fuzz, 0.0), middle + reach + fuzz


def furthest_ahead(sums: Form, ahead: int, behind: int) -> float:
    """An upper bound on n_t − n_d = ‖s_t‖ − ‖s_d‖, both as one linear function of the columns.

    ‖s_d‖ ≥ w·s_d for ‖w‖ ≤ 1. For any ρ > 0, ‖s_t‖ ≤ ρ/2 + ‖s_t‖²/(2ρ), and with s_t = s° + δ, ‖δ‖ ≤ r,
    ‖s_t‖² ≤ ‖s°‖² + 2 s°·δ + r².
    """
    top, bottom = sums.centre[ahead], sums.centre[behind]
    middle, reach = float(np.linalg.norm(bottom)), float(length(sums)[ahead])
    against = bottom / middle * (1 - OUTWARD) if middle > 0 else np.zeros_like(bottom)
    square, bent = float(top @ top), reach**2 * UP
    rho = np.sqrt(square + np.array(SHARES_OF_RADIUS) * bent + OUTWARD)
    rows = top / rho[:, None]
    shared = rows @ sums.shared[ahead] - against @ sums.shared[behind]
    linear = sums.ball.most(shared[:, : len(sums.ball.pixels)])
    linear = linear + error_spread(sums.ball, shared, sums.blocks)
    slack = np.abs(rows) @ sums.slack[ahead] + np.abs(against) @ sums.slack[behind]
    sizes = sums.size()
    rounding = 4 * OUTWARD * (np.abs(rows) @ sizes[ahead] + np.abs(against) @ sizes[behind] + rho)
    constant = rho / 2 + (square + bent) / (2 * rho) - against @ bottom
    return float((constant + linear + slack + rounding + OUTWARD * bent / rho).min())
