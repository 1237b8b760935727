"""L2: the nearest point of a linear relaxation, by an interior-point method.

    minimise ½ ‖d‖²   subject to   M·d = e,  rows of the relaxation over (e, …),  all columns in their bounds

Nothing here is proven: the multipliers y of M·d = e give the tangent (see `readings`) under which the linear
program's bound comes up to the distance that is found here, and it is the linear program that is believed.
All ranges are finite, so for any multipliers the dual value is known, and no point need be feasible before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from closecall.arrays import Vector
from closecall.milp import Milp
from closecall.question.domain import Domain
from closecall.search.lp.readings import Readings

STEPS = 40  # fifteen to twenty are usual
# By how much rows may be missed and primal and dual values differ, as shares of them, where no more steps are
# taken, and for the point to be of use: rounding often ends the steps between.
CLOSEST, CLOSE = 1e-9, 1e-5
LEAST = 1e-6  # squared distance below which nothing is told apart
BACK = 0.995  # of the way to the nearest bound
NARROW = 1e-9  # a column with less room counts as fixed
DAMPING = 1e-12
REFINEMENTS = 2
SHORTEST = 1e-10  # of a step


@dataclass(frozen=True, eq=False)
class Found:
    """The relaxation's columns at the nearest point, its shift and its length; the readings' multipliers.

    Where it is not `close`, only the multipliers are of use.
    """

    values: Vector
    shift: Vector
    multipliers: Vector
    length: float
    close: bool


class NearestPoint:
    """The program of a relaxation by readings, made ready to be solved for many bounds of its columns."""

    def __init__(self, program: Milp, readings: Readings, domain: Domain) -> None:
        self.matrix, self.width = readings.matrix, program.columns
        self.count = len(self.matrix)  # of readings; the column after theirs is the distance
        self.columns = np.delete(np.arange(program.columns), self.count)
        rows = np.asarray(program.matrix.toarray())[:, self.columns]
        lower, upper = program.lower[self.columns], program.upper[self.columns]
        least = np.where(rows > 0, rows * lower, rows * upper).sum(axis=1) - 1.0
        most = np.where(rows > 0, rows * upper, rows * lower).sum(axis=1) + 1.0
        equal = program.row_lower == program.row_upper
        loose = np.flatnonzero(~equal)
        slack = np.zeros((len(rows), len(loose)))
        slack[loose, np.arange(len(loose))] = -1.0
        reading = np.eye(self.count, rows.shape[1] + len(loose))
        self.rows = np.vstack([-reading, np.hstack([rows, slack])])
        self.sides = np.concatenate([np.zeros(self.count), np.where(equal, program.row_lower, 0.0)])
        self.slack_lower = np.maximum(program.row_lower, least)[loose]
        self.slack_upper = np.minimum(program.row_upper, most)[loose]
        self.down, self.up = domain.down, domain.up

    def solve(self, lower: Vector, upper: Vector, cutoff: float) -> Found:
        """Within bounds of the program's columns; once it must be longer than the cutoff, that is enough."""
        pixels, last = len(self.up), len(self.up) + len(self.columns)
        low = np.concatenate([-self.down, lower[self.columns], self.slack_lower])
        high = np.concatenate([self.up, upper[self.columns], self.slack_upper])
        free = high - low > NARROW
        point = np.where(free | (np.arange(len(low)) < pixels), 0.0, (low + high) / 2)
        sides = self.sides - self.rows @ point[pixels:]
        matrix, rows = self.matrix[:, free[:pixels]], self.rows[:, free[pixels:]]
        inner = InteriorPoint(matrix, rows, sides, low[free], high[free])
        with np.errstate(all="ignore"):  # what is not finite ends the search
            inner.solve(cutoff)
        point[free] = inner.point
        length = math.sqrt(max(0.0, 2 * inner.dual))
        values = np.zeros(self.width)
        values[self.columns], values[self.count] = point[pixels:last], length
        return Found(values, point[:pixels], inner.multipliers[: self.count], length, inner.close)


