"""How far a solver's tolerances can carry the scores of a network, and whether its claims mean anything then.

A solver may miss every row and every integer by its tolerance, and its presolve takes what is nearer than
that for the same. A unit that is off by e makes those that read it off by |weight|·e. Where all of it adds up
to a good part of what the original lacks of a case, a point that reaches the case may be lost: then nothing
that the solver says of distances is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case

TOLERANCE = 1e-9  # of every solver, for a row whose largest term is near 1: larger ones are scaled down
# Of what the original lacks of a case. The errors of all rows hardly ever add up, so a bound is off by far
# less than this: by 0.1 % where the share was 2 (liar 7791), by all where it was 100 (liar 3005). In
# intervals over the whole box the zoo's networks are at 0.007 or less, 99 of 100 liars below 0.013.
MOST_OF_WHAT_IS_LACKING = 0.01
NOT_TRUSTED = (
    "the network multiplies what a solver may be off by until it outweighs the scores, so nothing that the "
    "solver says of distances is claimed"
)


def is_trustworthy(network: Network, domain: Domain, cases: Sequence[Case], bounds: Bounds) -> bool:
    """Whether the tolerances of a solver are small beside what the original lacks of each case."""
    scores, errors = network.forward(domain.centre[None])[0], score_errors(network, bounds)
    return all(
        weighs_little(case, errors, float((case.threshold - case.matrix @ scores).max())) for case in cases
    )


def weighs_little(case: Case, errors: Vector, beside: float) -> bool:
    """Whether errors of the scores are next to nothing for a case, beside a difference of scores."""
    return float((np.abs(case.matrix) @ errors).max()) <= MOST_OF_WHAT_IS_LACKING * beside


def score_errors(network: Network, bounds: Bounds) -> Vector:
    """By how much each score may be off when every row is missed by a solver's tolerance."""
    return errors_up_to(len(network.nodes), network, bounds)


def errors_up_to(node_id: int, network: Network, bounds: Bounds) -> Vector:
    """The same for the outputs of a node."""
    errors = [np.full(network.input_size, TOLERANCE)]
    for node in network.nodes[:node_id]:
        errors.append(error_of(node, [errors[source] for source in node.inputs], bounds))
    return errors[-1]


def error_of(node: Node, errors: list[Vector], bounds: Bounds) -> Vector:
    """That of one node: what it passes on, and for each open unit or window a row of its own."""
    layer = node.layer
    if isinstance(layer, Affine):
        passed = [abs(weight) @ error for weight, error in zip(layer.weights, errors, strict=True)]
        return np.asarray(sum(passed))
    low, high = bounds.lower[node.inputs[0]], bounds.upper[node.inputs[0]]
    own = TOLERANCE * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    if isinstance(layer, Relu):
        on = np.where(low >= 0, errors[0], errors[0] + own)
        return np.where(high <= 0, 0.0, on)
    if isinstance(layer, Maximum):
        entered = np.where(layer.windows >= 0, (errors[0] + own)[layer.windows], 0.0)
        return np.asarray(entered.max(axis=1))
    raise TypeError(f"no such layer is known: {type(layer).__name__}")
