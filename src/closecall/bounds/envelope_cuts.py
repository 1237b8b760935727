"""Cuts from the concave envelope of a maximum over the box of pixels: what makes L∞ searches short.

With u ∈ [0, 1]ⁿ the place of each pixel in its range, counted in the direction in which it helps, a function
max(0, s + w·u) with w ≥ 0 is supermodular on the corners of the box. Its concave envelope is then its Lovász
extension: at a point û, add the pixels in the order of falling û, and give each what it adds. The plane

    max(0, s + w·u) ≤ max(0, s) + Σ_i (max(0, s_i) − max(0, s_{i−1}))·u_i,   s_i = s_{i−1} + w_i,

is the tightest there is at û, and exact where û is a corner, as most of an LP's solution is. The usual
triangle knows only the smallest and the largest value. A maximum of several pieces, piece k leading at û, is
at most piece k plus what each other piece is ahead of it: a sum of such functions.

Pieces are affine in the pixels: the units of the first layer, and of the pooling right behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from closecall.arrays import OUTWARD, Indices, Vector
from closecall.network import Network
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.settings import DEFAULT, LinearBounds


@dataclass(frozen=True, eq=False)
class Cut:
    """Unit `output` of node `reader` is at most height + slopes·(shifts of these pixels)."""

    reader: int
    output: int
    pixels: Indices
    slopes: Vector
    height: float


@dataclass(frozen=True, eq=False)
class Pieces:
    """Units y = max_j (constants[:, j] + slopes[:, j]·shifts[pixels]); absent pieces are −∞."""

    pixels: Indices  # (units, most pixels); fillers have no slope
    slopes: Vector  # (units, pieces, most pixels)
    constants: Vector  # (units, pieces)

    def with_zero(self) -> Pieces:
        """max(0, y)."""
        slopes = np.pad(self.slopes, ((0, 0), (0, 1), (0, 0)))
        return Pieces(self.pixels, slopes, np.pad(self.constants, ((0, 0), (0, 1))))


class Envelopes:
    """The pieces of every unit that is a maximum of affine functions of the image."""

    def __init__(
        self, network: Network, domain: Domain, settings: LinearBounds = DEFAULT.linear_bounds
    ) -> None:
        self.worth_a_cut = settings.worth_a_cut
        self.low, self.high = -domain.down, domain.up
        self.pieces: dict[int, Pieces] = {}
        for index, node in enumerate(network.nodes, start=1):
            source = node.inputs[0]
            affine = affine_of_image(network, source)
            if isinstance(node.layer, Relu) and source in self.pieces:
                self.pieces[index] = self.pieces[source].with_zero()
            elif isinstance(node.layer, Relu) and affine is not None:
                each = np.arange(node.layer.size)[:, None]
                self.pieces[index] = pieces_of(affine, each, domain).with_zero()
            elif isinstance(node.layer, Maximum) and affine is not None:
                self.pieces[index] = pieces_of(affine, node.layer.windows, domain)

    def cuts(self, reader: int, outputs: Indices, values: Vector, shifts: Vector) -> list[Cut]:
        """The planes at these shifts of the units whose values lie above them."""
        if reader not in self.pieces:
            return []
        pieces = self.pieces[reader]
        pixels, slopes = pieces.pixels[outputs], pieces.slopes[outputs]
        constants = pieces.constants[outputs]
        each = np.arange(len(outputs))
        here = shifts[pixels]
        leader = (constants + np.einsum("upf,uf->up", slopes, here)).argmax(axis=1)
        lead_slope, lead_constant = slopes[each, leader], constants[each, leader]
        ranges = (self.low[pixels][:, None], self.high[pixels][:, None])
        ahead = slopes - lead_slope[:, None], constants - lead_constant[:, None]
        plane, height = planes_above(ahead[0], ahead[1], ranges, here[:, None])
        plane, height = plane.sum(axis=1) + lead_slope, height.sum(axis=1) + lead_constant
        excess = values - (height + (plane * here).sum(axis=1))
        return [
            Cut(reader, int(outputs[unit]), pixels[unit], plane[unit], float(height[unit]))
            for unit in np.flatnonzero(excess > self.worth_a_cut)
        ]


def affine_of_image(network: Network, index: int) -> Affine | None:
    """The layer of a node, if it is an affine map of nothing but the image."""
    node = network.nodes[index - 1] if index else None
    return node.layer if node and isinstance(node.layer, Affine) and node.inputs == (0,) else None


def pieces_of(layer: Affine, windows: Indices, domain: Domain) -> Pieces:
    """The windows over an affine map of the image, each over the pixels that any of its entries reads."""
    weight = layer.weights[0]
    dense = np.asarray(weight.toarray() if issparse(weight) else weight)
    dense = np.where(domain.up + domain.down > 0, dense, 0.0)
    at_original = layer.forward(domain.centre[None])[0]
    constants = np.where(windows >= 0, at_original[windows], -np.inf)
    entries = np.where((windows >= 0)[:, :, None], dense[windows], 0.0)
    read = (entries != 0).any(axis=1)
    most = max(1, int(read.sum(axis=1).max()))
    pixels = np.argsort(~read, axis=1, kind="stable")[:, :most]
    slopes = np.take_along_axis(entries, pixels[:, None], axis=2)
    return Pieces(pixels, slopes, constants)


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
