"""A network as blocks of matrices in torch: hidden layer k reads the image and all hidden layers before it.

a_k = Σ_{i<k} W_{k,i} h_i + b_k with h_0 the image and h_k = max(0, a_k); the last block gives the scores.
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
from closecall.bounds import MOST_GIGABYTES, dense_gigabytes
from closecall.errors import ModelError
from closecall.network import Network
from closecall.network.layers import Affine, Relu
from closecall.search.crown.lowering import with_relus_only

MULTIPLICATIONS_AT_ONCE = 2e9


class TooLargeError(ModelError):
    """The dense matrices of a network would not fit into memory."""


@dataclass(frozen=True, eq=False)
class Block:
    """W_{k,i} for each source i, and b_k."""

    weights: tuple[tuple[int, Tensor], ...]
    bias: Tensor

    @property
    def size(self) -> int:
        return len(self.bias)


@dataclass(frozen=True, eq=False)
class Blocks:
    """`hidden[0]` stands for the image and is never read; `hidden[k]` is layer k."""

    hidden: tuple[Block, ...]
    scores: Block
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
        blocks = (*self.hidden, self.scores)
        return sum(weight.numel() for block in blocks for _, weight in block.weights)

    def rows_at_once(self, most: int) -> int:
        """How many rows, of so many at most, are carried through all layers in a short time."""
        return max(2, min(most, int(MULTIPLICATIONS_AT_ONCE / max(1, self.entries))))

    @property
    def pixels(self) -> int:
        return self.hidden[0].size

    def block(self, layer: int) -> Block:
        return self.hidden[layer] if layer <= self.depth else self.scores

    def before(self, layer: int) -> Blocks:
        """The part of the network whose scores are the pre-activations of a layer."""
        return Blocks(self.hidden[:layer], self.hidden[layer], self.spans[:layer])

    def keeping(self, kept: Tensor) -> Blocks:
        """The same network without some hidden units, which must be zero wherever it is used."""
        places = [torch.arange(self.pixels)]
        spans = [slice(0, 0)]
        for span in self.spans[1:]:
            places.append(torch.nonzero(kept[span])[:, 0])
            spans.append(slice(spans[-1].stop, spans[-1].stop + len(places[-1])))

        def cut(block: Block, rows: Tensor) -> Block:
            weights = tuple((source, w[rows][:, places[source]].contiguous()) for source, w in block.weights)
            return Block(weights, block.bias[rows])

        hidden = [self.hidden[0]]
        hidden += [cut(self.hidden[layer], places[layer]) for layer in range(1, self.depth + 1)]
        return Blocks(tuple(hidden), cut(self.scores, torch.arange(self.scores.size)), tuple(spans))

    def to(self, dtype: torch.dtype) -> Blocks:
        return Blocks(
            tuple(block_to(block, dtype) for block in self.hidden), block_to(self.scores, dtype), self.spans
        )

    def apply(self, layer: int, values: list[Tensor]) -> Tensor:
        """The pre-activations (batch, n_k) of a layer from the values before it."""
        block = self.block(layer)
        total: Tensor | None = None
        for source, weight in block.weights:
            total = (
                torch.addmm(block.bias, values[source], weight.T)
                if total is None
                else total.addmm_(values[source], weight.T)
            )
        return block.bias.expand(len(values[0]), -1) if total is None else total


def block_to(block: Block, dtype: torch.dtype) -> Block:
    return Block(tuple((source, w.to(dtype)) for source, w in block.weights), block.bias.to(dtype))


def blocks_of(network: Network) -> Blocks:
    """Lower a network to ReLUs and lay it out in float64 blocks; one that is too large is refused."""
    check_size(network)
    relus = with_relus_only(network)
    check_size(relus)
    layer_of = {0: 0}
    hidden = [Block((), torch.zeros(relus.input_size, dtype=torch.float64))]
    spans = [slice(0, 0)]
    for index, node in enumerate(relus.nodes, start=1):
        if isinstance(node.layer, Relu):
            layer_of[index] = len(hidden)
            hidden.append(block_of(relus, node.inputs[0], layer_of))
            spans.append(slice(spans[-1].stop, spans[-1].stop + node.layer.size))
    return Blocks(tuple(hidden), block_of(relus, len(relus.nodes), layer_of), tuple(spans))


def check_size(network: Network) -> None:
    gigabytes = dense_gigabytes(network)
    if gigabytes > MOST_GIGABYTES:
        raise TooLargeError(
            f"the matrices of the network would take about {gigabytes:.0f} GB of memory, more than the "
            f"{MOST_GIGABYTES:.0f} GB that closecall uses: ask about a smaller network."
        )


def block_of(network: Network, index: int, layer_of: dict[int, int]) -> Block:
    node = network.nodes[index - 1]
    layer = cast(Affine, node.layer)
    weights = zip(node.inputs, layer.weights, strict=True)
    return Block(
        tuple((layer_of[source], dense(weight)) for source, weight in weights),
        torch.from_numpy(np.array(layer.bias)),
    )


def dense(weight: Matrix) -> Tensor:
    array = weight.toarray() if issparse(weight) else weight
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float64))
