"""Pooling windows cut down to the entries that can win somewhere in a domain.

Neighbouring entries of a window read much the same pixels, so the difference of two of them has far tighter
linear bounds than each of them alone: where it is negative all over the domain, the first never wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Mask, Vector
from closecall.bounds import Bounds, linear_bounds, maximise, rows_at_once
from closecall.clock import out_of_time
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.settings import DEFAULT, LinearBounds

Windows = NDArray[np.int64]
Leads = Callable[[Windows, Windows], Vector]  # the most by which the first entries lead over the second


def without_losers(
    network: Network,
    domain: Domain,
    until: float = math.inf,
    settings: LinearBounds = DEFAULT.linear_bounds,
) -> Network:
    """A network that is equal all over the domain, whose windows have lost what cannot win there.

    Where only ReLUs read a window, zero competes as well: entries that are never positive lose too, unless
    the window has no others. Layers not begun by the perf_counter time `until` stay as they are.
    """
    if not any(isinstance(node.layer, Maximum) for node in network.nodes):
        return network
    nodes = list(network.nodes)
    for node_id, node in enumerate(network.nodes, start=1):
        if not isinstance(node.layer, Maximum) or out_of_time(until):
            continue
        source, windows = node.inputs[0], node.layer.windows
        earlier = Network(network.input_shape, tuple(nodes[:source]))
        bounds = linear_bounds(earlier, domain, until, settings)
        high = bounds.upper[source]
        keep = node.layer.candidates(bounds.lower[source], high)
        readers = [reader.layer for reader in network.nodes if node_id in reader.inputs]
        if readers and all(isinstance(layer, Relu) for layer in readers):
            positive = keep & (high[windows] > 0)
            keep = np.where(positive.any(axis=1, keepdims=True), positive, keep)
        most = partial(most_of_leads, earlier, domain, bounds)
        keep = undominated(windows, keep, most, rows_at_once(earlier, domain, source, settings), until)
        nodes[node_id - 1] = Node(Maximum(packed(windows, keep)), node.inputs)
    return Network(network.input_shape, tuple(nodes), network.notes)


def most_of_leads(
    network: Network, domain: Domain, bounds: Bounds, first: Windows, second: Windows
) -> Vector:
    """The most by which some of the network's outputs exceed others, all over the domain."""
    count, last = len(first), len(network.nodes)
    places = np.stack([first, second], axis=1).ravel()
    shape = (count, len(bounds.upper[last]))
    rows = csr_array((np.tile([1.0, -1.0], count), places, 2 * np.arange(count + 1)), shape=shape)
    most = maximise(network, domain, bounds, last, rows)
    twins = np.flatnonzero(most > 0)
    twins = twins[alike(network, first[twins], second[twins])]
    most[twins] = 0.0
    return most


def alike(network: Network, first: Windows, second: Windows) -> Mask:
    """Which pairs of outputs are the same function, number for number, whatever rounding makes of it."""
    layer = network.nodes[-1].layer if network.nodes else None
    if not isinstance(layer, Affine):
        return np.asarray(first == second)
    same = layer.bias[first] == layer.bias[second]
    for weight in layer.weights:
        apart = abs(weight[first] - weight[second]).sum(axis=1)
        same &= np.asarray(apart).ravel() == 0
    return np.asarray(same)


def undominated(windows: Windows, keep: Mask, most: Leads, at_once: int, until: float) -> Mask:
    """Which entries to keep are not shown in time to be below another of them all over the domain."""
    keep = keep.copy()
    for first, second in permutations(range(windows.shape[1]), 2):
        rivals = np.flatnonzero(keep[:, first] & keep[:, second])
        for begin in range(0, len(rivals), at_once):
            if out_of_time(until):
                return keep
            both = rivals[begin : begin + at_once]
            keep[both[most(windows[both, first], windows[both, second]) <= 0], first] = False
    return keep


def packed(windows: Windows, keep: Mask) -> Windows:
    """The windows with their kept entries first and −1 for the others, no wider than the fullest needs."""
    kept = np.where(keep, windows, -1)
    order = np.argsort(kept < 0, axis=1, kind="stable")
    return np.take_along_axis(kept, order, axis=1)[:, : int(keep.sum(axis=1).max())]
