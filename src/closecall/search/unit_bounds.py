"""Bounds by optimisation, node by node, for the units whose sign or pooling winner is still open.

`lp_bounds`    minimises and maximises over the LP relaxation of the earlier nodes; every bound is recomputed
               from the duals in float64, so HiGHS is not trusted
`milp_bounds`  does so over the MILP of the earlier nodes, the paper's improved model; the solver's own dual
               bound is trusted up to its tolerances, and a time-out still gives a bound

Both give bounds that are never wider than those they were given.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import OUTWARD, Mask, Vector
from closecall.bounds import Bounds, maximise
from closecall.encoding.encode import NetworkRows, encode_network
from closecall.encoding.precision import errors_up_to
from closecall.milp import Limits, Milp
from closecall.milp.builder import Expression
from closecall.network import Network
from closecall.network.layers import Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.solvers import solve
from closecall.solvers.incremental_lp import WarmProgram

# A lower bound on one expression over a program, given which program.
Minimise = Callable[[Expression], float]


@dataclass(frozen=True)
class Engine:
    """How to bound expressions over a program, and the perf_counter time at which to stop.

    Where it is trusted up to its tolerances, bounds are widened by what these can come to.
    """

    start: Callable[[NetworkRows], Minimise]
    deadline: float = math.inf
    has_tolerances: bool = False

    @property
    def late(self) -> bool:
        return time.perf_counter() >= self.deadline


SOLVER_TOLERANCE = 1e-6  # what a MILP solver's claim may be off by, as a share
BALL_CUTS = 4  # for each objective over an L2 ball; over hundreds of pixels they say little


def lp_bounds(network: Network, domain: Domain, bounds: Bounds, *, seconds: float = math.inf) -> Bounds:
    """Tighten by LPs over the tight encoding without integrality, each begun at the basis of the last."""
    deadline = time.perf_counter() + seconds

    def start(rows: NetworkRows) -> Minimise:
        program = WarmProgram(rows.builder.build(np.zeros(rows.builder.width)))
        ball = BallCuts(rows.movement.squared, domain.radius) if domain.norm.name == "l2" else None

        def minimise(expression: Expression) -> float:
            program.set_objective(expression.matrix.indices, expression.matrix.data)
            return outward(least(program, ball, deadline), expression, OUTWARD)

        return minimise

    return tightened(network, domain, bounds, Engine(start, deadline))


def milp_bounds(
    network: Network,
    domain: Domain,
    bounds: Bounds,
    *,
    solver: str = "highs",
    seconds_each: float = 10.0,
    until: float = math.inf,
) -> Bounds:
    """Tighten by two MILPs for each open unit: drop the same and later layers, maximise x and s over it.

    With a = x − s, max x = max(0, max a) and max s = max(0, −min a).
    """

    def start(rows: NetworkRows) -> Minimise:
        program = rows.builder.build(np.zeros(rows.builder.width))

        def minimise(expression: Expression) -> float:
            left = max(0.0, min(seconds_each, until - time.perf_counter()))
            solution = solve(with_objective(program, expression), solver, Limits(left))
            return outward(solution.bound, expression, SOLVER_TOLERANCE)

        return minimise

    return tightened(network, domain, bounds, Engine(start, until, has_tolerances=True))


def tightened(network: Network, domain: Domain, bounds: Bounds, engine: Engine) -> Bounds:
    """Walk through the nodes; carry every gain forward by intervals and linear bounds before optimising.

    While no earlier unit is open, the network is affine on the domain and its linear bounds are exact.
    """
    lower, upper = [bounds.lower[0]], [bounds.upper[0]]
    affine = True
    for node_id, node in enumerate(network.nodes, start=1):
        low, high = node.layer.interval([lower[s] for s in node.inputs], [upper[s] for s in node.inputs])
        lower.append(np.maximum(low, bounds.lower[node_id]))
        upper.append(np.minimum(high, bounds.upper[node_id]))
        if open_units(network, node_id, lower[-1], upper[-1]).any() and not engine.late:
            known = Bounds(tuple(lower), tuple(upper))
            refine_linearly(network, domain, known, node_id)
            if not affine:
                refine_by_optimisation(network, domain, known, node_id, engine)
        affine = affine and not open_units(network, node_id, lower[-1], upper[-1]).any()
    return Bounds(tuple(lower), tuple(upper))


def open_units(network: Network, node_id: int, low: Vector, high: Vector) -> Mask:
    """Units whose sign a ReLU needs, and entries that can still win a pooling window against others."""
    still_open = np.zeros(len(low), dtype=np.bool_)
    for node in network.nodes:
        if node_id not in node.inputs:
            continue
        if isinstance(node.layer, Relu):
            still_open |= (low < 0) & (high > 0)
        elif isinstance(node.layer, Maximum):
            keep = node.layer.candidates(low, high)
            keep &= keep.sum(axis=1, keepdims=True) > 1
            still_open[node.layer.windows[keep]] = True
    return still_open


def refine_linearly(network: Network, domain: Domain, known: Bounds, node_id: int) -> None:
    """Improve the open units of a node in place, where tighter earlier nodes allow."""
    low, high = known.lower[node_id], known.upper[node_id]
    units = np.flatnonzero(open_units(network, node_id, low, high))
    if len(units):
        rows = np.eye(len(low))[units]
        both = maximise(network, domain, known, node_id, np.vstack([rows, -rows]))
        high[units] = np.minimum(high[units], both[: len(units)])
        low[units] = np.maximum(low[units], -both[len(units) :])


def refine_by_optimisation(
    network: Network, domain: Domain, known: Bounds, node_id: int, engine: Engine
) -> None:
    """Improve the open units of a node in place; the side nearer zero first, and no more once decided."""
    low, high = known.lower[node_id], known.upper[node_id]
    units = np.flatnonzero(open_units(network, node_id, low, high))
    if not len(units):
        return
    rows = encode_network(network, without_rows(domain), known, "tight", last=node_id)
    minimise = engine.start(rows)
    values = rows.values[node_id]
    off_by = errors_up_to(node_id, network, known) if engine.has_tolerances else np.zeros(len(low))
    for unit in units:
        value = values.taken(np.array([unit]))
        below_first = low[unit] < 0 < high[unit] and -low[unit] < high[unit]
        for below in (below_first, not below_first):
            if engine.late or not open_units(network, node_id, low, high)[unit]:
                break
            if below:
                low[unit] = max(low[unit], minimise(value) - off_by[unit])
            else:
                high[unit] = min(high[unit], -minimise(value.scaled(-np.ones(1))) + off_by[unit])


def without_rows(domain: Domain) -> Domain:
    """The same domain; an L∞ ball as the box that it is, so that no rows measure the distance."""
    if domain.norm.name != "linf":
        return domain
    lower, upper = domain.box()
    return Domain(domain.centre, lower, upper, norm_named("l2"))


def outward(bound: float, expression: Expression, share: float) -> float:
    """A lower bound on an expression from one on its linear part; nothing learned gives −inf."""
    constant = float(expression.constant[0])
    if not math.isfinite(bound):
        return -math.inf
    return bound + constant - share * (max(1.0, abs(bound)) + abs(constant))


def with_objective(program: Milp, expression: Expression) -> Milp:
    objective = np.zeros(program.columns)
    objective[expression.matrix.indices] = expression.matrix.data
    return replace(program, objective=objective)


@dataclass(frozen=True)
class BallCuts:
    """‖v[columns]‖₂ ≤ radius, which an LP knows only through the cuts added so far."""

    columns: NDArray[np.int64]
    radius: float

    def cut(self, program: WarmProgram, values: Vector) -> bool:
        """Add the tangent u·v ≤ radius, |u| = 1, towards a point outside the ball; False for one inside."""
        shift = values[self.columns]
        length = float(np.linalg.norm(shift))
        if not length > self.radius * (1 + 1e-6):
            return False
        used = np.flatnonzero(shift)
        program.add_row(self.columns[used], shift[used] / length, -math.inf, self.radius * (1 + OUTWARD))
        return True


def least(program: WarmProgram, ball: BallCuts | None, deadline: float) -> float:
    """The safe minimum of the program's objective, cut to the ball (if any) a few times."""
    bound = -math.inf
    for _ in range(1 if ball is None else 1 + BALL_CUTS):
        _, _, values = program.solve(seconds=deadline - time.perf_counter())
        bound = max(bound, program.safe_bound())
        if ball is None or values is None or not ball.cut(program, values):
            break
    return bound
