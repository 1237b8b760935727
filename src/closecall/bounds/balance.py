"""An equal network whose units have a scale that solvers can work with.

max(0, s·a) = s·max(0, a) for any s > 0, so a ReLU network may carry any scale between its layers; but solvers
take small numbers for zero. Here every unit is multiplied by a power of two that brings the largest weight it
reads with to about 1, and what reads it is divided by the same: no number is rounded, and nothing
changes that can be seen from outside. Networks of ordinary scale stay as they are, bit for bit.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from closecall.arrays import Matrix, Vector
from closecall.bounds import interval_bounds
from closecall.network import Network, Node
from closecall.network.layers import Affine, Capsules, Maximum
from closecall.question.domain import Domain
from closecall.settings import DEFAULT, LinearBounds

Groups = list[NDArray[np.int64]]


def balanced(network: Network, domain: Domain, settings: LinearBounds = DEFAULT.linear_bounds) -> Network:
    """The same function of the image, with every hidden unit at an ordinary scale.

    Units that intervals know to be 0 all over the domain have no say in it, however large their weights.
    """
    groups = units_of_one_scale(network)
    bounds = interval_bounds(network, domain)
    alive = [(low != 0) | (high != 0) for low, high in zip(bounds.lower, bounds.upper, strict=True)]
    scales = np.ones(1 + max(int(group.max(initial=0)) for group in groups))
    bent = [groups[node.inputs[0]] for node in network.nodes if isinstance(node.layer, Capsules)]
    fixed = np.concatenate([groups[0], groups[-1], *bent])  # the pixels and the scores mean something
    for node, group in zip(network.nodes, groups[1:], strict=True):
        if isinstance(node.layer, Affine):
            sizes = sizes_of_rows(node.layer, [alive[s] / scales[groups[s]] for s in node.inputs])
            largest = np.zeros(len(scales))
            np.maximum.at(largest, group, sizes)
            scales[group] = power_of_two(largest[group], settings.ordinary_doublings)
            scales[fixed] = 1.0
    if bool((scales == 1.0).all()):
        return network
    nodes = [
        Node(rescaled(node.layer, group, [groups[s] for s in node.inputs], scales), node.inputs)
        if isinstance(node.layer, Affine)
        else node
        for node, group in zip(network.nodes, groups[1:], strict=True)
    ]
    return Network(network.input_shape, tuple(nodes), network.notes)


def units_of_one_scale(network: Network) -> Groups:
    """For every value (the image first) the group of each of its units: those that must share a scale.

    A ReLU's output has the scale of its input, a maximum that of all its entries.
    """
    sizes = [network.input_size, *(node.layer.size for node in network.nodes)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs: list[NDArray[np.int64]] = []
    for index, node in enumerate(network.nodes, start=1):
        if isinstance(node.layer, (Affine, Capsules)):
            continue
        if isinstance(node.layer, Maximum):
            output, slot = np.nonzero(node.layer.windows >= 0)
            entry = node.layer.windows[output, slot]
        else:
            output = entry = np.arange(node.layer.size)
        pairs.append(np.stack([starts[index] + output, starts[node.inputs[0]] + entry]))
    joined = np.concatenate([np.zeros((2, 0), dtype=np.int64), *pairs], axis=1)
    groups = joined_groups(int(starts[-1]), joined[0], joined[1])
    return [groups[start:stop] for start, stop in pairwise(starts)]


def joined_groups(count: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of so many units the first one of its group, where each pair of units is in one group.

    Scipy has such a function, in a module that takes longer to import than a small search.
    """
    first = np.arange(count)
    while not np.array_equal(first[left], first[right]):
        ends = first[left], first[right]
        lower = np.minimum(*ends)
        for end in ends:
            np.minimum.at(first, end, lower)
        while not np.array_equal(first, first[first]):
            first = first[first]
    return first


def sizes_of_rows(layer: Affine, factors: list[Vector]) -> Vector:
    """The largest weight of each row times the factor of its input; of a constant, the constant."""
    sizes = np.zeros(layer.size)
    for weight, factor in zip(layer.weights, factors, strict=True):
        if weight.shape[1]:
            sizes = np.maximum(sizes, most_in_rows(weight, factor))
    return np.where(sizes > 0, sizes, np.abs(layer.bias))


def most_in_rows(weight: Matrix, factor: Vector) -> Vector:
    """The largest |weight| · factor of each row, without a product of sparse matrices, which takes long."""
    if not issparse(weight):
        return np.asarray((np.abs(weight) * factor).max(axis=1))
    data = np.abs(weight.data) * factor[weight.indices]
    scaled = csr_array((data, weight.indices, weight.indptr), shape=weight.shape)
    return np.asarray(scaled.max(axis=1).toarray()).ravel()


def power_of_two(sizes: Vector, ordinary: int) -> Vector:
    """What brings each size to about 1; 1 where it is 0, or no more than so many doublings from 1."""
    doublings = np.where(sizes > 0, np.round(np.log2(np.where(sizes > 0, sizes, 1.0))), 0.0)
    return np.asarray(np.exp2(np.where(np.abs(doublings) > ordinary, -doublings, 0.0)))


def rescaled(layer: Affine, group: NDArray[np.int64], inputs: Groups, scales: Vector) -> Affine:
    out = scales[group]
    weights: list[Matrix] = []
    for weight, source in zip(layer.weights, inputs, strict=True):
        left, right = csr_array_of_diagonal(out), csr_array_of_diagonal(1.0 / scales[source])
        weights.append(left @ weight @ right)
    return Affine(tuple(weights), out * layer.bias)


def csr_array_of_diagonal(values: Vector) -> csr_array:
    each = np.arange(len(values))
    return csr_array((values, (each, each)), shape=(len(values), len(values)))
