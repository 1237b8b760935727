"""The nearest image within one linear region: all units keep a given phase, so only an LP or QP is left."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from closecall.arrays import Vector
from closecall.clock import OutOfTimeError, out_of_time
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.search.crown.blocks import Blocks
from closecall.solvers.verified import solve_verified

ROWS_AT_ONCE = 64
ROUNDS = 60
LEAST_SECONDS = 0.01  # for an LP that is begun just before the end
MULTIPLICATIONS_PER_SECOND = 3e9  # in float64, of a slow core


def linear_maps(blocks: Blocks, active: Tensor, until: float) -> tuple[Vector, Vector, Vector, Vector]:
    """Pre-activations and scores as affine functions of the image while exactly these units are active."""
    pixels = blocks.pixels
    if out_of_time(until - blocks.entries * pixels / MULTIPLICATIONS_PER_SECOND):
        raise OutOfTimeError
    # Each row is a linear function of the image, the last entry its constant.
    values = [torch.hstack([torch.eye(pixels, dtype=torch.float64), torch.zeros(pixels, 1).double()])]
    inputs = torch.zeros(blocks.units, pixels + 1, dtype=torch.float64)
    for layer in range(1, blocks.depth + 2):
        block = blocks.block(layer)
        total = torch.zeros(block.size, pixels + 1, dtype=torch.float64)
        total[:, -1] = block.bias
        for source, weight in block.weights:
            total += weight @ values[source]
        if layer <= blocks.depth:
            inputs[blocks.spans[layer]] = total
            values.append(total * active[blocks.spans[layer], None])
    both = inputs.numpy(), total.numpy()
    return both[0][:, :-1], both[0][:, -1], both[1][:, :-1], both[1][:, -1]


def nearest_in_region(
    blocks: Blocks, domain: Domain, case: Case, phases: tuple[Tensor, Tensor], until: float
) -> tuple[float, Vector | None]:
    """A lower bound on the distance (inf when there is none) and the nearest image that reaches the case.

    `phases` = (active, kept): the phase of every unit, and which of them must be kept; their rows enter only
    when broken. The bound holds whatever the solver says. Zero and no image if there is no time for it before
    the perf_counter time `until`.
    """
    active, kept = phases
    try:
        slopes, offsets, score_slopes, score_offsets = linear_maps(blocks, active, until)
    except OutOfTimeError:
        return 0.0, None
    signs = np.where(active.numpy(), 1.0, -1.0)
    builder = ProgramBuilder()
    movement = domain.norm.encode(builder, domain.down, domain.up)
    if movement.distance is not None and np.isfinite(domain.radius):
        builder.add_rows(movement.distance, -np.inf, domain.radius)
    pixels = movement.shifts + Expression.constants(domain.centre)
    builder.add_rows(
        pixels.mapped(case.matrix @ score_slopes), case.threshold - case.matrix @ score_offsets, np.inf
    )
    objective = np.zeros(builder.width)
    quadratic = np.zeros(builder.width)
    if movement.distance is not None:
        objective[movement.distance.matrix.indices] += movement.distance.matrix.data
    quadratic[movement.squared] = 1.0
    missing = kept.numpy().copy()
    lower = 0.0
    for _ in range(ROUNDS):
        milp = builder.build(objective, quadratic if len(movement.squared) else None)
        left = until - time.perf_counter()
        solution = solve_verified(milp, max(LEAST_SECONDS, left))
        if np.isposinf(solution.bound):
            return np.inf, None
        bound = max(0.0, solution.bound)
        lower = max(lower, float(np.sqrt(bound)) if len(movement.squared) else bound)
        if solution.values is None or out_of_time(until):
            return lower, None
        image = domain.clip(pixels.at(solution.values))
        broken = np.where(missing, -signs * (slopes @ image + offsets), -np.inf)
        worst = np.argsort(-broken)[:ROWS_AT_ONCE]
        worst = worst[broken[worst] > 1e-9]
        if not len(worst):
            return lower, image
        missing[worst] = False
        builder.add_rows(
            pixels.mapped(signs[worst, None] * slopes[worst]), -signs[worst] * offsets[worst], np.inf
        )
    return lower, None
