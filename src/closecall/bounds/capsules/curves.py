"""Ranges of smooth functions of one variable, without a supremum on a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from closecall.arrays import OUTWARD, Vector

CELLS = 64


def range_over(
    value: Callable[[Vector], Vector],
    slope: Callable[[Vector], Vector],
    bend: float,
    low: Vector,
    high: Vector,
) -> tuple[Vector, Vector]:
    """Bounds on f over [low, high] for f with |f″| ≤ bend: a bound on each of equal cells, the best of all.

    In a cell around m of half width h, |f(x) − f(m)| ≤ |f′(m)| h + bend · h²/2 by Taylor's theorem. The
    functions are given (n, cells) points; their values, slopes and points are widened for rounding.
    """
    half = (high - low) / (2 * CELLS)
    points = low[:, None] + half[:, None] * (2 * np.arange(CELLS) + 1)
    wide = half[:, None] + OUTWARD * np.maximum(np.abs(low), np.abs(high))[:, None]
    middle, steep = value(points), np.abs(slope(points)) + OUTWARD
    reach = steep * wide + bend / 2 * wide**2
    reach += OUTWARD * (1 + np.abs(middle) + reach)
    return np.asarray((middle - reach).min(-1)), np.asarray((middle + reach).max(-1))
