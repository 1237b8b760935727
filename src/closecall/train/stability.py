"""Training for proofs: few ReLUs whose sign depends on where in a small ball around the image one looks.

After Xiao, Tjeng, Shafiullah and Madry, Training for Faster Adversarial Robustness Verification via Inducing
ReLU Stability (2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from closecall.train.intervals import Interval, check_layers, layer_interval, layers_of, pixel_interval

DEFAULT_RADIUS = 0.05
DEFAULT_L1 = 1e-5
LARGEST_FALL = 0.001
THRESHOLDS = tuple(1e-4 * 2 ** (step / 2) for step in range(24))


@dataclass(frozen=True)
class Pruning:
    """The weights below `threshold` in size were set to zero; the accuracy is that on the held-out images."""

    threshold: float
    weights: int
    zeros: int
    validation_accuracy: float


def relu_intervals(model: nn.Module, images: Tensor, radius: float) -> list[Interval]:
    """Give lower and upper bounds on what each ReLU reads, for all images of a batch at once.

    They hold for every image v of [0, 1] with |v − image| ≤ radius, up to rounding in float32.
    """
    lower, upper = pixel_interval(images, radius)
    found: list[Interval] = []
    for layer in layers_of(model):
        if isinstance(layer, nn.ReLU):
            found.append((lower, upper))
        lower, upper = layer_interval(layer, lower, upper)
    return found


def stability_penalty(model: nn.Module, images: Tensor, radius: float) -> Tensor:
    """Give the mean of −tanh(1 + l·u) over all ReLUs and images: low where l and u have the same sign."""
    products = [(lower * upper).flatten(1) for lower, upper in relu_intervals(model, images, radius)]
    return -torch.tanh(1 + torch.cat(products, 1)).mean()


def l1_size(model: nn.Module) -> Tensor:
    """Give the sum of the sizes of all weights; biases do not count."""
    return torch.stack([weight.abs().sum() for weight in _weights(model)]).sum()


def check_stable(model: nn.Module) -> None:
    """Raise ModelError when intervals cannot be carried through a model."""
    check_layers(model, "The stability penalty")


def drop_tiny_weights(model: nn.Module, measure: Callable[[], Sequence[float]]) -> Pruning:
    """Set the weights to zero that are so small that no share falls by more than 0.1 %.

    `measure` gives the shares of images that the model as it is gets right, and that it is proven for if that
    counts; the thresholds grow until one of them falls too far.
    """
    weights = _weights(model)
    original = [weight.detach().clone() for weight in weights]
    before = measure()
    chosen, accuracy = 0.0, before[0]
    for threshold in THRESHOLDS:
        _cut(weights, original, threshold)
        after = measure()
        if any(now < once - LARGEST_FALL for now, once in zip(after, before, strict=True)):
            break
        chosen, accuracy = threshold, after[0]
    _cut(weights, original, chosen)
    zeros = sum(int((weight == 0).sum()) for weight in weights)
    return Pruning(chosen, sum(weight.numel() for weight in weights), zeros, accuracy)


def _cut(weights: list[nn.Parameter], original: list[Tensor], threshold: float) -> None:
    with torch.no_grad():
        for weight, value in zip(weights, original, strict=True):
            weight.copy_(torch.where(value.abs() < threshold, 0.0, value))


def _weights(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.ndim > 1]
