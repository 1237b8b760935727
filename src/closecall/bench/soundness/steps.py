"""Small networks as lists of steps over flat vectors, and the torch modules that compute them in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from closecall.arrays import Vector


@dataclass(frozen=True, eq=False)
class Linear:
    """weight · x + bias; every number must be one of float32, so that a disguise changes nothing."""

    weight: Vector
    bias: Vector

    @classmethod
    def identity(cls, size: int) -> Linear:
        return cls(np.eye(size), np.zeros(size))


@dataclass(frozen=True)
class Rectify:
    """max(0, x)."""


@dataclass(frozen=True)
class Compete:
    """The maximum of each window of `width` neighbours; windows do not overlap."""

    width: int


@dataclass(frozen=True, eq=False)
class Detour:
    """x + steps(x)."""

    steps: tuple[Step, ...]


Step = Linear | Rectify | Compete | Detour
Steps = tuple[Step, ...]


def computed(steps: Sequence[Step], values: Vector) -> Vector:
    """What the steps make of rows of values, in float64."""
    for step in steps:
        if isinstance(step, Linear):
            values = values @ step.weight.T + step.bias
        elif isinstance(step, Rectify):
            values = np.maximum(values, 0.0)
        elif isinstance(step, Compete):
            values = values.reshape(len(values), -1, step.width).max(axis=2)
        else:
            values = values + computed(step.steps, values)
    return values


def module_of(steps: Sequence[Step], shape: tuple[int, ...], *, convolved: bool = False) -> nn.Module:
    """The steps as an ordinary PyTorch model; `convolved` puts the image through a convolution first."""
    parts: list[nn.Module] = [pass_through()] if convolved else []
    module = nn.Sequential(*parts, nn.Flatten(), *(layer_of(step) for step in steps)).eval()
    module.input_shape = shape  # type: ignore[assignment]
    return module


def pass_through() -> nn.Module:
    """A 3 × 3 convolution with a single weight, and a ReLU that no pixel notices."""
    convolution = nn.Conv2d(1, 1, 3, padding=1)
    with torch.no_grad():
        convolution.weight.zero_()
        convolution.weight[0, 0, 1, 1] = 1.0
        convolution.bias.zero_()  # type: ignore[union-attr]
    return nn.Sequential(convolution, nn.ReLU())


def layer_of(step: Step) -> nn.Module:
    if isinstance(step, Linear):
        layer = nn.Linear(step.weight.shape[1], step.weight.shape[0])
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(step.weight))
            layer.bias.copy_(torch.from_numpy(step.bias))
        return layer
    if isinstance(step, Rectify):
        return nn.ReLU()
    if isinstance(step, Compete):
        return Windows(step.width)
    return Around(step.steps)


class Windows(nn.Module):
    """Max pooling of neighbours in a flat vector."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool1d(width)

    def forward(self, values: Tensor) -> Tensor:
        pooled: Tensor = self.pool(values.unsqueeze(1))
        return pooled.squeeze(1)


class Around(nn.Module):
    """A residual block."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__()
        self.body = nn.Sequential(*(layer_of(step) for step in steps))

    def forward(self, values: Tensor) -> Tensor:
        added: Tensor = self.body(values)
        return values + added
