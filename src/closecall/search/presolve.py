"""The network as it is within a domain: whatever is decided there is folded away.

A ReLU that is off all over the domain is zero, one that is on is linear, a pooling window with one entry left
is that entry. What remains are the open ReLUs and windows, each an affine function of the pixels and of open
ones before it: one exact backward substitution with a row for each of them.

Folding rounds. At any image of the domain a folded row differs from what it stands for by no more than a
share (`rounding_share`) of all that was added up for it, and by what the rows of the open units that it reads
differ, times its weights on them. Bounds are widened and thresholds lowered by that, so that an image which
reaches the goal in the network reaches the lowered goal in the folded one. The converse holds up to the
tolerance of the goal, or nothing is folded: solvers would be led to images that reach nothing.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse

from closecall.arrays import OUTWARD, Indices, Mask, Matrix, Vector
from closecall.bounds import Bounds, dense_entries, entries
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.settings import DEFAULT, Sizes

MOST_LOWERED = 0.3  # of the goal's tolerance: the rest is for the solver's own
USUAL_TOLERANCE = 1e-6  # where a goal has none, images must reach a hair beyond it anyway


@dataclass(frozen=True, eq=False)
class Presolved:
    """An equal network within a domain, of pixels and open units alone, its bounds and the goal in it."""

    domain: Domain
    network: Network
    bounds: Bounds
    goal: Goal

    @property
    def open_units(self) -> int:
        return self.bounds.undecided(self.network)

    @property
    def entries(self) -> int:
        return entries_of(self.network)


def entries_of(network: Network) -> int:
    """How many numbers the affine maps of a network hold."""
    affine = [node.layer for node in network.nodes if isinstance(node.layer, Affine)]
    return sum(entries(weight) for layer in affine for weight in layer.weights)


@dataclass(frozen=True, eq=False)
class Block:
    """The open units of one node: which of its outputs they are, and the entries that each chooses from."""

    node_id: int
    outputs: Indices
    taken: Indices  # of the node's input, in the order of the folded layer's input
    layer: Relu | Maximum


@dataclass(eq=False)
class Rows:
    """Rows as an affine function of the pixels (node 0) and of the outputs of blocks."""

    parts: dict[int, Matrix]
    constant: Vector
    magnitude: Vector


def presolve(
    network: Network,
    domain: Domain,
    goal: Goal,
    bounds: Bounds,
    until: float = math.inf,
    sizes: Sizes = DEFAULT.sizes,
) -> Presolved:
    """Fold away all that the bounds decide, where that makes the network smaller, before a perf_counter time.

    Rows of folded units read all pixels that any unit before them reads: of a dense network with many open
    units there would be more to multiply than before.
    """
    as_it_is = Presolved(domain, network, bounds, goal)
    rows = bounds.undecided(network)
    seconds = sizes.seconds_to_fold_a_weight * rows * entries_of(network)
    gigabytes = rows * (network.input_size + rows) * 8e-9
    if time.perf_counter() + seconds > until or gigabytes > sizes.most_gigabytes:
        return as_it_is
    folded = fold(network, domain, goal, bounds)
    pays = folded.entries < dense_entries(network)
    most = MOST_LOWERED * (goal.tolerance or USUAL_TOLERANCE)
    return folded if pays and lowered(goal, folded.goal) < most else as_it_is


def lowered(goal: Goal, folded: Goal) -> float:
    """By how much folding lowered the thresholds of a goal."""
    return max(
        float(np.max(case.threshold - after.threshold, initial=0.0))
        for case, after in zip(goal.cases, folded.cases, strict=True)
    )


def rounding_share(network: Network) -> float:
    """The share of what a row of products adds up, without signs, by which it may be off in float64.

    A sum has at most as many terms as the widest layer, and joins at most one other for each node; each term
    is rounded by half an eps for its product and for every addition. The other half pays for the rounding of
    the sizes themselves.
    """
    widest = max(node.layer.size for node in network.nodes)
    return float(np.finfo(np.float64).eps) * (widest + len(network.nodes) + 1)


def fold(network: Network, domain: Domain, goal: Goal, bounds: Bounds) -> Presolved:
    """The network of pixels and open units alone."""
    return Folder(network, domain, bounds).folded(goal)


class Folder:
    """Makes the folded network node by node."""

    def __init__(self, network: Network, domain: Domain, bounds: Bounds) -> None:
        self.network, self.domain, self.bounds = network, domain, bounds
        self.blocks: dict[int, Block] = {}
        self.nodes: list[Node] = []
        self.place: dict[int, int] = {0: 0}  # of the image and of each block's node, in the folded network
        self.errors: dict[int, Vector] = {0: np.zeros(network.input_size)}
        self.share = rounding_share(network)
        box = domain.box()
        self.lower, self.upper = [box[0]], [box[1]]

    def folded(self, goal: Goal) -> Presolved:
        for node_id, node in enumerate(self.network.nodes, start=1):
            if not isinstance(node.layer, Affine):
                self.add_block(node_id, node)
        last = len(self.network.nodes)
        error = self.add_affine(last, np.arange(self.network.nodes[-1].layer.size))
        cases = tuple(
            Case(case.matrix, case.threshold - (1 + OUTWARD) * (np.abs(case.matrix) @ error))
            for case in goal.cases
        )
        network = Network(self.network.input_shape, tuple(self.nodes), self.network.notes)
        return Presolved(
            self.domain, network, Bounds(tuple(self.lower), tuple(self.upper)), Goal(cases, goal.tolerance)
        )

    def add_block(self, node_id: int, node: Node) -> None:
        """The open units of a ReLU or a pooling, and the rows that they read."""
        (source,) = node.inputs
        block = block_of(node_id, node, self.bounds.lower[source], self.bounds.upper[source])
        if block is None:
            return
        error = self.add_affine(source, block.taken)
        self.blocks[node_id] = block
        low, high = block.layer.interval([self.lower[-1]], [self.upper[-1]])
        self.add(Node(block.layer, (len(self.nodes),)), low, high)
        self.place[node_id] = len(self.nodes)
        self.errors[node_id] = chosen_error(block.layer, error)

    def add_affine(self, node_id: int, units: Indices) -> Vector:
        """Some units of a node as an affine layer of the folded network; by how much it may be off."""
        width = len(self.bounds.lower[node_id])
        rows = self.substituted(node_id, csr_array(eye_array(width, format="csr"))[units])
        sources = sorted(rows.parts)
        layer = Affine.of([rows.parts[source] for source in sources], rows.constant)
        error = self.share * rows.magnitude
        for source in sources:
            error = error + abs(rows.parts[source]) @ self.errors[source]
        error = np.asarray(error) * (1 + OUTWARD)
        low, high = self.bounds.lower[node_id][units] - error, self.bounds.upper[node_id][units] + error
        self.add(Node(layer, tuple(self.place[source] for source in sources)), low, high)
        return error

    def add(self, node: Node, low: Vector, high: Vector) -> None:
        self.nodes.append(node)
        self.lower.append(low)
        self.upper.append(high)

    def substituted(self, node_id: int, rows: Matrix) -> Rows:
        """Carry rows on a node's output back to the pixels and to the outputs of open units."""
        pending = {node_id: rows}
        found = Rows({}, np.zeros(rows.shape[0]), np.zeros(rows.shape[0]))
        for current in range(node_id, 0, -1):
            coefficients = pending.pop(current, None)
            if coefficients is None:
                continue
            node = self.network.nodes[current - 1]
            found.magnitude += abs(coefficients) @ self.bounds.sums(node)
            if isinstance(node.layer, Affine):
                parts = [coefficients @ weight for weight in node.layer.weights]
                offset = np.asarray(coefficients @ node.layer.bias)
                found.constant += offset
                found.magnitude += np.abs(offset)
            elif isinstance(node.layer, (Relu, Maximum)):
                block = self.blocks.get(current)
                if block is not None:
                    found.parts[current] = columns_of(coefficients, block.outputs)
                low, high = self.bounds.lower[node.inputs[0]], self.bounds.upper[node.inputs[0]]
                parts = [coefficients @ decided_part(node.layer, low, high)]
            else:
                raise TypeError(f"no such layer can be folded: {type(node.layer).__name__}")
            for source, part in zip(node.inputs, parts, strict=True):
                pending[source] = pending[source] + part if source in pending else part
        if 0 in pending:
            found.parts[0] = pending[0]
        if not found.parts:
            found.parts[0] = csr_array((rows.shape[0], self.network.input_size))
        return found


