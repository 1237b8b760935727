"""Any network as one with ReLUs only: max(a, b) = a + max(0, b − a), pair by pair through each window."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array

from closecall.arrays import Indices
from closecall.network import Network, Node, drop_unread, fold_affine
from closecall.network.layers import Affine, Maximum, Relu


def with_relus_only(network: Network) -> Network:
    """An equal network of affine maps and ReLUs in turn: every affine node reads the image or ReLUs."""
    nodes: list[Node] = []
    new_id = {0: 0}
    for index, node in enumerate(network.simplified().nodes, start=1):
        inputs = tuple(new_id[source] for source in node.inputs)
        if isinstance(node.layer, Maximum):
            width = node_size(network, nodes, inputs[0])
            new_id[index] = add_maximum(nodes, node.layer, inputs[0], width)
        elif isinstance(node.layer, Relu):
            new_id[index] = add_relu(nodes, node.layer.size, inputs[0])
        else:
            nodes.append(Node(node.layer, inputs))
            new_id[index] = len(nodes)
    last = new_id[max(new_id)]
    scores = Node(Affine((identity(network.classes),), np.zeros(network.classes)), (last,))
    return drop_unread(fold_affine(Network(network.input_shape, (*nodes, scores))))


def node_size(network: Network, nodes: list[Node], value: int) -> int:
    return network.input_size if value == 0 else nodes[value - 1].layer.size


def add_relu(nodes: list[Node], size: int, value: int) -> int:
    """Append a ReLU behind an affine map, which is the identity if there is none."""
    nodes.append(Node(Affine((identity(size),), np.zeros(size)), (value,)))
    nodes.append(Node(Relu(size), (len(nodes),)))
    return len(nodes)


def add_maximum(nodes: list[Node], layer: Maximum, value: int, width: int) -> int:
    """Append the ReLUs of a knock-out tournament in each window; give the id of the winners."""
    slots = layer.windows  # which entry of the current value each place holds, −1 for none
    while slots.shape[1] > 1:
        if slots.shape[1] % 2:
            slots = np.hstack([slots, np.full((len(slots), 1), -1)])
        first, second = slots[:, 0::2].ravel(), slots[:, 1::2].ravel()
        first, second = np.where(first < 0, second, first), np.where(first < 0, -1, second)
        matches = np.flatnonzero(second >= 0)
        stay = pick(first, width)
        if len(matches):
            challenge = pick(second[matches], width) - pick(first[matches], width)
            nodes.append(Node(Affine.of([challenge], np.zeros(len(matches))), (value,)))
            nodes.append(Node(Relu(len(matches)), (len(nodes),)))
            gain = csr_array(
                (np.ones(len(matches)), (matches, np.arange(len(matches)))), shape=(len(first), len(matches))
            )
            nodes.append(Node(Affine((stay, gain), np.zeros(len(first))), (value, len(nodes))))
        else:
            nodes.append(Node(Affine((stay,), np.zeros(len(first))), (value,)))
        value, width = len(nodes), len(first)
        slots = np.where(first < 0, -1, np.arange(len(first))).reshape(len(slots), -1)
    nodes.append(Node(Affine((pick(slots[:, 0], width),), np.zeros(len(slots))), (value,)))
    return len(nodes)


def pick(entries: Indices, width: int) -> csr_array:
    """The matrix that takes the given entries of a vector, and zero for −1."""
    rows = np.flatnonzero(entries >= 0)
    return csr_array((np.ones(len(rows)), (rows, entries[rows])), shape=(len(entries), width))


def identity(size: int) -> csr_array:
    return csr_array(eye_array(size))
