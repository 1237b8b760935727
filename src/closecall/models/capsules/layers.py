"""Layers of vector capsules: from feature maps to primary capsules to one capsule per class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from closecall.models.capsules.routing import attention_routing, dynamic_routing, squash, steep_squash

Size = tuple[int, int]

VOTE_SCALE = 0.1


class PrimaryCapsules(nn.Module):
    """A convolution whose maps are read as capsules, `dimensions` maps at one position each.

    Maps t·d … t·d + d − 1 at (y, x) are the capsule of type t there; the capsules are ordered by (t, y, x).
    """

    def __init__(self, inputs: int, types: int, dimensions: int, size: int, stride: int) -> None:
        super().__init__()
        self.types, self.dimensions = types, dimensions
        self.convolution = nn.Conv2d(inputs, types * dimensions, size, stride)

    def forward(self, maps: Tensor) -> Tensor:
        """Give (batch, capsules, dimensions)."""
        return squash(as_capsules(self.convolution(maps), self.types))


class DepthwisePrimaryCapsules(nn.Module):
    """One window as large as the maps for every map: each `dimensions` maps in a row become one capsule."""

    def __init__(self, maps: int, dimensions: int, size: Size) -> None:
        super().__init__()
        self.types = maps // dimensions
        self.convolution = nn.Conv2d(maps, maps, size, groups=maps)

    def forward(self, maps: Tensor) -> Tensor:
        """Give (batch, capsules, dimensions)."""
        return steep_squash(as_capsules(self.convolution(maps), self.types))


def as_capsules(maps: Tensor, types: int) -> Tensor:
    """Read maps (B, types·d, H, W) as capsules (B, types·H·W, d)."""
    batch, channels, height, width = maps.shape
    typed = maps.reshape(batch, types, channels // types, height, width)
    return typed.permute(0, 1, 3, 4, 2).flatten(1, 3)


class ClassCapsules(nn.Module):
    """One capsule per class: each child votes by its own matrices, û_{j|i} = W_ij u_i; routing decides."""

    prior: Tensor

    def __init__(self, children: tuple[int, int], classes: int, dimensions: int, routing: str) -> None:
        super().__init__()
        count, child_dimensions = children
        self.classes, self.routing = classes, routing
        self.weight = nn.Parameter(torch.empty(count, child_dimensions, classes * dimensions))
        if routing == "attention":
            self.prior = nn.Parameter(torch.zeros(classes, count))
        nn.init.normal_(self.weight, std=VOTE_SCALE)

    def votes(self, children: Tensor) -> Tensor:
        """Give û (batch, classes, children, dimensions) by one batched product."""
        votes = torch.bmm(children.transpose(0, 1), self.weight)  # (children, B, classes · dimensions)
        parted = votes.reshape(*votes.shape[:2], self.classes, -1)
        return parted.permute(1, 2, 0, 3).contiguous()

    def forward(self, children: Tensor, iterations: int, all_gradients: bool) -> Tensor:
        """Give (batch, classes, dimensions)."""
        votes = self.votes(children)
        if self.routing == "attention":
            return attention_routing(votes, self.prior)
        return dynamic_routing(votes, iterations, all_gradients=all_gradients)
