"""L2: what a network reads of the pixels, the least distance that it takes, and tangents of that.

A network sees pixels by the affine maps of its first layer alone, whose values e = M·d are few where it is
small. The least distance at which they are e,

    h(e) = min { ‖d‖ : M·d = e, −down ≤ d ≤ up },

is convex. For any multipliers y, with v = Mᵀy and any 0 ≤ q ≤ |v| (see `L2.tangents`),

    y·e = v·d ≤ Σ (|v| − q)·room + ‖q‖·‖d‖,

a row over e and the distance that is equal at d for the y that belongs to h(e). So linear programs over e and
one column for the distance come as near to h as it takes, without a column for any pixel. Nothing depends on
how y was found: every y gives a row that holds, which is widened by more than its sums are rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import OUTWARD, Matrix, Vector
from closecall.bounds import Bounds
from closecall.bounds.linear import dense
from closecall.network import Network, Node
from closecall.network.layers import Affine
from closecall.question.domain import Domain
from closecall.question.norms import L2
from closecall.solvers.scaling import unit_of

TOO_LITTLE = 1e-9  # by which a tangent must cut off a point: the tolerance of LPs


@dataclass(frozen=True, eq=False)
class Readings:
    """M, and the network as a function of M·d + start."""

    matrix: Vector
    start: Vector
    network: Network

    def bounds(self, domain: Domain, known: Bounds) -> Bounds:
        """Bounds that hold for the network hold for it as a function of its readings."""
        low, high = (self._most(sign * self.matrix, domain) for sign in (-1.0, 1.0))
        return Bounds((self.start - low, *known.lower[1:]), (self.start + high, *known.upper[1:]))

    def _most(self, rows: Vector, domain: Domain) -> Vector:
        rooms = np.maximum(domain.down, domain.up)
        most = domain.norm.most(rows, domain.down, domain.up, domain.radius)
        return np.asarray(most + OUTWARD * (np.abs(rows) @ rooms + np.abs(self.start)))


def count_readings(network: Network) -> int:
    """How many columns a network's readings take: no more than there are pixels."""
    weights = [weight for node in network.nodes for weight in weights_on_pixels(node)]
    rows = sum(weight.shape[0] for weight in weights)
    return min(rows, network.input_size) if reads_by_maps_alone(network) else network.input_size


def readings_of(network: Network, centre: Vector) -> Readings:
    """The rows of all maps that read pixels, or the pixels themselves where these are fewer."""
    pixels = network.input_size
    rows = [dense(weight) for node in network.nodes for weight in weights_on_pixels(node)]
    if not reads_by_maps_alone(network) or sum(len(block) for block in rows) >= pixels:
        return Readings(np.eye(pixels), centre, network)
    matrix = np.vstack(rows)
    largest = np.abs(matrix).max(axis=1)
    units = unit_of(np.where(largest > 0, largest, 1.0), ordinary=0)
    nodes, begin = [], 0
    for node in network.nodes:
        if isinstance(node.layer, Affine) and 0 in node.inputs:
            nodes.append(Node(read_at(node.layer, node.inputs, begin, units, centre), node.inputs))
            begin += sum(weight.shape[0] for weight in weights_on_pixels(node))
        else:
            nodes.append(node)
    start = np.zeros(len(matrix))
    return Readings(matrix / units[:, None], start, Network((len(matrix),), tuple(nodes)))


def read_at(layer: Affine, inputs: tuple[int, ...], begin: int, units: Vector, centre: Vector) -> Affine:
    """A layer whose maps of pixels are those readings that begin at a place, each in its unit."""
    weights: list[Matrix] = []
    bias = layer.bias
    for weight, source in zip(layer.weights, inputs, strict=True):
        if source != 0:
            weights.append(weight)
            continue
        size = weight.shape[0]
        places = np.arange(begin, begin + size)
        weights.append(csr_array((units[places], places, np.arange(size + 1)), shape=(size, len(units))))
        bias, begin = bias + weight @ centre, begin + size
    return Affine.of(weights, bias)


def weights_on_pixels(node: Node) -> list[Matrix]:
    if not isinstance(node.layer, Affine):
        return []
    pairs = zip(node.layer.weights, node.inputs, strict=True)
    return [weight for weight, source in pairs if source == 0]


def reads_by_maps_alone(network: Network) -> bool:
    return all(isinstance(node.layer, Affine) for node in network.nodes if 0 in node.inputs)


@dataclass(frozen=True, eq=False)
class Tangent:
    """slopes·readings − slope·distance ≤ height."""

    slopes: Vector
    slope: float
    height: float


class Tangents:
    """All tangents placed so far over the readings of a domain; several trees and threads may share them."""

    def __init__(self, readings: Readings, domain: Domain) -> None:
        self.readings, self.domain = readings, domain
        self.placed: list[Tangent] = []

    @cached_property
    def _sums(self) -> Vector:
        """The most that each reading's terms add up to without their signs."""
        return np.asarray(np.abs(self.readings.matrix) @ np.maximum(self.domain.down, self.domain.up))

    def place(self, multipliers: Vector, length: float, point: Vector) -> bool:
        """Place the tangent of multipliers at shifts of a length, if it cuts a point off."""
        domain, matrix, y = self.domain, self.readings.matrix, multipliers
        at = min(length, domain.radius)
        rows = (y @ matrix)[None]
        heights, slopes = L2().tangents(rows, domain.down, domain.up, at)
        slope = float(slopes[0]) * (1 + OUTWARD)
        unit = slope if slope > 0 else max(float(np.abs(y).max()), 1e-300)
        widened = float(heights[0]) * (1 + OUTWARD) + OUTWARD * float(np.abs(y) @ self._sums)
        tangent = Tangent(y / unit, slope / unit, widened / unit)
        reached = len(tangent.slopes)
        above = float(tangent.slopes @ point[:reached]) - tangent.slope * float(point[reached])
        cuts = np.isfinite(tangent.slopes).all() and above > tangent.height + TOO_LITTLE * max(1.0, above)
        if cuts:
            self.placed.append(tangent)
        return bool(cuts)

    def rows(self, first: int, width: int) -> tuple[csr_array, Vector]:
        """The tangents from a place on as rows of a program, readings first and then the distance."""
        placed = self.placed[first:]
        readings = len(self.readings.matrix)
        entries = np.array([[*tangent.slopes, -tangent.slope] for tangent in placed])
        matrix = csr_array(entries.reshape(len(placed), readings + 1))
        padded = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(len(placed), width))
        return padded, np.array([tangent.height for tangent in placed])
