"""The layers of a design as torch modules with fresh weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from closecall.models.designs import Convolution, Dense, DesignLayer, Pooling, Rectifier


class PaperConv2d(nn.Module):
    """A convolution whose f×f kernels have no depth: each slides over every input map separately.

    Input map β (of α) under kernel γ (of m) gives output map δ = β + (γ − 1)·α, so α maps become m·α:

        B_δ(λ, ξ) = b_γ + Σᵢⱼ A_β(i + S(λ − 1), j + S(ξ − 1)) · k_γ(i, j)

    It is the ordinary convolution whose weight (δ, β') is k_γ where β' = β and zero elsewhere.
    """

    maps: Tensor

    def __init__(
        self, inputs: int, kernels: int, size: int, *, stride: int = 1, padding: int = 0, bias: bool = True
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = inputs, kernels * inputs
        self.stride, self.padding = stride, padding
        self.kernels = nn.Parameter(torch.empty(kernels, 1, 1, size, size))
        self.bias = nn.Parameter(torch.zeros(kernels)) if bias else None
        self.register_buffer("maps", torch.eye(inputs).reshape(1, inputs, inputs, 1, 1), persistent=False)
        bound = math.sqrt(size / ((inputs + size) * kernels**2))
        nn.init.uniform_(self.kernels, -bound, bound)

    def forward(self, images: Tensor) -> Tensor:
        weight = (self.kernels * self.maps).flatten(0, 1)  # (m, α, α, f, f) -> (m·α, α, f, f)
        bias = None if self.bias is None else self.bias.repeat_interleave(self.in_channels)
        return F.conv2d(images, weight, bias, self.stride, self.padding)

    def as_conv2d(self) -> nn.Conv2d:
        """Give the ordinary convolution that computes the same."""
        size = self.kernels.shape[-1]
        twin = nn.Conv2d(
            self.in_channels, self.out_channels, size, self.stride, self.padding, bias=self.bias is not None
        )
        with torch.no_grad():
            twin.weight.copy_((self.kernels * self.maps).flatten(0, 1))
            if self.bias is not None and twin.bias is not None:
                twin.bias.copy_(self.bias.repeat_interleave(self.in_channels))
        return twin


def initialise_dense(layer: nn.Linear, *, relu: bool) -> None:
    """Draw He's normal weights, N(0, 2/n) before a ReLU and N(0, 1/n) otherwise, and zero the bias."""
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu" if relu else "linear")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def modules_of(layers: Sequence[DesignLayer]) -> list[nn.Module]:
    """Give every layer of a design as a module."""
    before_relu = [isinstance(following, Rectifier) for following in layers[1:]]
    return [_module_of(layer, relu) for layer, relu in zip(layers, [*before_relu, False], strict=True)]


def _module_of(layer: DesignLayer, before_relu: bool) -> nn.Module:
    if isinstance(layer, Dense):
        linear = nn.Linear(layer.inputs, layer.outputs, bias=layer.bias)
        initialise_dense(linear, relu=before_relu)
        return linear
    if isinstance(layer, Convolution):
        return _paper_convolution(layer) if layer.paper else _standard_convolution(layer)
    if isinstance(layer, Pooling):
        return nn.MaxPool2d(layer.size, layer.stride)
    return nn.ReLU() if isinstance(layer, Rectifier) else nn.Flatten()


def _paper_convolution(layer: Convolution) -> PaperConv2d:
    return PaperConv2d(
        layer.maps,
        layer.kernels,
        layer.size,
        stride=layer.stride,
        padding=layer.padding,
        bias=layer.bias,
    )


def _standard_convolution(layer: Convolution) -> nn.Conv2d:
    module = nn.Conv2d(layer.maps, layer.kernels, layer.size, layer.stride, layer.padding, bias=layer.bias)
    nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    if module.bias is not None:
        nn.init.zeros_(module.bias)
    return module
