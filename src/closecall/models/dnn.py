"""Fully connected ReLU networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from closecall.models.designs import DEFAULT_SIZES, DNNDesign
from closecall.models.modules import modules_of


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
        design = DNNDesign(sizes, input_shape, classes, bias=bias, outputs=outputs)
        self.sizes, self.input_shape, self.classes = design.sizes, design.input_shape, design.classes
        self.bias, self.outputs = design.bias, design.outputs
        self.layers = nn.Sequential(*modules_of(design.layers()))

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
