"""Linear bounds on every unit that are exact at the original image: what makes L1 searches short.

An image at L1 distance t ≤ r is the original plus rises and falls d ≥ 0 of single pixels, Σ d = t. Every
value of the network is kept between two planes over d that start from its value at the original,

    low + below·d ≤ value ≤ high + above·d.

Let k be the entry that wins a choice y = max(e) at the original, and let e_j − e_k ≤ c + b·d for another
entry, with c ≤ 0. Since Σ d ≤ r, c ≤ (c/r)·Σ d, so

    y − e_k ≤ max(0, c + b·d) ≤ Σ_i max(0, b_i + c/r)·d_i :

a pixel that cannot turn the choice over by itself, spending the whole radius, adds nothing. The usual
triangle lets a unit be partly on at no distance at all. For a unit of the first layer, over the ball without
the pixel box, this is the convex hull.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds
from closecall.clock import OutOfTimeError, out_of_time
from closecall.network import Network
from closecall.network.layers import Affine, Maximum, Relu
from closecall.network.layers.planes import Lead, Planes
from closecall.question.domain import Domain
from closecall.settings import DEFAULT, Sizes


@dataclass(frozen=True, eq=False)
class Anchored:
    """The planes of every value (the image first), the leads of every choosing node, and tighter bounds."""

    planes: tuple[Planes, ...]
    leads: dict[int, Lead]
    bounds: Bounds


def crowded(network: Network, settings: Sizes = DEFAULT.sizes) -> bool:
    """Whether the planes of all units would not fit into memory."""
    sizes = [network.input_size, *(node.layer.size for node in network.nodes)]
    numbers = (2 * sum(sizes) + settings.plane_arrays_at_work * max(sizes)) * 2 * network.input_size
    return numbers > settings.most_plane_numbers


def anchor(network: Network, domain: Domain, bounds: Bounds, until: float = math.inf) -> Anchored:
    """Carry planes through the network over an L1 ball; the bounds may hold for a part of it only.

    OutOfTimeError after the perf_counter time `until`.
    """
    room = np.concatenate([domain.up[domain.up > 0], domain.down[domain.down > 0]])
    if domain.norm.name == "l0":  # rises and falls are shares of the way
        room = np.ones(len(room))
    planes, leads = [planes_of_pixels(domain)], {}
    lower, upper = [bounds.lower[0]], [bounds.upper[0]]
    for index, node in enumerate(network.nodes, start=1):
        if out_of_time(until):
            raise OutOfTimeError
        inputs = [planes[source] for source in node.inputs]
        low, high = bounds.lower[index], bounds.upper[index]
        if isinstance(node.layer, Affine):
            carried = node.layer.carry(inputs)
            low = np.maximum(low, carried.low - most_over_ball(-carried.below, room, domain))
            high = np.minimum(high, carried.high + most_over_ball(carried.above, room, domain))
        elif isinstance(node.layer, (Relu, Maximum)):
            source = node.inputs[0]
            lead = node.layer.lead(inputs[0], domain.radius, lower[source], upper[source])
            carried = inputs[0].led_by(lead)
            leads[index] = lead
            tighter = node.layer.interval([lower[source]], [upper[source]])
            low, high = np.maximum(low, tighter[0]), np.minimum(high, tighter[1])
        planes.append(carried)
        lower.append(np.minimum(low, high))
        upper.append(high)
    return Anchored(tuple(planes), leads, Bounds(tuple(lower), tuple(upper)))


def planes_of_pixels(domain: Domain) -> Planes:
    """The image itself: its rises, then its falls, where there is room for them."""
    each = np.eye(len(domain.centre))
    rises, falls = each[:, domain.up > 0], each[:, domain.down > 0]
    if domain.norm.name == "l0":
        rises, falls = rises * domain.up[domain.up > 0], falls * domain.down[domain.down > 0]
    slopes = np.hstack([rises, -falls])
    return Planes(domain.centre, domain.centre, slopes, slopes)


def most_over_ball(rows: Vector, room: Vector, domain: Domain) -> Vector:
    """The most that rows·d comes to with 0 ≤ d ≤ room and Σ d ≤ radius."""
    furthest = domain.norm.furthest(rows, np.zeros_like(room), room, domain.radius)
    return np.asarray((rows * furthest).sum(axis=1))
