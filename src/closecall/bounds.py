"""Lower and upper bounds on every node of a network over a domain: intervals, then linear bounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closecall.domain import Domain
from closecall.errors import QueryError
from closecall.layers import Affine, Maximum, Relu
from closecall.layers.layer import OUTWARD
from closecall.network import Network, Node
from closecall.query import Case, Goal

Vector = NDArray[np.float64]
ROWS_AT_ONCE = 512
BISECTIONS = 6


@dataclass(frozen=True, eq=False)
class Bounds:
    """lower[i] ≤ value i ≤ upper[i] for the image (i = 0) and every node of the network."""

    lower: tuple[Vector, ...]
    upper: tuple[Vector, ...]

    def of(self, sources: tuple[int, ...]) -> tuple[list[Vector], list[Vector]]:
        return [self.lower[source] for source in sources], [self.upper[source] for source in sources]

    def sums(self, node: Node) -> Vector:
        """The most that the terms of each unit of a node add up to without their signs."""
        if isinstance(node.layer, Affine):
            largest = [np.maximum(np.abs(self.lower[s]), np.abs(self.upper[s])) for s in node.inputs]
            return node.layer.sums(largest)
        source = node.inputs[0]
        size = np.maximum(np.abs(self.lower[source]), np.abs(self.upper[source]))
        return size if isinstance(node.layer, Relu) else np.full(node.layer.size, size.max(initial=0.0))

    def undecided(self, network: Network) -> int:
        """How many ReLU units of unknown sign and pooling windows of unknown winner are left."""
        count = 0
        for node in network.nodes:
            low, high = self.lower[node.inputs[0]], self.upper[node.inputs[0]]
            if isinstance(node.layer, Relu):
                count += int(((low < 0) & (high > 0)).sum())
            elif isinstance(node.layer, Maximum):
                count += int((node.layer.candidates(low, high).sum(axis=1) > 1).sum())
        return count


Refine = Callable[[Bounds, int], tuple[Vector, Vector]]


def interval_bounds(network: Network, domain: Domain) -> Bounds:
    """Interval arithmetic over the smallest box around the domain: the paper's basic model."""
    return forward_bounds(network, domain, None)


def linear_bounds(network: Network, domain: Domain) -> Bounds:
    """Linear bounds (CROWN) over the domain itself, never wider than the interval bounds."""

    def refine(known: Bounds, node_id: int) -> tuple[Vector, Vector]:
        low, high = known.lower[node_id].copy(), known.upper[node_id].copy()
        units = units_worth_refining(network, node_id, low, high)
        for chunk in np.array_split(units, max(1, -(-len(units) // ROWS_AT_ONCE))):
            rows = np.eye(len(low))[chunk]
            both = maximise(network, domain, known, node_id, np.vstack([rows, -rows]))
            high[chunk] = np.minimum(high[chunk], both[: len(chunk)])
            low[chunk] = np.maximum(low[chunk], -both[len(chunk) :])
        return low, high

    return forward_bounds(network, domain, refine)


def forward_bounds(network: Network, domain: Domain, refine: Refine | None) -> Bounds:
    """Walk through the nodes; refine what a ReLU, a maximum or the outside world reads."""
    box = domain.box()
    lower, upper = [box[0]], [box[1]]
    worth = {source for node in network.nodes if not isinstance(node.layer, Affine) for source in node.inputs}
    worth.add(len(network.nodes))
    for node_id, node in enumerate(network.nodes, start=1):
        low, high = node.layer.interval([lower[s] for s in node.inputs], [upper[s] for s in node.inputs])
        check_finite(low, high)
        lower.append(low)
        upper.append(high)
        if refine is not None and node_id in worth and not isinstance(node.layer, Relu):
            lower[-1], upper[-1] = refine(Bounds(tuple(lower), tuple(upper)), node_id)
    return Bounds(tuple(lower), tuple(upper))


def check_finite(low: Vector, high: Vector) -> None:
    """Refuse to go on with numbers that say nothing: a comparison with NaN is false, which is not a proof."""
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise QueryError(
            "the network's values overflow somewhere in the pixel range: give the pixel range that images "
            "really have, or a model with smaller weights."
        )


def units_worth_refining(network: Network, node_id: int, low: Vector, high: Vector) -> NDArray[np.int64]:
    """All units, except those of known sign where only ReLUs read the node."""
    readers = [node.layer for node in network.nodes if node_id in node.inputs]
    if readers and all(isinstance(layer, Relu) for layer in readers):
        return np.flatnonzero((low < 0) & (high > 0))
    return np.arange(len(low))


def maximise(network: Network, domain: Domain, known: Bounds, node_id: int, rows: Vector) -> Vector:
    """Upper bounds on rows·(value of the node) over the domain, by substituting linear bounds backwards.

    A row r on the output of a layer is rounded, at each entry, by a share of all that is added up there, even
    where most of it cancels. That shifts the result by no more than the same share of |r| · `sums`.
    """
    pending = {node_id: rows}
    constant = np.zeros(len(rows))
    magnitude = np.zeros(len(rows))
    for current in range(node_id, 0, -1):
        coefficients = pending.pop(current, None)
        if coefficients is None:
            continue
        node = network.nodes[current - 1]
        parts, offset = node.layer.bound_above(coefficients, *known.of(node.inputs))
        constant += offset
        magnitude += np.abs(offset) + np.abs(coefficients) @ known.sums(node)
        for source, part in zip(node.inputs, parts, strict=True):
            pending[source] = pending[source] + part if source in pending else part
    if 0 in pending:
        constant = constant + domain.maximum(pending[0])
    return np.asarray(constant + OUTWARD * magnitude)


def excluded(network: Network, domain: Domain, case: Case, known: Bounds) -> bool:
    """Whether some row of the case is out of reach everywhere in the domain."""
    most = maximise(network, domain, known, len(network.nodes), case.matrix)
    return bool((most < case.threshold).any())


def certified_radius(network: Network, domain: Domain, goal: Goal, until: float) -> float:
    """A radius, found by bisection below the domain's, at which linear bounds alone exclude every case.

    Zero if the domain has no finite radius; `until` is a perf_counter time.
    """
    proven, beyond = 0.0, domain.radius
    if math.isinf(beyond):
        return 0.0
    for _ in range(BISECTIONS):
        if time.perf_counter() > until:
            break
        smaller = domain.within((proven + beyond) / 2)
        bounds = linear_bounds(network, smaller)
        if all(excluded(network, smaller, case, bounds) for case in goal.cases):
            proven = smaller.radius
        else:
            beyond = smaller.radius
    return proven
