"""Intervals through a model in torch, for a batch of images at once and with gradients."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from closecall.errors import ModelError
from closecall.models.modules import PaperConv2d

Interval = tuple[Tensor, Tensor]


def pixel_interval(images: Tensor, radius: float) -> Interval:
    """Give the bounds of every image v of [0, 1] with |v − image| ≤ radius."""
    return (images - radius).clamp(min=0), (images + radius).clamp(max=1)


def layer_interval(layer: nn.Module, lower: Tensor, upper: Tensor) -> Interval:
    """Give the bounds of what a layer computes, up to rounding in float32.

    affine: W·(u + l)/2 + b ± |W|·(u − l)/2      ReLU, maximum: of both bounds
    """
    if not isinstance(layer, AFFINE):
        return layer(lower), layer(upper)
    middle, reach = (upper + lower) / 2, (upper - lower) / 2
    if isinstance(layer, nn.Linear):
        spread = F.linear(reach, layer.weight.abs())
    else:
        weight = layer.weight if isinstance(layer, nn.Conv2d) else (layer.kernels * layer.maps).flatten(0, 1)
        spread = F.conv2d(reach, weight.abs(), None, layer.stride, layer.padding)
    centre = layer(middle)
    return centre - spread, centre + spread


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Give the layers that a model applies one after the other."""
    layers = getattr(model, "layers", None)
    return list(layers) if isinstance(layers, nn.Sequential) else [model]


def check_layers(model: nn.Module, wanted_by: str) -> None:
    """Raise ModelError when intervals cannot be carried through a model."""
    for layer in layers_of(model):
        if not isinstance(layer, KNOWN):
            raise ModelError(
                f"{wanted_by} needs a dnn or a cnn: it has no bounds for {type(layer).__name__}."
            )


AFFINE = (nn.Linear, nn.Conv2d, PaperConv2d)
KNOWN = (*AFFINE, nn.ReLU, nn.MaxPool2d, nn.Flatten)
