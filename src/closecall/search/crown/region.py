"""The nearest image within one linear region: all units keep a given phase, so only an LP or QP is left."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.search.crown.dense_network import DenseNetwork
from closecall.settings import DEFAULT, Settings
from closecall.solvers.incremental_lp import ROUNDING, WarmProgram
from closecall.solvers.verified import solve_verified

A_HAIR = 1e-7  # by which a box is larger than what is proven, as a share: for rounding, and to come to an end
NEARLY = 1e-9  # HiGHS's tolerance: by so much a row may be missed
WORTH_A_BOX = 0.1  # the share of what is left by which a radius must grow, or the middle is tried
MOST_BOXES = 40


@dataclass(frozen=True, eq=False)
class UnitPhases:
    """Which units are active, and which of all must keep their phase: the others keep it anyway."""

    active: Tensor
    kept: Tensor


@dataclass(frozen=True, eq=False)
class LinearMaps:
    """Pre-activations and scores as affine functions of the image."""

    slopes: Vector
    offsets: Vector
    score_slopes: Vector
    score_offsets: Vector


def linear_maps(network: DenseNetwork, active: Tensor) -> LinearMaps:
    """Those that hold while exactly these units are active."""
    pixels = network.pixels
    # Each row is a linear function of the image, the last entry its constant.
    values = [torch.hstack([torch.eye(pixels, dtype=torch.float64), torch.zeros(pixels, 1).double()])]
    inputs = torch.zeros(network.units, pixels + 1, dtype=torch.float64)
    for index in range(1, network.depth + 2):
        layer = network.layer(index)
        total = torch.zeros(layer.size, pixels + 1, dtype=torch.float64)
        total[:, -1] = layer.bias
        for source, weight in layer.weights:
            total += weight @ values[source]
        if index <= network.depth:
            inputs[network.spans[index]] = total
            values.append(total * active[network.spans[index], None])
    units, scores = inputs.numpy(), total.numpy()
    return LinearMaps(units[:, :-1], units[:, -1], scores[:, :-1], scores[:, -1])


class RegionProgram:
    """The LP or QP for the nearest image that reaches a case under affine scores; rows may be added."""

    def __init__(self, maps: LinearMaps, domain: Domain, case: Case) -> None:
        self.builder = ProgramBuilder()
        movement = domain.norm.encode(self.builder, domain.down, domain.up)
        if movement.distance is not None and np.isfinite(domain.radius):
            self.builder.add_rows(movement.distance, -np.inf, domain.radius)
        self.pixels = movement.shifts + Expression.constants(domain.centre)
        self.add(case.matrix @ maps.score_slopes, case.threshold - case.matrix @ maps.score_offsets)
        self.objective, self.quadratic = np.zeros(self.builder.width), np.zeros(self.builder.width)
        if movement.distance is not None:
            self.objective[movement.distance.matrix.indices] += movement.distance.matrix.data
        self.quadratic[movement.squared] = 1.0
        self.is_quadratic = len(movement.squared) > 0

    def add(self, slopes: Vector, least: Vector) -> None:
        """slopes·image ≥ least."""
        self.builder.add_rows(self.pixels.mapped(slopes), least, np.inf)

    def solve(self, seconds: float) -> tuple[float, Vector | None]:
        """A lower bound on the distance, whatever the solver says, and the solver's image."""
        milp = self.builder.build(self.objective, self.quadratic if self.is_quadratic else None)
        solution = solve_verified(milp, seconds)
        if np.isposinf(solution.bound):
            return np.inf, None
        bound = max(0.0, solution.bound)
        image = None if solution.values is None else self.pixels.at(solution.values)
        return float(np.sqrt(bound)) if self.is_quadratic else bound, image


