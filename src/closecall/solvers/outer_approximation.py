"""Minimise a convex separable quadratic over a MILP's points, with a solver that only knows linear rows.

Each quadratic column v gets an epigraph column t that replaces its whole cost c·v + q·v² in the objective:

    t ≥ c·v + q·(2·p·v − p²)    for each tangent point p,       t ≥ min { c·v + q·v² : lower ≤ v ≤ upper }

Every tangent lies below the parabola, so the linear solver's proven bound is a lower bound of the quadratic
problem, and each of its points is feasible there, which gives upper bounds. With the integer columns fixed, a
continuous QP improves the point. Tangents are added at both points until the two bounds meet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, Vector, objective_at, violation

SolveLinear = Callable[[Milp, Limits, Vector | None, OnProgress | None], Solution]

FEASIBILITY = 1e-7  # what a point may break and still count as an upper bound
ROW_TOLERANCE = 1e-9  # what the linear solver may break a tangent by
ROUNDS_WITHOUT_INTEGERS = 12  # cheap LPs that place tangents before the first MILP
FIRST_TANGENTS = 5  # per column, spread over its bounds
FARTHEST = 1e8  # from its minimiser, for a column without bounds


def solve_quadratic(
    milp: Milp,
    limits: Limits,
    start: Vector | None,
    on_progress: OnProgress | None,
    solve_linear: SolveLinear,
) -> Solution:
    """Minimise by way of `solve_linear`, which must take LPs and MILPs, and may take continuous QPs."""
    square = np.zeros(milp.columns) if milp.quadratic is None else milp.quadratic
    search = _Search(milp, _Tangents(milp, square), limits, on_progress, solve_linear)
    try:
        if start is not None and violation(milp, start) <= FEASIBILITY:
            search.offer(start)
        status = search.run()
    except KeyboardInterrupt:
        status = "interrupted"
    return search.solution(status)


class _Tangents:
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

    def spread(self, reach: float) -> None:
        """Touch each parabola over its bounds, or up to `reach` from its minimiser where it has none."""
        lower, upper = self.box
        bounded = np.isfinite(lower) & np.isfinite(upper)
        for share in np.linspace(0.0, 1.0, FIRST_TANGENTS):
            step = np.sign(share - 0.5) * reach ** (2 * abs(share - 0.5))
            far = np.clip(self.minimiser + step, lower, upper)
            with np.errstate(invalid="ignore"):
                inside = lower + share * (upper - lower)
            self.add(np.where(bounded, inside, far), 0.0)

    def add(self, points: Vector, shortfall: float) -> bool:
        """Touch at the points (one per column) that lie more than `shortfall` above all tangents.

        The tangent at p lies q·(v − p)² below the parabola at v.
        """
        nearest = np.full(len(self.columns), np.inf)
        np.minimum.at(nearest, self.which, np.abs(points[self.which] - self.at))
        new = np.flatnonzero(self.square * nearest**2 > shortfall)
        self.which = np.concatenate([self.which, new])
        self.at = np.concatenate([self.at, points[new]])
        return len(new) > 0

    def linearise(self, milp: Milp) -> Milp:
        """The linear model with the tangents so far; its last columns are the epigraph columns."""
        count, extra, tangents = milp.columns, len(self.columns), len(self.at)
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
            lower=np.concatenate([milp.lower, self.cost(self.minimiser)]),
            upper=np.concatenate([milp.upper, np.full(extra, np.inf)]),
            integer=np.concatenate([milp.integer, np.zeros(extra, dtype=bool)]),
        )


@dataclass
class _Search:
    milp: Milp
    tangents: _Tangents
    limits: Limits
    on_progress: OnProgress | None
    solve_linear: SolveLinear
    values: Vector | None = None
    upper: float = math.inf
    lower: float = -math.inf
    nodes: int = 0
    reach: float = 100.0
    polished: set[bytes] = field(default_factory=set)
    began: float = field(default_factory=time.perf_counter)

    def run(self) -> Status:
        if self.milp.integer.any():
            relaxed = replace(self.milp, integer=np.zeros(self.milp.columns, dtype=bool))
            for _ in range(ROUNDS_WITHOUT_INTEGERS):
                ended = self._round(relaxed)
                if ended == "limit":
                    break
                if ended is not None:
                    return ended
        while True:
            ended = self._round(self.milp)
            if ended is not None:
                return ended

    def offer(self, values: Vector) -> None:
        """Keep a feasible point if it is the best so far."""
        objective = objective_at(self.milp, values)
        if objective < self.upper:
            self.values, self.upper = np.array(values, dtype=np.float64), objective

    def solution(self, status: Status) -> Solution:
        seconds = time.perf_counter() - self.began
        if status == "infeasible":
            return Solution(status, None, math.inf, math.inf, self.nodes, seconds)
        if status == "unbounded":
            return Solution(status, None, -math.inf, -math.inf, self.nodes, seconds)
        return Solution(status, self.values, self.upper, self.lower, self.nodes, seconds)

    def _round(self, milp: Milp) -> Status | None:
        """Solve one linear model and add tangents; the status if the search has ended or is stuck."""
        answer = self._solve(self.tangents.linearise(milp))
        self.nodes += answer.nodes
        if answer.status == "unbounded":
            return self._go_farther()
        if answer.status == "infeasible":
            return "infeasible"
        self.lower = max(self.lower, answer.bound)
        added = False
        if answer.values is not None:
            added = self._learn(answer.values[: milp.columns], feasible=milp is self.milp)
        if answer.status in ("limit", "interrupted"):
            return answer.status
        if self.upper - self.lower <= self._allowed_gap():
            return "optimal"
        return None if added else "limit"

    def _learn(self, values: Vector, feasible: bool) -> bool:
        """Take the upper bounds and tangents that a point offers; whether any tangent is new."""
        points = [values]
        if feasible:
            self.offer(values)
            better = self._polish(values)
            if better is not None:
                self.offer(better)
                points.append(better)
        shortfall = self._allowed_gap() / (4 * len(self.tangents.columns))
        added = [self.tangents.add(point[self.tangents.columns], shortfall) for point in points]
        return any(added)

    def _polish(self, values: Vector) -> Vector | None:
        """The best point with these integer columns, by a continuous QP; None if the QP fails or is old."""
        whole = self.milp.integer
        fixed = np.round(values)
        if fixed[whole].tobytes() in self.polished:
            return None
        self.polished.add(fixed[whole].tobytes())
        continuous = replace(
            self.milp,
            lower=np.where(whole, fixed, self.milp.lower),
            upper=np.where(whole, fixed, self.milp.upper),
            integer=np.zeros(self.milp.columns, dtype=bool),
        )
        try:
            better = self._solve(continuous).values
        except SolverError:
            return None
        return better if better is not None and violation(self.milp, better) <= FEASIBILITY else None

    def _go_farther(self) -> Status | None:
        """Tell why the linear model is unbounded; the cure is tangents farther out."""
        if self._recedes():
            return "unbounded"
        plain = self._solve(replace(self.milp, objective=np.zeros(self.milp.columns), quadratic=None))
        if plain.status != "optimal":
            return plain.status
        if self.reach >= FARTHEST:
            return "limit"
        self.reach *= 100
        self.tangents.spread(self.reach)
        return None

    def _recedes(self) -> bool:
        """Whether some direction lowers the cost for ever, the quadratic columns standing still."""
        moving = np.ones(self.milp.columns)
        moving[self.tangents.columns] = 0.0
        direction = replace(
            self.milp,
            row_lower=np.where(np.isfinite(self.milp.row_lower), 0.0, -np.inf),
            row_upper=np.where(np.isfinite(self.milp.row_upper), 0.0, np.inf),
            lower=np.where(np.isfinite(self.milp.lower), 0.0, -moving),
            upper=np.where(np.isfinite(self.milp.upper), 0.0, moving),
            integer=np.zeros(self.milp.columns, dtype=bool),
            quadratic=None,
        )
        return self._solve(direction).objective < -ROW_TOLERANCE

    def _solve(self, milp: Milp) -> Solution:
        limits = replace(
            self.limits,
            seconds=max(0.0, self.limits.seconds - (time.perf_counter() - self.began)),
            relative_gap=self.limits.relative_gap / 4,
            absolute_gap=self.limits.absolute_gap / 4,
        )
        start = None
        if milp.columns > self.milp.columns and self.values is not None:
            epigraph = self.tangents.cost(self.values[self.tangents.columns])
            start = np.concatenate([self.values, epigraph])
        return self.solve_linear(milp, limits, start, self._tell if self.on_progress else None)

    def _tell(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        if self.on_progress is not None:
            elapsed = time.perf_counter() - self.began
            self.on_progress(max(self.lower, lower), self.upper, self.nodes + nodes, elapsed)

    def _allowed_gap(self) -> float:
        reference = self.upper if math.isfinite(self.upper) else self.lower
        relative = self.limits.relative_gap * abs(reference) if math.isfinite(reference) else 0.0
        return max(self.limits.absolute_gap, relative, ROW_TOLERANCE * (1 + len(self.tangents.columns)))
