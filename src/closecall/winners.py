"""Pooling windows cut down to the entries that can win somewhere in a domain.

Neighbouring entries of a window read much the same pixels, so the difference of two of them has far tighter
linear bounds than each of them alone: where it is negative all over the domain, the first never wins.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from closecall.bounds import ROWS_AT_ONCE, linear_bounds, maximise
from closecall.domain import Domain
from closecall.layers import Maximum, Relu
from closecall.network import Network, Node

Vector = NDArray[np.float64]
Windows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def without_losers(network: Network, domain: Domain, until: float = math.inf) -> Network:
    """A network that is equal all over the domain, whose windows have lost what cannot win there.

    Where only ReLUs read a window, zero competes as well: entries that are never positive lose too, unless
    the window has no others. Layers not begun by the perf_counter time `until` stay as they are.
    """
    if not any(isinstance(node.layer, Maximum) for node in network.nodes):
        return network
    nodes = list(network.nodes)
    for node_id, node in enumerate(network.nodes, start=1):
        if not isinstance(node.layer, Maximum) or time.perf_counter() > until:
            continue
        source, windows = node.inputs[0], node.layer.windows
        earlier = Network(network.input_shape, tuple(nodes[:source]))
        bounds = linear_bounds(earlier, domain)
        high = bounds.upper[source]
        keep = node.layer.candidates(bounds.lower[source], high)
        readers = [reader.layer for reader in network.nodes if node_id in reader.inputs]
        if readers and all(isinstance(layer, Relu) for layer in readers):
            positive = keep & (high[windows] > 0)
            keep = np.where(positive.any(axis=1, keepdims=True), positive, keep)
        keep = undominated(windows, keep, len(high), partial(maximise, earlier, domain, bounds, source))
        nodes[node_id - 1] = Node(Maximum(packed(windows, keep)), node.inputs)
    return Network(network.input_shape, tuple(nodes), network.notes)


def undominated(windows: Windows, keep: Mask, width: int, most: Callable[[Vector], Vector]) -> Mask:
    """Which of the entries to keep are not below another one of them all over the domain."""
    keep = keep.copy()
    for first, second in permutations(range(windows.shape[1]), 2):
        rivals = np.flatnonzero(keep[:, first] & keep[:, second])
        for both in np.array_split(rivals, -(-len(rivals) // ROWS_AT_ONCE) or 1):
            lead = np.zeros((len(both), width))
            lead[np.arange(len(both)), windows[both, first]] += 1.0
            lead[np.arange(len(both)), windows[both, second]] -= 1.0
            keep[both[most(lead) <= 0], first] = False
    return keep


def packed(windows: Windows, keep: Mask) -> Windows:
    """The windows with their kept entries first and −1 for the others, no wider than the fullest needs."""
    kept = np.where(keep, windows, -1)
    order = np.argsort(kept < 0, axis=1, kind="stable")
    return np.take_along_axis(kept, order, axis=1)[:, : int(keep.sum(axis=1).max())]
