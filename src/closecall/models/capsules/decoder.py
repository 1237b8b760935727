"""From a class capsule back to an image."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Decoder(nn.Module):
    """Dense layers from the capsules, all but one masked to zero, to pixels: ReLU, …, ReLU, sigmoid."""

    def __init__(
        self, classes: int, dimensions: int, hidden: Sequence[int], input_shape: tuple[int, int, int]
    ) -> None:
        super().__init__()
        self.classes, self.input_shape = classes, input_shape
        layers: list[nn.Module] = []
        inputs = classes * dimensions
        for width in hidden:
            layers += [nn.Linear(inputs, width), nn.ReLU()]
            inputs = width
        self.layers = nn.Sequential(*layers, nn.Linear(inputs, math.prod(input_shape)), nn.Sigmoid())

    def forward(self, capsules: Tensor, chosen: Tensor) -> Tensor:
        """Give the images (batch, channels, height, width) of capsule `chosen` (batch,) of each row."""
        mask = torch.nn.functional.one_hot(chosen, self.classes).to(capsules.dtype)
        masked = (capsules * mask.unsqueeze(2)).flatten(1)  # (B, classes · dimensions)
        pixels: Tensor = self.layers(masked)
        return pixels.reshape(-1, *self.input_shape)
