"""A network as dense matrices in torch: hidden layer k may read the image and all hidden layers before it.

a_k = Σ_{i<k} W_{k,i} h_i + b_k with h_0 the image and h_k = max(0, a_k); the last layer gives the scores.
The units of all hidden layers lie side by side in one vector, in which `spans[k]` is the place of layer k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from closecall.arrays import Matrix
from closecall.bounds import dense_gigabytes
from closecall.errors import ModelError
from closecall.network import Network
from closecall.network.layers import Affine, Relu
from closecall.search.crown.lowering import with_relus_only
from closecall.settings import DEFAULT, Sizes


class TooLargeError(ModelError):
    """The dense matrices of a network would not fit into memory."""


@dataclass(frozen=True, eq=False)
class DenseLayer:
    """W_{k,i} for each source i, and b_k."""

    weights: tuple[tuple[int, Tensor], ...]
    bias: Tensor

    @property
    def size(self) -> int:
        return len(self.bias)


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """`hidden[0]` stands for the image and is never read; `hidden[k]` is layer k."""

    hidden: tuple[DenseLayer, ...]
    scores: DenseLayer
    spans: tuple[slice, ...]

    @property
    def depth(self) -> int:
        return len(self.hidden) - 1

    @property
    def units(self) -> int:
        return self.spans[-1].stop if self.depth else 0

    @property
    def entries(self) -> int:
        """How many weights there are: the multiplications of one row carried through all layers."""
        layers = (*self.hidden, self.scores)
        return sum(weight.numel() for layer in layers for _, weight in layer.weights)

    def rows_at_once(self, most: int, multiplications: float) -> int:
        """How many rows, of so many at most, are carried through all layers by so many multiplications."""
        return max(2, min(most, int(multiplications / max(1, self.entries))))

    @property
    def pixels(self) -> int:
        return self.hidden[0].size

    def layer(self, index: int) -> DenseLayer:
        return self.hidden[index] if index <= self.depth else self.scores

    def before(self, layer: int) -> DenseNetwork:
        """The part of the network whose scores are the pre-activations of a layer."""
        return DenseNetwork(self.hidden[:layer], self.hidden[layer], self.spans[:layer])

    def keeping(self, kept: Tensor) -> DenseNetwork:
        """The same network without some hidden units, which must be zero wherever it is used."""
        places = [torch.arange(self.pixels)]
        spans = [slice(0, 0)]
        for span in self.spans[1:]:
            places.append(torch.nonzero(kept[span])[:, 0])
            spans.append(slice(spans[-1].stop, spans[-1].stop + len(places[-1])))

        def cut(layer: DenseLayer, rows: Tensor) -> DenseLayer:
            weights = tuple((source, w[rows][:, places[source]].contiguous()) for source, w in layer.weights)
            return DenseLayer(weights, layer.bias[rows])

        hidden = [self.hidden[0]]
        hidden += [cut(self.hidden[layer], places[layer]) for layer in range(1, self.depth + 1)]
        return DenseNetwork(tuple(hidden), cut(self.scores, torch.arange(self.scores.size)), tuple(spans))

    def to(self, dtype: torch.dtype) -> DenseNetwork:
        return DenseNetwork(
            tuple(layer_to(layer, dtype) for layer in self.hidden), layer_to(self.scores, dtype), self.spans
        )

    def apply(self, index: int, values: list[Tensor]) -> Tensor:
        """The pre-activations (batch, n_k) of layer k from the values before it."""
        layer = self.layer(index)
        total: Tensor | None = None
        for source, weight in layer.weights:
            total = (
                torch.addmm(layer.bias, values[source], weight.T)
                if total is None
                else total.addmm_(values[source], weight.T)
            )
        return layer.bias.expand(len(values[0]), -1) if total is None else total


@dataclass(frozen=True, eq=False)
class TwoPrecisions:
    """The same network in float64, which proves, and in float32, which is fast."""

    double: DenseNetwork
    single: DenseNetwork

    @classmethod
    def of(cls, double: DenseNetwork) -> TwoPrecisions:
        return cls(double, double.to(torch.float32))

    def before(self, layer: int) -> TwoPrecisions:
        """The part of the network whose scores are the pre-activations of a layer."""
        return TwoPrecisions(self.double.before(layer), self.single.before(layer))


def layer_to(layer: DenseLayer, dtype: torch.dtype) -> DenseLayer:
    return DenseLayer(tuple((source, w.to(dtype)) for source, w in layer.weights), layer.bias.to(dtype))


def dense_network_of(network: Network, settings: Sizes = DEFAULT.sizes) -> DenseNetwork:
    """Lower a network to ReLUs and lay it out in float64; one that is too large is refused."""
    check_size(network, settings)
    relus = with_relus_only(network)
    check_size(relus, settings)
    layer_of = {0: 0}
    hidden = [DenseLayer((), torch.zeros(relus.input_size, dtype=torch.float64))]
    spans = [slice(0, 0)]
    for index, node in enumerate(relus.nodes, start=1):
        if isinstance(node.layer, Relu):
            layer_of[index] = len(hidden)
            hidden.append(dense_layer_of(relus, node.inputs[0], layer_of))
            spans.append(slice(spans[-1].stop, spans[-1].stop + node.layer.size))
    return DenseNetwork(tuple(hidden), dense_layer_of(relus, len(relus.nodes), layer_of), tuple(spans))


def check_size(network: Network, settings: Sizes) -> None:
    gigabytes = dense_gigabytes(network, settings)
    if gigabytes > settings.most_gigabytes:
        raise TooLargeError(
            f"the matrices of the network would take about {gigabytes:.0f} GB of memory, more than the "
            f"{settings.most_gigabytes:.0f} GB that closecall uses: ask about a smaller network."
        )


def dense_layer_of(network: Network, index: int, layer_of: dict[int, int]) -> DenseLayer:
    node = network.nodes[index - 1]
    layer = cast(Affine, node.layer)
    weights = zip(node.inputs, layer.weights, strict=True)
    return DenseLayer(
        tuple((layer_of[source], dense(weight)) for source, weight in weights),
        torch.from_numpy(np.array(layer.bias)),
    )


def dense(weight: Matrix) -> Tensor:
    array = weight.toarray() if issparse(weight) else weight
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float64))
