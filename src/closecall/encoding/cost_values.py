"""The paper's costs of an image as it is, and the least that any image of a domain can cost."""

from __future__ import annotations

import numpy as np

from closecall.arrays import OUTWARD, Vector
from closecall.bounds import Bounds, maximise
from closecall.encoding.encode import Costs
from closecall.network import Network, Node
from closecall.network.layers import Affine, Relu
from closecall.question.domain import Domain

# A unit within this of 0, as a share of the largest of its layer or of 1, is on or off as is cheaper: there
# the optimum often lies, and neither solvers nor float32 can tell.
NEAR_ZERO = 1e-6


def rectifiers(network: Network) -> list[int]:
    """The ids of the nodes whose units the costs are on."""
    return [number for number, node in enumerate(network.nodes, start=1) if isinstance(node.layer, Relu)]


def cost_of(network: Network, costs: Costs, wanted: int, point: Vector) -> float:
    """Σ unit·x + Σ inactive·[unit off] − wanted_class·(score of the wanted class) of one image."""
    values = network.values(point[None])
    total = -costs.wanted_class * float(values[-1][0, wanted])
    for number in rectifiers(network):
        before = values[network.nodes[number - 1].inputs[0]][0]
        near = NEAR_ZERO * max(1.0, float(np.abs(before).max(initial=0.0)))
        off = before < -near if costs.inactive >= 0 else before <= near
        total += costs.unit * float(values[number][0].sum()) + costs.inactive * float(off.sum())
    return total


def least_cost(network: Network, domain: Domain, bounds: Bounds, costs: Costs, wanted: int) -> float:
    """A lower bound on the costs of every image of a domain, from bounds on each unit alone."""
    row = np.zeros((1, network.classes))
    row[0, wanted] = costs.wanted_class
    terms: list[Vector] = [-maximise(network, domain, bounds, len(network.nodes), row)]
    for number in rectifiers(network):
        low, high = (ends[network.nodes[number - 1].inputs[0]] for ends in (bounds.lower, bounds.upper))
        least, most = np.maximum(low, 0.0), np.maximum(high, 0.0)
        terms.append(costs.unit * (least if costs.unit >= 0 else most))
        off = (high < 0) if costs.inactive >= 0 else (low <= 0)
        terms.append(costs.inactive * off.astype(np.float64))
    every = np.concatenate(terms)
    return float(every.sum() - OUTWARD * np.abs(every).sum())


def with_linear_costs(network: Network, costs: Costs, wanted: int) -> Network:
    """The network with one more score: the costs but for the penalties, which have no slope."""
    sources, classes = [*rectifiers(network), len(network.nodes)], network.classes
    weights = []
    for number in sources[:-1]:
        weight = np.zeros((classes + 1, network.nodes[number - 1].layer.size))
        weight[-1] = costs.unit
        weights.append(weight)
    last = np.eye(classes + 1, classes)
    last[-1, wanted] = -costs.wanted_class
    layer = Affine.of([*weights, last], np.zeros(classes + 1))
    return Network(network.input_shape, (*network.nodes, Node(layer, tuple(sources))), network.notes)
