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

from closecall.arrays import Vector
from closecall.errors import SolverError
from closecall.milp import Limits, Milp, OnProgress, Solution, Status, objective_at, violation
from closecall.settings import DEFAULT
from closecall.solvers.tangents import ROW_TOLERANCE, Tangents

SolveLinear = Callable[[Milp, Limits, Vector | None, OnProgress | None], Solution]

FEASIBILITY = 1e-7  # what a point may break and still count as an upper bound
STEERING = DEFAULT.solvers
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
    search = _Search(milp, Tangents(milp, square), limits, on_progress, solve_linear)
    try:
        if start is not None and violation(milp, start) <= FEASIBILITY:
            search.offer(start)
        status = search.run()
    except KeyboardInterrupt:
        status = "interrupted"
    return search.solution(status)


@dataclass
class _Search:
    milp: Milp
    tangents: Tangents
    limits: Limits
    on_progress: OnProgress | None
    solve_linear: SolveLinear
    values: Vector | None = None
    upper: float = math.inf
    lower: float = -math.inf
    nodes: int = 0
    added: bool = False
    reach: float = 100.0
    sharpness: float = STEERING.sharpness
    polished: set[bytes] = field(default_factory=set)
    proven: set[bytes] = field(default_factory=set)
    began: float = field(default_factory=time.perf_counter)

    def run(self) -> Status:
        if self.milp.integer.any():
            relaxed = replace(self.milp, integer=np.zeros(self.milp.columns, dtype=bool))
            for _ in range(STEERING.rounds_without_integers):
                before = self.lower
                ended = self._round(relaxed)
                if ended not in (None, "limit"):
                    return ended
                if ended == "limit" or self.lower <= before + STEERING.worth_another_round * abs(before):
                    break
        while True:
            ended = self._round(self.milp)
            if ended is not None:
                return ended

    def offer(self, values: Vector) -> None:
        """Keep a feasible point if it is the best so far."""
        objective = objective_at(self.milp, values)
        if objective < self.upper:
            self.values, self.upper = np.array(values, dtype=np.float64), objective
            self._use_upper_bound()

    def _use_upper_bound(self) -> None:
        """Narrow the quadratic columns to what a better point can take, and touch their parabolas there."""
        straight = self.milp.objective.copy()
        straight[self.tangents.columns] = 0.0
        sides = np.where(straight > 0, self.milp.lower, self.milp.upper)
        cheapest = float((straight * np.where(straight == 0, 0.0, sides)).sum())
        cheapest += float(self.tangents.cost(self.tangents.minimiser).sum())
        if math.isfinite(cheapest):
            self.tangents.narrow(self.upper - cheapest)

    def solution(self, status: Status) -> Solution:
        seconds = time.perf_counter() - self.began
        if status == "infeasible":
            return Solution(status, None, math.inf, math.inf, self.nodes, seconds)
        if status == "unbounded":
            return Solution(status, None, -math.inf, -math.inf, self.nodes, seconds)
        return Solution(status, self.values, self.upper, self.lower, self.nodes, seconds)

    def _round(self, milp: Milp) -> Status | None:
        """Solve one linear model and add tangents; the status if the search has ended or is stuck."""
        answer = self._solve(self.tangents.linearise(milp), self._tell)
        self.nodes += answer.nodes
        if answer.status == "unbounded":
            return self._go_farther()
        if answer.status == "infeasible" and self.values is None:
            return "infeasible"
        # the columns were narrowed to points no worse than the best one: beyond it nothing is proven
        self.lower = max(self.lower, min(answer.bound, self.upper))
        values = None if answer.values is None else answer.values[: milp.columns]
        if values is not None and milp is self.milp:
            self.offer(values)
        if answer.status in ("limit", "interrupted"):
            return answer.status
        added = values is not None and self._learn(values, feasible=milp is self.milp)
        if self.upper - self.lower <= self._allowed_gap():
            return "optimal"
        if not added and self.sharpness == 0.0:
            return "limit"
        self.sharpness = STEERING.sharpness if added else 0.0
        return None

    def _learn(self, values: Vector, feasible: bool) -> bool:
        """Place tangents by a point, and look for a better one beside it; whether any tangent is new."""
        self.added = False
        self._touch(values)
        if feasible:
            self._polish(values)
        return self.added

    def _touch(self, values: Vector) -> None:
        shortfall = self._allowed_gap() / (4 * len(self.tangents.columns))
        self.added |= self.tangents.add(values[self.tangents.columns], shortfall)

    def _polish(self, values: Vector) -> None:
        """Find the best point with these integer columns by a QP; near the end, prove it by a few LPs."""
        whole = self.milp.integer
        fixed = np.round(values)
        continuous = replace(
            self.milp,
            lower=np.where(whole, fixed, self.milp.lower),
            upper=np.where(whole, fixed, self.milp.upper),
            integer=np.zeros(self.milp.columns, dtype=bool),
        )
        choice = fixed[whole].tobytes()
        if choice not in self.polished:
            self.polished.add(choice)
            self._take_point(continuous)
        if self._gap_left() < STEERING.near_the_end and choice not in self.proven:
            self.proven.add(choice)
            for _ in range(STEERING.rounds_without_integers):
                lower = self._take_point(self.tangents.linearise(continuous))
                if lower >= self.upper - self._allowed_gap() / 4 or self._seconds_left() <= 0:
                    break

    def _take_point(self, milp: Milp) -> float:
        """Learn from an LP's or QP's point and return its objective; inf if HiGHS finds none or fails."""
        try:
            answer = self._solve_part(milp)
        except SolverError:
            return math.inf
        if answer.values is None:
            return math.inf
        values = answer.values[: self.milp.columns]
        if violation(self.milp, values) > FEASIBILITY:
            return math.inf
        self.offer(values)
        self._touch(values)
        return answer.objective

    def _go_farther(self) -> Status | None:
        """Tell why the linear model is unbounded; the cure is tangents farther out."""
        if self._recedes():
            return "unbounded"
        plain = self._solve_part(replace(self.milp, objective=np.zeros(self.milp.columns), quadratic=None))
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
        return self._solve_part(direction).objective < -ROW_TOLERANCE

    def _solve_part(self, milp: Milp) -> Solution:
        """Solve a model whose bound is of no use; Ctrl-C then ends the whole search."""
        answer = self._solve(milp, self._tell_no_bound)
        if answer.status == "interrupted":
            raise KeyboardInterrupt
        return answer

    def _solve(self, milp: Milp, tell: OnProgress) -> Solution:
        limits = replace(
            self.limits,
            seconds=self._seconds_left(),
            relative_gap=self._worthwhile_gap(),
            absolute_gap=self.limits.absolute_gap / 4,
        )
        start = None
        if milp.columns > self.milp.columns and self.values is not None:
            epigraph = self.tangents.cost(self.values[self.tangents.columns])
            start = np.concatenate([self.values, epigraph])
        return self.solve_linear(milp, limits, start, tell if self.on_progress else None)

    def _seconds_left(self) -> float:
        return max(0.0, self.limits.seconds - (time.perf_counter() - self.began))

    def _worthwhile_gap(self) -> float:
        """A fraction of the gap that the tangents leave: a linear model need not be solved more sharply."""
        if not math.isfinite(self.upper):
            return 1.0
        return max(self.limits.relative_gap / 4, min(self._gap_left(), 1.0) * self.sharpness)

    def _gap_left(self) -> float:
        return (self.upper - self.lower) / max(abs(self.upper), self.limits.absolute_gap)

    def _tell(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        if self.on_progress is not None:
            elapsed = time.perf_counter() - self.began
            lower = max(self.lower, min(lower, self.upper))
            self.on_progress(lower, self.upper, self.nodes + nodes, elapsed)

    def _tell_no_bound(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        self._tell(-math.inf, upper, 0, seconds)

    def _allowed_gap(self) -> float:
        reference = self.upper if math.isfinite(self.upper) else self.lower
        relative = self.limits.relative_gap * abs(reference) if math.isfinite(reference) else 0.0
        return max(self.limits.absolute_gap, relative, ROW_TOLERANCE * (1 + len(self.tangents.columns)))
