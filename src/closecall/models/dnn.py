"""Fully connected ReLU networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from closecall.models.checks import check_image_classes, check_outputs, whole_numbers

# Small enough that answers on MNIST are proven within seconds.
DEFAULT_SIZES = (50, 50)


def initialise_dense(layer: nn.Linear, *, relu: bool) -> None:
    """Draw He's normal weights, N(0, 2/n) before a ReLU and N(0, 1/n) otherwise, and zero the bias."""
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu" if relu else "linear")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def dense_layers(
    inputs: int, hidden: Sequence[int], classes: int, *, bias: bool, outputs: str
) -> list[nn.Module]:
    """Give the layers Linear, ReLU, …, Linear; `outputs="relu"` puts a ReLU on the last one too."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width, bias=bias), nn.ReLU()]
        initialise_dense(layers[-2], relu=True)  # type: ignore[arg-type]
        inputs = width
    last = nn.Linear(inputs, classes, bias=bias)
    initialise_dense(last, relu=outputs == "relu")
    return [*layers, last] + ([nn.ReLU()] if outputs == "relu" else [])


class DNN(nn.Module):
    """A fully connected network: flatten, then a ReLU layer for each of `sizes`, then one score per class.

    x⁰ = image,   xᵏ = max(0, Wᵏ xᵏ⁻¹ + bᵏ),   scores = W x + b   (`outputs="relu"`: max(0, ·) of it)
    """

    def __init__(
        self,
        sizes: Sequence[int] = DEFAULT_SIZES,
        input_shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        *,
        bias: bool = True,
        outputs: str = "logits",
    ) -> None:
        super().__init__()
        self.sizes = whole_numbers("The hidden layers of a DNN", sizes)
        self.input_shape, self.classes = check_image_classes(input_shape, classes)
        self.bias, self.outputs = bool(bias), check_outputs(outputs)
        inputs = math.prod(self.input_shape)
        layers = dense_layers(inputs, self.sizes, self.classes, bias=self.bias, outputs=self.outputs)
        self.layers = nn.Sequential(nn.Flatten(), *layers)

    def config(self) -> dict[str, Any]:
        """Give the arguments that build this architecture again, ready for JSON."""
        return {
            "sizes": list(self.sizes),
            "input_shape": list(self.input_shape),
            "classes": self.classes,
            "bias": self.bias,
            "outputs": self.outputs,
        }

    def forward(self, images: Tensor) -> Tensor:
        scores: torch.Tensor = self.layers(images)
        return scores
