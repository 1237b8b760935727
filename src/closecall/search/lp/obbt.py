"""Optimisation-based bound tightening (OBBT) over what could still beat the incumbent.

Ordinary bounds hold for every image within the radius. Here each open unit is maximised and minimised over
the images that the relaxation lets reach the goal within the radius as well, so that the bounds tighten as
the incumbent improves. Every bound is recomputed from the duals by weak duality.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import Vector
from closecall.bounds import Bounds
from closecall.search.lp.relaxation import Relaxation
from closecall.solvers.incremental_lp import WarmProgram

MADE = 1e-7  # a choice whose smallest gap is below this share is made


@dataclass(frozen=True, eq=False)
class Tightened:
    """New bounds; `empty` when it is proven that nothing beats the incumbent."""

    bounds: Bounds
    empty: bool = False


def tighten(
    relaxation: Relaxation, bounds: Bounds, *, deadline: float, everything: bool = True, reached: float
) -> Tightened:
    """One round over all open units, layer by layer; the gaps' bounds are updated as they become known.

    Without `everything`, units whose choice is made at the relaxation's optimum are passed over. A bound that
    some point comes near to, by a share `reached` of its width, is left alone.
    """
    program = relaxation.warm()
    status, _, values = program.solve(seconds=max(0.0, deadline - time.perf_counter()))
    if status != "optimal" or values is None:
        return Tightened(bounds, empty=status == "infeasible" and program.farkas_proves_infeasible())
    lower, upper = [low.copy() for low in bounds.lower], [high.copy() for high in bounds.upper]
    seen = Seen(relaxation, reached)
    seen.note(values)
    wanted = (relaxation.entries.unit >= 0) & (everything | undecided_at(relaxation, values))
    for node in np.unique(relaxation.node):
        for entry in np.flatnonzero((relaxation.node == node) & wanted):
            if time.perf_counter() > deadline:
                return Tightened(Bounds(tuple(lower), tuple(upper)))
            unit = int(relaxation.entries.unit[entry])
            low, high = tighten_entry(
                program, seen, int(entry), (lower[node][unit], upper[node][unit]), deadline
            )
            lower[node][unit], upper[node][unit] = low, high
        tighten_gaps(program, relaxation, int(node), lower[node], upper[node])
    return Tightened(Bounds(tuple(lower), tuple(upper)))


def undecided_at(relaxation: Relaxation, values: Vector) -> NDArray[np.bool_]:
    """For each entry, whether its choice is not made at a point: every gap of it is open."""
    entries = relaxation.entries
    shares = values[entries.gap] / entries.most
    smallest = np.full(relaxation.choices, np.inf)
    np.minimum.at(smallest, entries.choice, shares)
    return np.asarray(smallest[entries.choice] > MADE)


class Seen:
    """The smallest and largest value of each entry among the points met so far."""

    def __init__(self, relaxation: Relaxation, reached: float) -> None:
        self.entries, self.reached = relaxation.entries, reached
        self.least = np.full(len(self.entries.gap), np.inf)
        self.most = np.full(len(self.entries.gap), -np.inf)

    def note(self, values: Vector) -> None:
        worth = values[self.entries.whole] - values[self.entries.gap]
        self.least = np.minimum(self.least, worth)
        self.most = np.maximum(self.most, worth)


def tighten_entry(
    program: WarmProgram, seen: Seen, entry: int, known: tuple[float, float], deadline: float
) -> tuple[float, float]:
    """Bounds on one entry, the side nearer zero first; the other side is left when the sign is decided."""
    low, high = known
    columns = np.array([seen.entries.whole[entry], seen.entries.gap[entry]])
    for side in (1.0, -1.0) if high < -low else (-1.0, 1.0):
        if low >= 0 or high <= 0:
            break
        near = seen.reached * (high - low)
        if (side > 0 and seen.most[entry] >= high - near) or (side < 0 and seen.least[entry] <= low + near):
            continue
        program.set_objective(columns, np.array([-side, side]))
        status, _, values = program.solve(seconds=max(0.0, deadline - time.perf_counter()))
        if status != "optimal" or values is None:
            continue
        seen.note(values)
        if side > 0:
            high = max(low, min(high, -program.safe_bound()))
        else:
            low = min(high, max(low, program.safe_bound()))
    return low, high


def tighten_gaps(program: WarmProgram, relaxation: Relaxation, node: int, low: Vector, high: Vector) -> None:
    """Let later layers profit: a ReLU's x ≤ u and s ≤ −l."""
    entries = relaxation.entries
    signed = np.flatnonzero((relaxation.node == node) & (entries.unit >= 0))
    relus = signed[np.isin(entries.choice[signed], entries.choice[entries.unit < 0])]
    units = entries.unit[relus]
    columns = np.concatenate([entries.gap[relus], entries.whole[relus]])
    most = np.concatenate([np.maximum(-low[units], 0.0), np.maximum(high[units], 0.0)])
    program.set_column_bounds(columns, np.zeros(len(columns)), np.minimum(program.upper[columns], most))


def open_width(relaxation: Relaxation, bounds: Bounds) -> float:
    """How much room the open units of a relaxation have in all."""
    signed = relaxation.entries.unit >= 0
    pairs = zip(relaxation.node[signed], relaxation.entries.unit[signed], strict=True)
    width = 0.0
    for node, unit in pairs:
        low, high = bounds.lower[node][unit], bounds.upper[node][unit]
        width += min(-low, high) if low < 0 < high else 0.0
    return width