def columns_of(rows: Matrix, columns: Indices) -> Matrix:
    return csr_array(rows.tocsc()[:, columns]) if issparse(rows) else rows[:, columns]


def block_of(node_id: int, node: Node, low: Vector, high: Vector) -> Block | None:
    """The units of a ReLU whose sign is open, or the windows of a pooling with several entries left."""
    if isinstance(node.layer, Relu):
        units = np.flatnonzero(is_open(low, high))
        return Block(node_id, units, units, Relu(len(units))) if len(units) else None
    layer = node.layer
    if not isinstance(layer, Maximum):
        raise TypeError(f"no such layer can be folded: {type(layer).__name__}")
    keep = layer.candidates(low, high)
    windows = np.flatnonzero(keep.sum(axis=1) > 1)
    if not len(windows):
        return None
    taken = np.unique(layer.windows[windows][keep[windows]])
    position = np.full(len(low) + 1, -1)
    position[taken] = np.arange(len(taken))
    renumbered = np.where(keep[windows], position[layer.windows[windows]], -1)
    order = np.argsort(renumbered < 0, axis=1, kind="stable")
    return Block(node_id, windows, taken, Maximum(np.take_along_axis(renumbered, order, axis=1)))


def is_open(low: Vector, high: Vector) -> Mask:
    """Neither off nor on all over the domain; NaN decides nothing."""
    return np.asarray(~((high <= 0) | (low >= 0)))


def decided_part(layer: Relu | Maximum, low: Vector, high: Vector) -> csr_array:
    """What the decided units of a layer give: the entry that they are, or zero; nothing for open ones."""
    if isinstance(layer, Relu):
        on = np.flatnonzero(low >= 0)
        ones = np.ones(len(on))
        return csr_array((ones, (on, on)), shape=(layer.size, len(low)))
    keep = layer.candidates(low, high)
    decided = np.flatnonzero(keep.sum(axis=1) == 1)
    winner = layer.windows[decided, keep[decided].argmax(axis=1)]
    return csr_array((np.ones(len(decided)), (decided, winner)), shape=(layer.size, len(low)))


def chosen_error(layer: Relu | Maximum, error: Vector) -> Vector:
    """How far max(0, a) or a maximum may be off when its entries are off by so much."""
    if isinstance(layer, Relu):
        return error
    entered = np.where(layer.windows >= 0, error[layer.windows], 0.0)
    return np.asarray(entered.max(axis=1))
