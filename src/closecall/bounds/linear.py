"""Lower and upper bounds on every node of a network over a domain: intervals, then linear bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from closecall.arrays import OUTWARD, Indices, Mask, Matrix, Vector
from closecall.clock import out_of_time
from closecall.errors import QueryError
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.settings import DEFAULT, LinearBounds, Sizes


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


def linear_bounds(
    network: Network,
    domain: Domain,
    until: float = math.inf,
    settings: LinearBounds = DEFAULT.linear_bounds,
) -> Bounds:
    """Linear bounds (CROWN) over the domain itself, never wider than the interval bounds.

    Units that are not reached by the perf_counter time `until` keep their interval bounds.
    """

    def refine(known: Bounds, node_id: int) -> tuple[Vector, Vector]:
        low, high = known.lower[node_id].copy(), known.upper[node_id].copy()
        if domain.norm.name == "linf" and network.nodes[node_id - 1].inputs == (0,):
            return low, high  # over a box, an interval of an affine function of the pixels is exact
        units = units_worth_refining(network, node_id, low, high)
        step = max(1, rows_at_once(network, domain, node_id, settings) // 2)
        for begin in range(0, len(units), step):
            if out_of_time(until):
                break
            some = units[begin : begin + step]
            rows = rows_of_units(some, len(low))
            both = maximise(network, domain, known, node_id, rows, settings, every_end=False)
            high[some] = np.minimum(high[some], both[: len(some)])
            low[some] = np.maximum(low[some], -both[len(some) :])
        return low, high

    return forward_bounds(network, domain, refine)


def rows_of_units(units: Indices, width: int) -> csr_array:
    """The rows that give some entries of a vector, then those that give their negatives."""
    count = 2 * len(units)
    signs = np.repeat([1.0, -1.0], len(units))
    return csr_array((signs, np.tile(units, 2), np.arange(count + 1)), shape=(count, width))


def rows_at_once(network: Network, domain: Domain, node_id: int, settings: LinearBounds) -> int:
    """How many rows on a node can be carried back to the image in a short time and in little memory."""
    layers = [node.layer for node in network.nodes[:node_id]]
    weights = [weight for layer in layers if isinstance(layer, Affine) for weight in layer.weights]
    cost = float(sum(entries(weight) for weight in weights))
    if domain.norm.name != "linf":
        cost += settings.multiplications_to_sort_a_pixel * network.input_size
    widest = max([network.input_size, *(layer.size for layer in layers)])
    fitting = min(settings.multiplications_at_once / max(1.0, cost), settings.numbers_at_once / widest)
    return max(2, min(settings.most_rows, int(fitting)))


def dense_entries(network: Network) -> int:
    """How many entries the affine maps of a network have, zeros included."""
    sizes = [network.input_size, *(node.layer.size for node in network.nodes)]
    affine = [node for node in network.nodes if isinstance(node.layer, Affine)]
    return sum(node.layer.size * sizes[source] for node in affine for source in node.inputs)


def dense_gigabytes(network: Network, settings: Sizes = DEFAULT.sizes) -> float:
    """The memory that batched bounds would take for their matrices."""
    return settings.bytes_of_a_dense_entry * dense_entries(network) / 1e9


def entries(matrix: Matrix) -> int:
    return int(matrix.nnz if issparse(matrix) else matrix.size)


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


def maximise(
    network: Network,
    domain: Domain,
    known: Bounds,
    node_id: int,
    rows: Matrix,
    settings: LinearBounds = DEFAULT.linear_bounds,
    *,
    every_end: bool = True,
) -> Vector:
    """Upper bounds on rows·(value of the node) over the domain, by substituting linear bounds backwards.

    A row r on the output of a layer is rounded, at each entry, by a share of all that is added up there, even
    where most of it cancels. That shifts the result by no more than the same share of |r| · `sums`.

    Wherever a row reads one node alone, the bounds of that node end it as well; the best of all ends counts.
    On networks trained by intervals that is often not the image. It pays for few rows, not for all units.
    """
    pending = {node_id: rows}
    constant = np.zeros(rows.shape[0])
    magnitude = np.zeros(rows.shape[0])
    best = np.full(rows.shape[0], np.inf)
    for current in range(node_id, 0, -1):
        coefficients = pending.pop(current, None)
        if coefficients is None:
            continue
        node = network.nodes[current - 1]
        parts, offset = node.layer.bound_above(coefficients, *known.of(node.inputs))
        constant += offset
        magnitude += np.abs(offset) + abs(coefficients) @ known.sums(node)
        for source, part in zip(node.inputs, parts, strict=True):
            total = pending[source] + part if source in pending else part
            pending[source] = sparse_if_it_pays(total, settings.sparse_share)
        if every_end and len(pending) == 1 and 0 not in pending:
            ((source, total),) = pending.items()
            box = known.lower[source], known.upper[source]
            best = np.fmin(best, constant + OUTWARD * magnitude + most_in_box(total, *box))
    if 0 in pending:
        constant = constant + domain.maximum(dense(pending[0]))
    return np.asarray(np.fmin(best, constant + OUTWARD * magnitude))


def most_in_box(rows: Matrix, low: Vector, high: Vector) -> Vector:
    """Upper bounds on rows·v over low ≤ v ≤ high, rounded outward; infinity where sums overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        reach = high / 2 - low / 2 + OUTWARD * np.maximum(np.abs(low), np.abs(high))
        most = np.asarray(rows @ (low / 2 + high / 2) + abs(rows) @ reach)
    return np.where(np.isfinite(most), most, np.inf)


