"""A network as closecall reasons about it: a frozen graph of layers over flat vectors in float64."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, issparse

from closecall.arrays import Vector
from closecall.errors import ModelError
from closecall.network.layers import Affine, Capsules, Layer, Maximum, Relu
from closecall.network.layers.folding import Folding


@dataclass(frozen=True, eq=False)
class Node:
    """A layer and the ids of the values it reads: 0 is the image, k the output of the k-th node."""

    layer: Layer
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes in topological order; the last one gives the class scores."""

    input_shape: tuple[int, ...]
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for index, node in enumerate(self.nodes, start=1):
            if any(not 0 <= source < index for source in node.inputs):
                raise ModelError(
                    f"node {index} reads a value that comes later: expected a graph without cycles."
                )
            if isinstance(node.layer, (Affine, Capsules)) and not all_finite(node.layer):
                raise ModelError(
                    f"the weights of node {index} hold NaN or infinity: train or export the model again."
                )

    @property
    def input_size(self) -> int:
        return int(np.prod(self.input_shape))

    @property
    def classes(self) -> int:
        return self.nodes[-1].layer.size

    @property
    def units(self) -> int:
        """How many ReLU and pooling units there are."""
        return sum(node.layer.size for node in self.nodes if not isinstance(node.layer, Affine))

    def values(self, images: Vector) -> list[Vector]:
        """Every node's output for a batch of images, the images themselves first."""
        values = [np.asarray(images, dtype=np.float64).reshape(len(images), self.input_size)]
        for node in self.nodes:
            values.append(node.layer.forward(*(values[source] for source in node.inputs)))
        return values

    def forward(self, images: Vector) -> Vector:
        """The class scores (batch, classes) for images (batch, …)."""
        return self.values(images)[-1]

    @property
    def capsules(self) -> Capsules | None:
        """The class capsules that the network ends with, if it has any."""
        last = self.nodes[-1].layer
        return last if isinstance(last, Capsules) else None

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 over the graph and all its numbers."""
        digest = hashlib.sha256(repr(self.input_shape).encode())
        for node in self.nodes:
            digest.update(f"{type(node.layer).__name__}{node.inputs}".encode())
            if isinstance(node.layer, Affine):
                for weight in node.layer.weights:
                    sparse = csr_array(weight, copy=True)  # zeros are dropped from the copy alone
                    sparse.eliminate_zeros()
                    sparse.sort_indices()
                    digest.update(
                        sparse.indptr.astype("<i8").tobytes() + sparse.indices.astype("<i8").tobytes()
                    )
                    digest.update(sparse.data.astype("<f8").tobytes())
                digest.update(node.layer.bias.astype("<f8").tobytes())
            elif isinstance(node.layer, Maximum):
                digest.update(node.layer.windows.astype("<i8").tobytes())
            elif isinstance(node.layer, Capsules):
                digest.update(f"{node.layer.votes.shape}{node.layer.iterations}".encode())
                digest.update(node.layer.votes.astype("<f8").tobytes())
        return digest.hexdigest()

    def with_relu_outputs(self) -> Network:
        """The same network with a ReLU on its class scores, as in the paper; as it is if it has one."""
        if isinstance(self.nodes[-1].layer, (Relu, Capsules)):  # lengths are never negative
            return self
        last = Node(Relu(self.classes), (len(self.nodes),))
        return Network(self.input_shape, (*self.nodes, last), self.notes)

    def simplified(self) -> Network:
        """An equal network with chains of affine maps folded and ReLUs moved behind the pooling they feed.

        max(ReLU(a), ReLU(b)) = ReLU(max(a, b)): one ReLU for each window instead of one for each entry.
        """
        return self._simplified

    @cached_property
    def _simplified(self) -> Network:
        return drop_unread(fold_affine(drop_unread(swap_relu_and_maximum(self))))


def all_finite(layer: Affine | Capsules) -> bool:
    if isinstance(layer, Capsules):
        return bool(np.isfinite(layer.votes).all())
    arrays = [weight.data if issparse(weight) else weight for weight in layer.weights]
    return all(bool(np.isfinite(array).all()) for array in [*arrays, layer.bias])


def swap_relu_and_maximum(network: Network) -> Network:
    readers: dict[int, int] = {}
    for node in network.nodes:
        for source in node.inputs:
            readers[source] = readers.get(source, 0) + 1
    nodes = list(network.nodes)
    for index, node in enumerate(nodes):
        if not isinstance(node.layer, Maximum) or node.inputs[0] == 0:
            continue
        before = nodes[node.inputs[0] - 1]
        if isinstance(before.layer, Relu) and readers[node.inputs[0]] == 1:
            # The maximum takes the ReLU's place in the order, so that every id stays as it is.
            nodes[node.inputs[0] - 1] = Node(node.layer, before.inputs)
            nodes[index] = Node(Relu(node.layer.size), node.inputs)
    return Network(network.input_shape, tuple(nodes), network.notes)


def fold_affine(network: Network) -> Network:
    """Substitute affine nodes into the affine nodes that read them."""
    nodes: list[Node] = []
    for node in network.nodes:
        if not isinstance(node.layer, Affine):
            nodes.append(node)
            continue
        folding = Folding(node.layer)
        for weight, source in zip(node.layer.weights, node.inputs, strict=True):
            inner = nodes[source - 1] if source > 0 else None
            if inner is not None and isinstance(inner.layer, Affine):
                folding.substitute(weight, inner.layer, inner.inputs)
            else:
                folding.keep(weight, source)
        folded, sources = folding.result()
        nodes.append(Node(folded, sources))
    return Network(network.input_shape, tuple(nodes), network.notes)


def drop_unread(network: Network) -> Network:
    """Leave out nodes that the output does not depend on."""
    needed = {len(network.nodes)}
    for index in range(len(network.nodes), 0, -1):
        if index in needed:
            needed.update(network.nodes[index - 1].inputs)
    kept = sorted(needed - {0})
    new_id = {0: 0} | {old: new for new, old in enumerate(kept, start=1)}
    nodes = (network.nodes[old - 1] for old in kept)
    return Network(
        network.input_shape,
        tuple(Node(node.layer, tuple(new_id[source] for source in node.inputs)) for node in nodes),
        network.notes,
    )
