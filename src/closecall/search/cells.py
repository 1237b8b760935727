"""Questions about one or two numbers: boxes of them, each bounded as a whole, split where nothing is proven.

Within a small enough box nearly every unit is decided, and where all are, linear bounds are exact. The boxes
are taken in the order of their distance, so that nothing nearer than the first that is left is open. What is
decided in a box is folded away for its parts.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from itertools import count, product

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.attacks.gradient import pull_back
from closecall.bounds import excluded_cases, linear_bounds
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal
from closecall.question.norms import norm_named
from closecall.search.presolve import presolve
from closecall.search.problem import Problem


@dataclass(frozen=True, eq=False)
class Cell(Domain):
    """A box, cut by direction·v ≤ reach: in L1 and L2 all that is nearer than the incumbent lies there."""

    direction: Vector | None = None
    reach: float = math.inf

    def maximum(self, rows: Vector) -> Vector:
        """By duality, a·v ≤ λ·reach + max (a − λ·direction)·v over the box, for any λ ≥ 0; the best of a few.

        The least is where an entry of a − λ·direction changes its sign.
        """
        best = super().maximum(rows)
        if self.direction is None:
            return best
        for slope, entries in zip(self.direction, rows.T, strict=True):
            if slope == 0:
                continue
            shares = np.maximum(entries / slope, 0.0)
            rest = super().maximum(rows - shares[:, None] * self.direction)
            largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
            rounding = OUTWARD * (shares * (self.reach + np.abs(self.direction) @ largest))
            best = np.minimum(best, shares * self.reach + rest + rounding)
        return np.asarray(best)


@dataclass(frozen=True, eq=False)
class Part:
    """A box of numbers, with the network and the cases that are left in it."""

    lower: Vector
    upper: Vector
    network: Network
    goal: Goal

    @property
    def nearest(self) -> Vector:
        """Its point that is nearest to the original, which is 0."""
        return np.asarray(np.clip(0.0, self.lower, self.upper))


def search_cells(problem: Problem) -> None:
    """Prove box by box, from the original outwards."""
    with problem.clock.stage("search"):
        look_around(problem)
        if not problem.incumbent.settled:
            Cells(problem).run()


class Cells:
    """The boxes that are left, by their distance."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.incumbent, self.norm = problem, problem.incumbent, problem.domain.norm
        self.order, self.left = count(), list[tuple[float, int, Part]]()
        lower, upper = problem.domain.box()
        sides = [((low, 0.0), (0.0, high)) for low, high in zip(lower, upper, strict=True)]
        for chosen in product(*sides):
            ends = np.array(chosen).T
            self.add(Part(ends[0], ends[1], problem.simplified, problem.goal))

    def add(self, part: Part) -> None:
        distance = float(self.norm.distance(part.nearest)) * (1.0 - OUTWARD)
        if distance <= self.problem.domain.radius:
            heapq.heappush(self.left, (distance, next(self.order), part))

    def run(self) -> None:
        incumbent = self.incumbent
        while self.left and self.left[0][0] < incumbent.wanted and not incumbent.answered:
            if self.problem.clock.left <= 0:
                return
            distance, _, part = heapq.heappop(self.left)
            incumbent.prove(distance)
            incumbent.statistics.nodes += 1
            self.settle(part)
            incumbent.tell_now_and_then()
        if not incumbent.answered:
            incumbent.prove(incumbent.proves(self.problem.domain.radius))

    def settle(self, part: Part) -> None:
        """Prove that nothing of interest is in a box, or split it."""
        cell, until = self.cell(part), self.problem.clock.deadline
        bounds = linear_bounds(part.network, cell, until, self.problem.settings.linear_bounds)
        excluded = excluded_cases(part.network, cell, part.goal, bounds)
        if excluded.all():
            return
        cases = tuple(case for case, out in zip(part.goal.cases, excluded, strict=True) if not out)
        goal, sizes = replace(part.goal, cases=cases), self.problem.settings.sizes
        local = presolve(part.network, cell, goal, bounds, until, sizes)
        self.offer((part.nearest, cell.centre))
        widest = int((cell.upper - cell.lower).argmax())
        for end in (0, 1):
            lower, upper = cell.lower.copy(), cell.upper.copy()
            (upper, lower)[end][widest] = cell.centre[widest]
            self.add(Part(lower, upper, local.network, local.goal))

    def cell(self, part: Part) -> Cell:
        """The part of a box that is nearer than the incumbent, or all but nothing more."""
        reach = min(self.incumbent.wanted, self.problem.domain.radius) * (1.0 + OUTWARD)
        lower, upper = np.maximum(part.lower, -reach), np.minimum(part.upper, reach)
        middle = (lower + upper) / 2
        direction = None
        if len(middle) > 1 and math.isfinite(reach) and self.norm.name != "linf":
            # Each box lies in one orthant.
            direction = np.sign(middle) if self.norm.name == "l1" else middle / np.linalg.norm(middle)
        return Cell(middle, lower, upper, norm_named("linf"), direction=direction, reach=reach)

    def offer(self, points: tuple[Vector, ...]) -> None:
        """Take a point that reaches the goal, and whatever is on the way to it from the original."""
        problem = self.problem
        domain, goal = problem.domain, problem.goal
        for point in points:
            near = domain.distance(point) < self.incumbent.distance
            if near and goal.slack(problem.simplified.forward(point[None]))[0] >= 0:
                until, settings = problem.clock.deadline, problem.settings.attack
                self.incumbent.offer(pull_back(problem.simplified, domain, goal, point, until, settings))


def look_around(problem: Problem) -> None:
    """A first witness: the nearest point of a grid that reaches the goal."""
    settings, domain, network = problem.settings.cells, problem.domain, problem.simplified
    lower, upper = domain.box()
    each = settings.grid[len(lower) - 1]
    lines = [np.linspace(low, high, each) for low, high in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, len(lower))
    distances = domain.norm.distance(points)
    points = points[np.argsort(distances, kind="stable")][: int((distances <= domain.radius).sum())]
    at_once = max(1, settings.values_at_once // sum(node.layer.size for node in network.nodes))
    for begin in range(0, len(points), at_once):
        if problem.clock.left <= 0:
            return
        some = points[begin : begin + at_once]
        reached = np.flatnonzero(problem.goal.slack(network.forward(some)) >= 0)
        if len(reached):
            found, until = some[reached[0]], problem.clock.deadline
            problem.incumbent.offer(
                pull_back(network, domain, problem.goal, found, until, problem.settings.attack)
            )
            return
