"""The nearest image within one linear region: all units keep a given phase, so only an LP or QP is left."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.search.crown.dense_network import DenseNetwork
from closecall.settings import DEFAULT, Settings
from closecall.solvers.verified import solve_verified


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
    program = RegionProgram(maps, domain, case)
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
