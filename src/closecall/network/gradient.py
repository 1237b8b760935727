"""Slopes of a network's scores."""

from __future__ import annotations

import numpy as np

from closecall.arrays import Vector
from closecall.network.network import Network


def input_gradient(network: Network, values: list[Vector], rows: Vector) -> Vector:
    """The slope of rows·scores with respect to the images."""
    pending = {len(network.nodes): rows}
    for node_id in range(len(network.nodes), 0, -1):
        slopes = pending.pop(node_id, None)
        if slopes is None:
            continue
        node = network.nodes[node_id - 1]
        parts = node.layer.gradient(slopes, *(values[source] for source in node.inputs))
        for source, part in zip(node.inputs, parts, strict=True):
            pending[source] = pending[source] + part if source in pending else part
    return pending.get(0, np.zeros_like(values[0]))