class BoxedRegion:
    """The same in L∞: a few boxes, each an LP without a column above all shifts.

    In a box the hardest row of the case is exceeded by as much as the other rows allow. Multipliers y ≥ 0 of
    the rows say how far out an image must be at least: at a radius r, y·A·shifts is at most
    Σ |yA|_i·min(r, the room of pixel i), and must come up to y·(what the rows ask for). That is Newton's
    method for the radius at which the row is just reached; where it hardly moves, the middle is tried.
    """

    def __init__(self, maps: LinearMaps, domain: Domain, case: Case) -> None:
        self.domain, self.reach = domain, 0.0
        slopes = case.matrix @ maps.score_slopes
        least = case.threshold - case.matrix @ maps.score_offsets
        self.matrix, self.least = np.zeros((0, slopes.shape[1])), np.zeros(0)
        hardest = int((slopes @ domain.centre - least).argmin())
        builder = ProgramBuilder()
        builder.add_columns("shift", -domain.down, domain.up)
        self.program = WarmProgram(builder.build(-slopes[hardest]))
        self.hardest = slopes[hardest], float(least[hardest] - slopes[hardest] @ domain.centre)
        others = np.delete(np.arange(len(least)), hardest)
        if len(others):
            self.add(slopes[others], least[others])

    def add(self, slopes: Vector, least: Vector) -> None:
        """slopes·image ≥ least."""
        least = least - slopes @ self.domain.centre
        self.matrix, self.least = np.vstack([self.matrix, slopes]), np.append(self.least, least)
        self.program.add_rows(csr_array(slopes), least, np.full(len(least), np.inf))

    def solve(self, seconds: float) -> tuple[float, Vector | None]:
        """A lower bound on the distance, whatever the solver says, and an image hardly further away."""
        until = time.perf_counter() + seconds
        found, within, radius = None, self.domain.radius, self.reach * (1.0 + A_HAIR)
        for _ in range(MOST_BOXES):
            shifts, further = self.look_within(radius, until)
            before, self.reach = self.reach, max(self.reach, further)
            if shifts is not None:
                found, within = self.domain.centre + shifts, float(np.abs(shifts).max())
            if self.reach > self.domain.radius:
                return np.inf, None
            if self.reach * (1.0 + A_HAIR) >= within or out_of_time(until):
                break
            slow = self.reach - before < WORTH_A_BOX * (within - before)
            radius = (self.reach + within) / 2 if slow and radius < within else self.reach * (1.0 + A_HAIR)
        return self.reach, found

    def look_within(self, radius: float, until: float) -> tuple[Vector | None, float]:
        """The shifts of an image that reaches the case within a radius, and a radius proven on the way."""
        low, high = np.minimum(self.domain.down, radius), np.minimum(self.domain.up, radius)
        self.program.set_column_bounds(np.arange(len(low)), -low, high)
        status, value, shifts = self.program.solve(seconds=max(0.0, until - time.perf_counter()))
        least = self.hardest[1]
        if status == "infeasible":
            multipliers = self.program.farkas()
            return None, 0.0 if multipliers is None else self.reach_shown_by(multipliers, 0.0)
        if status != "optimal":
            return None, 0.0
        reached = -value >= least - NEARLY * max(1.0, abs(least))
        return shifts if reached else None, self.reach_shown_by(self.program.duals(), 1.0)

    def reach_shown_by(self, multipliers: Vector, of_hardest: float) -> float:
        """The radius below which no image fulfils the rows weighted by multipliers; infinity if none does."""
        multipliers = np.append(np.maximum(multipliers, 0.0), of_hardest)
        matrix, least = np.vstack([self.matrix, self.hardest[0]]), np.append(self.least, self.hardest[1])
        slopes, wanted = multipliers @ matrix, float(multipliers @ least)
        rooms = np.where(slopes > 0, self.domain.up, self.domain.down)
        widest = np.maximum(self.domain.up, self.domain.down) + np.abs(self.domain.centre)
        wanted -= ROUNDING * float(multipliers @ (np.abs(least) + np.abs(matrix) @ widest))
        order = np.argsort(rooms)
        rooms, gains = rooms[order], np.abs(slopes[order])
        full = np.append(0.0, np.cumsum(gains * rooms))  # what the pixels give that have no room left
        growing = np.append(np.cumsum(gains[::-1])[::-1], 0.0)  # and what the others give per unit of radius
        reached = full[:-1] + growing[:-1] * rooms >= wanted
        if not reached.any():
            return np.inf
        first = int(reached.argmax())
        return max(0.0, (wanted - full[first]) / growing[first]) * (1.0 - ROUNDING) if wanted > 0 else 0.0


def nearest_in_region(
    network: DenseNetwork,
    domain: Domain,
    case: Case,
    phases: UnitPhases,
    until: float,
    settings: Settings = DEFAULT,
) -> tuple[float, Vector | None]:
    """A lower bound on the distance (inf when there is none) and the nearest image that reaches the case.

    The rows of phases that must be kept enter only when broken. The bound holds whatever the solver says.
    Zero and no image if there is no time for it before the perf_counter time `until`.
    """
    climbs = settings.crown.climbs
    if out_of_time(until - network.entries * network.pixels / climbs.multiplications_per_second):
        return 0.0, None
    maps = linear_maps(network, phases.active)
    signs = np.where(phases.active.numpy(), 1.0, -1.0)
    program = (BoxedRegion if domain.norm.name == "linf" else RegionProgram)(maps, domain, case)
    missing = phases.kept.numpy().copy()
    lower = 0.0
    for _ in range(climbs.rounds):
        bound, solved = program.solve(max(settings.sizes.least_lp_seconds, until - time.perf_counter()))
        lower = max(lower, bound)
        if solved is None or out_of_time(until):
            return lower, None
        image = domain.clip(solved)
        broken = np.where(missing, -signs * (maps.slopes @ image + maps.offsets), -np.inf)
        worst = np.argsort(-broken)[: climbs.phases_at_once]
        worst = worst[broken[worst] > climbs.broken_by]
        if not len(worst):
            return lower, image
        missing[worst] = False
        program.add(signs[worst, None] * maps.slopes[worst], -signs[worst] * maps.offsets[worst])
    return lower, None