def sparse_if_it_pays(rows: Matrix, share: float) -> Matrix:
    """Rows on early layers of a convolutional network read a patch of the image each, others all of it."""
    if issparse(rows) and rows.nnz > share * rows.shape[0] * rows.shape[1]:
        return dense(rows)
    return rows


def dense(matrix: Matrix) -> Vector:
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix)


def excluded(network: Network, domain: Domain, case: Case, known: Bounds) -> bool:
    """Whether some row of the case is out of reach everywhere in the domain."""
    most = maximise(network, domain, known, len(network.nodes), case.matrix)
    return bool((most < case.threshold).any())


def all_excluded(network: Network, domain: Domain, goal: Goal, known: Bounds) -> bool:
    """Whether every case has some row that is out of reach everywhere in the domain."""
    return bool(excluded_cases(network, domain, goal, known).all())


def excluded_cases(network: Network, domain: Domain, goal: Goal, known: Bounds) -> Mask:
    """Which cases have some row that is out of reach everywhere in the domain."""
    most = maximise(
        network, domain, known, len(network.nodes), np.vstack([case.matrix for case in goal.cases])
    )
    short = most < np.concatenate([case.threshold for case in goal.cases])
    starts = np.cumsum([0, *(len(case.threshold) for case in goal.cases[:-1])])
    return np.asarray(np.logical_or.reduceat(short, starts))


def certified_radius(
    network: Network,
    domain: Domain,
    goal: Goal,
    until: float,
    *,
    proven: float = 0.0,
    trials: int | None = None,
    on_radius: Callable[[float], None] | None = None,
    settings: LinearBounds = DEFAULT.linear_bounds,
) -> float:
    """A radius, found by bisection below the domain's, at which linear bounds alone exclude every case.

    Interval bounds on the units are at hand at once: they give a first radius. What is proven already if the
    domain has no finite radius. `until` is a perf_counter time; `on_radius` is told each radius proven here;
    `trials` are as many as the settings say unless given.
    """
    beyond, smallest = domain.radius, settings.smallest_share * domain.radius
    if math.isinf(beyond):
        return proven

    def holds(radius: float, until: float) -> bool:
        smaller = domain.within(radius)
        held = all_excluded(network, smaller, goal, linear_bounds(network, smaller, until, settings))
        if held and on_radius is not None:
            on_radius(radius)
        return held

    share = settings.first_share
    first = share * beyond
    while proven == 0 and first > smallest and not out_of_time(until):
        proven, first = first if holds(first, -math.inf) else 0.0, share * first
    for _ in range(settings.bisections if trials is None else trials):
        if out_of_time(until):
            break
        radius = math.sqrt(max(proven, share**2 * beyond) * beyond)
        if holds(radius, until):
            proven = radius
        else:
            beyond = radius
    return proven
