"""Our own capsule networks as networks that can be bounded: layers up to primary capsules, then routing."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from closecall.errors import UnsupportedLayerError
from closecall.models.capsnet import CapsNet
from closecall.models.capsules.layers import ClassCapsules, PrimaryCapsules, as_capsules
from closecall.network import Network, Node
from closecall.network.layers import Affine, Capsules, Relu
from closecall.network.windows import Shape
from closecall.readers.torch import read_module


class BeforeRouting(nn.Module):
    """What a capsule network does before its primary capsules are squashed."""

    def __init__(self, network: CapsNet, primary: PrimaryCapsules) -> None:
        super().__init__()
        self.stem, self.convolution, self.types = network.stem, primary.convolution, primary.types
        self.train(network.training)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return as_capsules(self.convolution(self.stem(images)), self.types).flatten(1)


def read_capsules(network: CapsNet, shape: Shape) -> Network:
    """The network in float64; only dynamic routing from convolutional primary capsules can be bounded."""
    primary, parents, routing = network.primary, network.parents, network.sizes.routing
    if not (isinstance(primary, PrimaryCapsules) and isinstance(parents, ClassCapsules)) or (
        routing != "dynamic"
    ):
        raise UnsupportedLayerError(
            f'nothing can be proven about capsules with routing "{routing}" from {type(primary).__name__}, '
            "only about those with dynamic routing from PrimaryCapsules, as the presets small and paper have "
            "them."
        )
    builder, output = read_module(BeforeRouting(network, primary), shape)
    before = builder.finish(output)
    if not all(isinstance(node.layer, (Affine, Relu)) for node in before.nodes):
        raise UnsupportedLayerError(
            "nothing can be proven about capsules behind pooling: only convolutions, dense layers and ReLUs "
            "may stand before them."
        )
    weight = parents.weight.detach().to(torch.float64).cpu().numpy()
    votes = weight.reshape(*weight.shape[:2], parents.classes, -1).transpose(0, 2, 3, 1)
    last = Node(Capsules(np.ascontiguousarray(votes), network.sizes.iterations), (len(before.nodes),))
    return Network(before.input_shape, (*before.nodes, last), before.notes)
