"""How large a model is: for its file, and for whoever must reason about it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from closecall.models.registry import as_trainable


def count_parameters(model: nn.Module) -> int:
    """Count the trained numbers."""
    return sum(parameter.numel() for parameter in model.parameters())


def count_units(model: nn.Module) -> int:
    """Count the values that ReLU and max pooling layers compute for one image."""
    counts: list[int] = []

    def record(_layer: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        counts.append(output[0].numel())

    counted = [layer for layer in model.modules() if isinstance(layer, (nn.ReLU, nn.MaxPool2d))]
    hooks = [layer.register_forward_hook(record) for layer in counted]
    try:
        with torch.no_grad():
            model(torch.zeros(1, *as_trainable(model).input_shape))
    finally:
        for hook in hooks:
            hook.remove()
    return sum(counts)
