"""Small random networks and the exact truth about them by MILP."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closecall.bounds import linear_bounds
from closecall.encoding.encode import encode
from closecall.milp import Limits
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.question.norms import norm_named
from closecall.solvers import solve

Vector = NDArray[np.float64]


def random_network(seed: int, *, pooled: bool) -> Network:
    """6 pixels, 8 units (pooled or not), 6 units, 3 scores, and a skip from the first layer to the scores."""
    generator = np.random.default_rng(seed)

    def affine(rows: int, *columns: int) -> Affine:
        weights = [generator.normal(size=(rows, width)) / np.sqrt(width) for width in columns]
        return Affine.of(weights, 0.3 * generator.normal(size=rows))

    nodes = [Node(affine(8, 6), (0,)), Node(Relu(8), (1,))]
    width = 8
    if pooled:
        windows = np.array([[0, 1, 2], [2, 3, 4], [5, 6, -1], [7, 0, 3], [1, -1, -1]])
        nodes.append(Node(Maximum(windows), (2,)))
        width = 5
    first = len(nodes)
    nodes += [Node(affine(6, width), (first,)), Node(Relu(6), (first + 1,))]
    nodes.append(Node(affine(3, 6, width), (first + 2, first)))
    return Network((1, 2, 3), tuple(nodes))


def random_question(network: Network, seed: int, norm: str, *, targeted: bool) -> tuple[Domain, Goal]:
    """An image, the whole pixel box, and the goal of another class with a margin."""
    generator = np.random.default_rng(1000 + seed)
    centre = generator.uniform(size=network.input_size)
    label = int(network.forward(centre[None])[0].argmax())
    others = [k for k in range(network.classes) if k != label]
    identity = np.eye(network.classes)
    if targeted:
        rivals = [k for k in range(network.classes) if k != others[0]]
        cases = (Case(identity[others[0]] - identity[rivals], np.full(len(rivals), 0.001)),)
    else:
        cases = tuple(Case((identity[k] - identity[label])[None], np.array([0.001])) for k in others)
    domain = Domain(centre, np.zeros(len(centre)), np.ones(len(centre)), norm_named(norm))
    return domain, Goal(cases)


def true_distance(network: Network, domain: Domain, goal: Goal) -> float:
    """The distance of the nearest image that reaches the goal, inf if there is none."""
    simple = network.simplified()
    encoding = encode(simple, domain, goal, linear_bounds(simple, domain))
    solution = solve(encoding.milp, "highs", Limits(seconds=30, relative_gap=1e-9))
    assert solution.status in ("optimal", "infeasible")
    return encoding.distance(solution.objective) if solution.status == "optimal" else np.inf
