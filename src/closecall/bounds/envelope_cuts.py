"""Cuts from the concave envelope of a maximum over the box of what it reads: what makes L∞ searches short.

With u ∈ [0, 1]ⁿ the place of each input in its range, counted in the direction in which it helps, a function
max(0, s + w·u) with w ≥ 0 is supermodular on the corners of the box. Its concave envelope is then its Lovász
extension: at a point û, add the inputs in the order of falling û, and give each what it adds. The plane

    max(0, s + w·u) ≤ max(0, s) + Σ_i (max(0, s_i) − max(0, s_{i−1}))·u_i,   s_i = s_{i−1} + w_i,

is the tightest there is at û, and exact where û is a corner, as most of an LP's solution is. The usual
triangle knows only the smallest and the largest value. A maximum of several pieces, piece k leading at û, is
at most piece k plus what each other piece is ahead of it: a sum of such functions.

Inputs are the pixels and, deeper in a network, the outputs of earlier units within their bounds: the plane
holds wherever each input is in its range, however they hang together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from closecall.arrays import OUTWARD, Indices, Vector
from closecall.bounds import Bounds
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.settings import DEFAULT, LinearBounds

Ranges = tuple[Vector, Vector]  # the least and the largest value of every input


@dataclass(frozen=True, eq=False)
class Cut:
    """Unit `output` of node `reader` is at most height + slopes·(these inputs)."""

    reader: int
    output: int
    inputs: Indices
    slopes: Vector
    height: float


@dataclass(frozen=True, eq=False)
class Pieces:
    """Units y = max_j (constants[:, j] + slopes[:, j]·inputs); absent pieces are −∞."""

    inputs: Indices  # (units, most inputs); fillers have no slope
    slopes: Vector  # (units, pieces, most inputs)
    constants: Vector  # (units, pieces)

    def with_zero(self) -> Pieces:
        """max(0, y)."""
        slopes = np.pad(self.slopes, ((0, 0), (0, 1), (0, 0)))
        return Pieces(self.inputs, slopes, np.pad(self.constants, ((0, 0), (0, 1))))


class AffineNode(NamedTuple):
    """An affine layer and the nodes that it reads."""

    layer: Affine
    inputs: tuple[int, ...]


class Envelopes:
    """The pieces of every unit that is a maximum of affine functions of its inputs.

    All inputs lie side by side in one vector: the shifts of the pixels (node 0), then the outputs of every
    node that chooses; `spans` says where.
    """

    def __init__(
        self, network: Network, domain: Domain, settings: LinearBounds = DEFAULT.linear_bounds
    ) -> None:
        self.network, self.domain, self.settings = network, domain, settings
        self.spans = spans_of(network)
        self.width = max(span.stop for span in self.spans.values())
        self.deep_units = sum(node.layer.size for node in network.nodes if reads_units(node))
        self.pieces: dict[int, Pieces] = {}
        for index, node in enumerate(network.nodes, start=1):
            source = node.inputs[0]
            if isinstance(node.layer, Relu) and source in self.pieces:
                self.pieces[index] = self.pieces[source].with_zero()
                continue
            affine = self.affine_of_inputs(source)
            if isinstance(node.layer, Relu) and affine is not None:
                each = np.arange(node.layer.size)[:, None]
                self.pieces[index] = self.pieces_of(affine, each).with_zero()
            elif isinstance(node.layer, Maximum) and affine is not None:
                self.pieces[index] = self.pieces_of(affine, node.layer.windows)

    def affine_of_inputs(self, index: int) -> AffineNode | None:
        """A node, if it is an affine map of inputs for which cuts pay."""
        node = self.network.nodes[index - 1] if index else None
        if node is None or not isinstance(node.layer, Affine) or not set(node.inputs) <= self.spans.keys():
            return None
        fitting = node.layer.size * self.width <= self.settings.deep_cut_entries
        deep = fitting and self.deep_units >= self.settings.deep_units_for_cuts
        return AffineNode(node.layer, node.inputs) if deep or node.inputs == (0,) else None

    def pieces_of(self, node: AffineNode, windows: Indices) -> Pieces:
        """The windows over an affine map, each over the inputs that any of its entries reads."""
        domain = self.domain
        dense, at_original = np.zeros((node.layer.size, self.width)), node.layer.bias.copy()
        for source, weight in zip(node.inputs, node.layer.weights, strict=True):
            dense[:, self.spans[source]] += weight.toarray() if issparse(weight) else weight
            if source == 0:
                at_original += weight @ domain.centre
        dense[:, self.spans[0]] *= domain.up + domain.down > 0
        constants = np.where(windows >= 0, at_original[windows], -np.inf)
        entries = np.where((windows >= 0)[:, :, None], dense[windows], 0.0)
        read = (entries != 0).any(axis=1)
        most = max(1, int(read.sum(axis=1).max()))
        inputs = np.argsort(~read, axis=1, kind="stable")[:, :most]
        return Pieces(inputs, np.take_along_axis(entries, inputs[:, None], axis=2), constants)

    def ranges(self, bounds: Bounds) -> Ranges:
        """The range of every input."""
        low, high = np.empty(self.width), np.empty(self.width)
        for index, span in self.spans.items():
            if index == 0:
                low[span], high[span] = -self.domain.down, self.domain.up
                continue
            node = self.network.nodes[index - 1]
            least, most = node.layer.interval(*bounds.of(node.inputs))
            low[span] = np.maximum(bounds.lower[index], least)
            high[span] = np.maximum(np.minimum(bounds.upper[index], most), low[span])
        return low, high

    def cuts(self, reader: int, outputs: Indices, values: Vector, here: Vector, ranges: Ranges) -> list[Cut]:
        """The planes at these inputs of the units whose values lie above them."""
        if reader not in self.pieces:
            return []
        pieces = self.pieces[reader]
        inputs, slopes = pieces.inputs[outputs], pieces.slopes[outputs]
        constants = pieces.constants[outputs]
        each = np.arange(len(outputs))
        here = here[inputs]
        leader = (constants + np.einsum("upf,uf->up", slopes, here)).argmax(axis=1)
        lead_slope, lead_constant = slopes[each, leader], constants[each, leader]
        box = (ranges[0][inputs][:, None], ranges[1][inputs][:, None])
        ahead = slopes - lead_slope[:, None], constants - lead_constant[:, None]
        plane, height = planes_above(ahead[0], ahead[1], box, here[:, None])
        plane, height = plane.sum(axis=1) + lead_slope, height.sum(axis=1) + lead_constant
        excess = values - (height + (plane * here).sum(axis=1))
        return [
            Cut(reader, int(outputs[unit]), inputs[unit], plane[unit], float(height[unit]))
            for unit in np.flatnonzero(excess > self.settings.worth_a_cut)
        ]


def reads_units(node: Node) -> bool:
    """Whether a node is affine in the outputs of units."""
    return isinstance(node.layer, Affine) and node.inputs != (0,)


def spans_of(network: Network) -> dict[int, slice]:
    """Where the inputs of each node lie: those that are columns of an LP."""
    sizes = [(0, network.input_size)]
    sizes += [
        (index, node.layer.size)
        for index, node in enumerate(network.nodes, start=1)
        if isinstance(node.layer, (Relu, Maximum))
    ]
    return dict(zip((index for index, _ in sizes), side_by_side(size for _, size in sizes), strict=True))


def side_by_side(sizes: Iterable[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(begin, end) for begin, end in pairwise(ends)]


def planes_above(
    slopes: Vector, constants: Vector, ranges: tuple[Vector, Vector], here: Vector
) -> tuple[Vector, Vector]:
    """Slopes and heights of planes above max(0, constant + slopes·x) over the ranges, tightest at `here`."""
    low, high = ranges
    width = high - low
    span = np.abs(slopes) * width
    start = constants + np.minimum(slopes * low, slopes * high).sum(axis=-1)
    place = np.where(width > 0, (here - low) / np.where(width > 0, width, 1.0), 0.0)
    place = np.where(slopes > 0, place, 1.0 - place)
    order = np.argsort(-place, axis=-1, kind="stable")
    sums = start[..., None] + np.cumsum(np.take_along_axis(span, order, axis=-1), axis=-1)
    reached = np.maximum(np.concatenate([start[..., None], sums], axis=-1), 0.0)
    gains = np.empty_like(span)
    np.put_along_axis(gains, order, np.diff(reached, axis=-1), axis=-1)
    plane = np.where(width > 0, np.sign(slopes) * gains / np.where(width > 0, width, 1.0), 0.0)
    height = np.maximum(start, 0.0) - np.minimum(plane * low, plane * high).sum(axis=-1)
    known = np.isfinite(constants)
    size = np.where(known, np.abs(start) + span.sum(axis=-1), 0.0)
    return np.where(known[..., None], plane, 0.0), np.where(known, height, 0.0) + OUTWARD * size