class InteriorPoint:
    """Mehrotra's predictor and corrector; columns are the pixels that can move, then the others."""

    def __init__(self, matrix: Vector, rows: Vector, sides: Vector, low: Vector, high: Vector) -> None:
        self.matrix, self.rows, self.sides, self.low, self.high = matrix, rows, sides, low, high
        self.readings, self.pixels = matrix.shape
        self.curved = np.arange(len(low)) < self.pixels
        self.point = (low + high) / 2
        self.multipliers = np.zeros(len(rows))
        self.below = self.above = np.full(len(low), float(np.mean(high - low)) if len(low) else 1.0)
        self.dual, self.close = 0.0, False

    def times(self, values: Vector) -> Vector:
        total = self.rows @ values[self.pixels :]
        total[: self.readings] += self.matrix @ values[: self.pixels]
        return np.asarray(total)

    def transposed(self, y: Vector) -> Vector:
        return np.concatenate([y[: self.readings] @ self.matrix, y @ self.rows])

    def dual_value(self, y: Vector) -> float:
        v, low, high = self.transposed(y), self.low, self.high
        best = np.where(self.curved, np.clip(v, low, high), np.where(v > 0, high, low))
        shift = best[: self.pixels]
        return float(y @ self.sides - v @ best + shift @ shift / 2)

    def solve(self, cutoff: float) -> None:
        best = self.multipliers
        for _ in range(STEPS):
            value = self.dual_value(self.multipliers)
            if value > self.dual:
                self.dual, best = value, self.multipliers
            missing, shift = self.sides - self.times(self.point), self.point[: self.pixels]
            missed = np.abs(missing).max(initial=0.0) / (1.0 + np.abs(self.sides).max(initial=0.0))
            primal = float(shift @ shift) / 2
            apart = max(float(missed), abs(primal - self.dual) / max(primal, LEAST))
            self.close = apart <= CLOSE
            if self.dual > cutoff**2 / 2 or apart <= CLOSEST or not self._step(missing):
                break
        self.multipliers = best

    def _step(self, missing: Vector) -> bool:
        """One step, or False where the numbers allow none."""
        low, high = self.point - self.low, self.high - self.point
        if not (np.minimum(low, high) > 0).all() or not len(low):
            return False
        bound = self.below - self.above - np.where(self.curved, self.point, 0.0)
        lacking = self.transposed(self.multipliers) + bound
        share = 1.0 / (self.below / low + self.above / high + self.curved)
        square = self._square(share)
        damped = square + DAMPING * np.diag(np.diag(square) + float(np.trace(square)) / len(square))
        try:
            factor = cho_factor(damped)
        except (LinAlgError, ValueError):
            return False

        def direction(down: Vector, up: Vector) -> tuple[Vector, Vector, Vector, Vector]:
            right = lacking + (down / low - self.below) - (up / high - self.above)
            y = refined(square, factor, missing - self.times(share * right))
            x = share * (self.transposed(y) + right)
            below, above = (down - self.below * x) / low, (up + self.above * x) / high
            return x, y, below - self.below, above - self.above

        def reach(x: Vector, below: Vector, above: Vector) -> float:
            ways = (low, x), (high, -x), (self.below, below), (self.above, above)
            return min(1.0, *(furthest(values, change) for values, change in ways))

        mean = float(self.below @ low + self.above @ high)
        x, _, below, above = direction(np.zeros_like(low), np.zeros_like(low))
        way = reach(x, below, above)
        after = (self.below + way * below) @ (low + way * x) + (self.above + way * above) @ (high - way * x)
        aim = mean / (2 * len(low)) * (max(float(after), 0.0) / mean) ** 3
        x, y, below, above = direction(aim - x * below, aim + x * above)
        way = BACK * reach(x, below, above)
        point, multipliers = self.point + way * x, self.multipliers + way * y
        if not (way > SHORTEST and np.isfinite(point).all() and np.isfinite(multipliers).all()):
            return False
        self.point, self.multipliers = point, multipliers
        self.below, self.above = self.below + way * below, self.above + way * above
        return True

    def _square(self, share: Vector) -> Vector:
        square = (self.rows * share[self.pixels :]) @ self.rows.T
        square[: self.readings, : self.readings] += (self.matrix * share[: self.pixels]) @ self.matrix.T
        return np.asarray(square)


def refined(square: Vector, factor: tuple[Vector, bool], right: Vector) -> Vector:
    """square⁻¹·right by a factor that is a little off."""
    solution = cho_solve(factor, right, check_finite=False)
    for _ in range(REFINEMENTS):
        solution = solution + cho_solve(factor, right - square @ solution, check_finite=False)
    return np.asarray(solution)


def furthest(values: Vector, change: Vector) -> float:
    """How far along a change all values stay positive."""
    falling = change < 0
    return float(np.min(-values[falling] / change[falling], initial=np.inf))
