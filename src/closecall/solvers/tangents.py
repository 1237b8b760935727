"""Tangents below separable parabolas: the linear rows that stand for a convex quadratic objective.

Column v costs c·v + q·v². Its tangent at p is the row t ≥ c·v + q·(2·p·v − p²) on an epigraph column t, which
takes the column's whole cost in the objective; it lies q·(v − p)² below the parabola.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from closecall.arrays import Vector
from closecall.milp import Milp
from closecall.settings import DEFAULT

ROW_TOLERANCE = 1e-9  # what the linear solver may break a tangent by


class Tangents:
    """The tangents of every quadratic column: tangent k touches column `columns[which[k]]` at `at[k]`."""

    def __init__(self, milp: Milp, square: Vector) -> None:
        self.columns = np.flatnonzero(square)
        self.linear = milp.objective[self.columns]
        self.square = square[self.columns]
        self.box = (milp.lower[self.columns], milp.upper[self.columns])
        self.minimiser = np.clip(-self.linear / (2 * self.square), *self.box)
        self.which = np.zeros(0, dtype=np.int64)
        self.at = np.zeros(0)
        self.spread(reach=100.0)

    def cost(self, points: Vector) -> Vector:
        return self.linear * points + self.square * points**2

    def narrow(self, allowance: float) -> None:
        """Keep each column, and its tangents, where it costs at most `allowance` more than it must."""
        vertex = -self.linear / (2 * self.square)
        excess = self.cost(self.minimiser) - self.cost(vertex) + allowance
        radius = np.sqrt(np.maximum(excess, 0.0) / self.square) * (1 + ROW_TOLERANCE) + ROW_TOLERANCE
        lower, upper = self.box
        self.box = (np.maximum(lower, vertex - radius), np.minimum(upper, vertex + radius))
        self.spread(0.0)  # inside the box, the tangents at its ends lie above all that touch outside of it
        kept = (self.at >= self.box[0][self.which]) & (self.at <= self.box[1][self.which])
        self.which, self.at = self.which[kept], self.at[kept]

    def spread(self, reach: float) -> None:
        """Touch each parabola over its bounds, or up to `reach` from its minimiser where it has none."""
        lower, upper = self.box
        bounded = np.isfinite(lower) & np.isfinite(upper)
        for share in np.linspace(0.0, 1.0, DEFAULT.solvers.first_tangents):
            step = np.sign(share - 0.5) * reach ** (2 * abs(share - 0.5))
            far = np.clip(self.minimiser + step, lower, upper)
            with np.errstate(invalid="ignore"):
                inside = lower + share * (upper - lower)
            self.add(np.where(bounded, inside, far), 0.0)

    def add(self, points: Vector, shortfall: float) -> bool:
        """Touch at the points, one per column, that lie more than `shortfall` above all tangents."""
        nearest = np.full(len(self.columns), np.inf)
        np.minimum.at(nearest, self.which, np.abs(points[self.which] - self.at))
        new = np.flatnonzero(self.square * nearest**2 > shortfall)
        self.which = np.concatenate([self.which, new])
        self.at = np.concatenate([self.at, points[new]])
        return len(new) > 0

    def linearise(self, milp: Milp) -> Milp:
        """The linear model with the tangents so far; its last columns are the epigraph columns."""
        count, extra, tangents = milp.columns, len(self.columns), len(self.at)
        lower, upper = milp.lower.copy(), milp.upper.copy()
        lower[self.columns], upper[self.columns] = self.box
        rows = np.arange(tangents)
        slopes = self.linear[self.which] + 2 * self.square[self.which] * self.at
        entries = np.concatenate([-slopes, np.ones(tangents)])
        places = (
            np.concatenate([rows, rows]),
            np.concatenate([self.columns[self.which], count + self.which]),
        )
        below = csr_array((entries, places), shape=(tangents, count + extra))
        objective = np.concatenate([milp.objective, np.ones(extra)])
        objective[self.columns] = 0.0
        return Milp(
            objective=objective,
            matrix=csr_array(vstack([hstack([milp.matrix, csr_array((milp.rows, extra))]), below])),
            row_lower=np.concatenate([milp.row_lower, -self.square[self.which] * self.at**2]),
            row_upper=np.concatenate([milp.row_upper, np.full(tangents, np.inf)]),
            lower=np.concatenate([lower, self.cost(self.minimiser)]),
            upper=np.concatenate([upper, np.full(extra, np.inf)]),
            integer=np.concatenate([milp.integer, np.zeros(extra, dtype=bool)]),
        )
