"""From a domain to affine forms of the sums whose lengths are the scores of a capsule network."""

from __future__ import annotations

from closecall.bounds.capsules.forms import Ball, Form
from closecall.bounds.capsules.prefix import form_before
from closecall.bounds.capsules.routing import routed
from closecall.bounds.capsules.squashing import squashed
from closecall.bounds.linear import Bounds, linear_bounds
from closecall.network import Network
from closecall.network.layers import Capsules, Relu
from closecall.question.domain import Domain
from closecall.settings import DEFAULT, CapsuleForms, LinearBounds

# Arrays of one size that exist at once: columns, those before, and a product of the two.
COPIES = 4


def routed_sums(
    network: Network,
    domain: Domain,
    until: float,
    settings: LinearBounds = DEFAULT.linear_bounds,
    forms: CapsuleForms = DEFAULT.capsules,
) -> Form:
    """The sums s_j (classes, dimensions) over the domain, of a network that ends with its capsules.

    Raises OutOfTimeError at the perf_counter time `until` and MemoryError where too many ReLUs are open.
    """
    layer = network.capsules
    if layer is None:
        raise TypeError("a network without capsules")
    before = Network(network.input_shape, network.nodes[: network.nodes[-1].inputs[0]])
    known = linear_bounds(before, domain, until, settings)
    check_memory(before, known, domain, layer, forms)
    primary = form_before(before, known, Ball.around(domain), until)
    return routed(layer, squashed(primary.reshaped(*layer.child_shape)), until)


def least_memory(network: Network, domain: Domain) -> float:
    """Gigabytes of the columns of the widest layer and of what is made of them, one for each pixel."""
    widest = max(network.input_size, *(node.layer.size for node in network.nodes))
    return COPIES * 8e-9 * widest * movable(domain)


def check_memory(
    before: Network, known: Bounds, domain: Domain, layer: Capsules, forms: CapsuleForms
) -> None:
    """Refuse before memory is taken: by then it is known how many ReLUs are open."""
    columns, most = movable(domain), 0
    for node in before.nodes:
        if isinstance(node.layer, Relu):
            low, high = known.lower[node.inputs[0]], known.upper[node.inputs[0]]
            columns += int(((low < 0) & (high > 0)).sum())
        most = max(most, node.layer.size * columns)
    children, dimensions = layer.child_shape
    columns += children * (1 + dimensions)
    most = max(most, children * dimensions * columns)
    columns += layer.iterations * layer.size * (children + 2 * layer.votes.shape[2] + 1)
    most = max(most, children * layer.size * columns)
    if COPIES * 8e-9 * most > forms.most_gigabytes:
        raise MemoryError("affine forms have too many columns")


def movable(domain: Domain) -> int:
    low, high = domain.box()
    return int((high > low).sum())
