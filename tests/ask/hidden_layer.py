"""Networks of one hidden layer, so that a pattern is one sign for each unit and all can be tried."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn


class HiddenLayer(nn.Module):
    def __init__(
        self, seed: int, shape: tuple[int, ...], hidden: int, classes: int, spread: tuple[float, float]
    ) -> None:
        """Weights and biases are normal, with these two standard deviations."""
        super().__init__()
        torch.manual_seed(seed)
        self.input_shape = shape
        self.enter, self.leave = nn.Linear(math.prod(shape), hidden), nn.Linear(hidden, classes)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(std=spread[0] if parameter.dim() > 1 else spread[1])
        self.eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.leave(torch.relu(self.enter(images.flatten(1))))

    def weights(self) -> list[np.ndarray]:
        parameters = (self.enter.weight, self.enter.bias, self.leave.weight, self.leave.bias)
        return [parameter.detach().double().numpy() for parameter in parameters]
