"""Convolutional networks, with the standard convolution and with the paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from closecall.errors import ModelError
from closecall.models.blocks import Block, check_block, default_blocks
from closecall.models.checks import check_image_classes, check_outputs, whole_numbers
from closecall.models.dnn import dense_layers

CONVOLUTIONS = ("standard", "paper")


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


class CNN(nn.Module):
    """A convolutional network: blocks of convolution, ReLU and max pooling, then dense layers, then scores.

    Without `blocks` there is one convolution that suits the images. `strict=True` asks that every window fits
    its input a whole number of times, which is the rule for blocks that are given; `strict=False` rounds down
    as PyTorch does. `convolution="paper"` slides kernels without depth over each map separately.
    """

    def __init__(
        self,
        blocks: Sequence[Block | Mapping[str, Any] | str] | None = None,
        hidden: Sequence[int] = (32,),
        input_shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        *,
        convolution: str = "standard",
        bias: bool = True,
        strict: bool | None = None,
        outputs: str = "logits",
    ) -> None:
        super().__init__()
        self.hidden = whole_numbers("The hidden layers of a CNN", hidden, may_be_empty=True)
        self.input_shape, self.classes = check_image_classes(input_shape, classes)
        usual, fits = default_blocks(self.input_shape[1:])
        self.blocks = usual if blocks is None else _read_blocks(blocks)
        self.strict = (fits or blocks is not None) if strict is None else bool(strict)
        if convolution not in CONVOLUTIONS:
            raise ModelError(f'The convolution is "standard" or "paper", not {convolution!r}.')
        self.convolution, self.bias = convolution, bool(bias)
        self.outputs = check_outputs(outputs)
        layers, flat = self._convolutional_layers()
        dense = dense_layers(flat, self.hidden, self.classes, bias=self.bias, outputs=self.outputs)
        self.layers = nn.Sequential(*layers, nn.Flatten(), *dense)

    def _convolutional_layers(self) -> tuple[list[nn.Module], int]:
        """Give the layers of all blocks and the number of values that leave the last one."""
        layers: list[nn.Module] = []
        maps, *sides = self.input_shape
        size = (sides[0], sides[1])
        for number, block in enumerate(self.blocks, start=1):
            check_block(block, size, f"Block {number}", strict=self.strict)
            if self.convolution == "paper":
                layers.append(
                    PaperConv2d(
                        maps,
                        block.kernels,
                        block.size,
                        stride=block.stride,
                        padding=block.padding,
                        bias=self.bias,
                    )
                )
                maps *= block.kernels
            else:
                layers.append(_standard_convolution(maps, block, self.bias))
                maps = block.kernels
            layers.append(nn.ReLU())
            if block.pool:
                layers.append(nn.MaxPool2d(block.pool, block.pool_step))
            _, size = block.sizes(size)
        return layers, maps * size[0] * size[1]

    def config(self) -> dict[str, Any]:
        """Give the arguments that build this architecture again, ready for JSON."""
        return {
            "blocks": [block.as_dict() for block in self.blocks],
            "hidden": list(self.hidden),
            "input_shape": list(self.input_shape),
            "classes": self.classes,
            "convolution": self.convolution,
            "bias": self.bias,
            "strict": self.strict,
            "outputs": self.outputs,
        }

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.layers(images)
        return scores


def _standard_convolution(maps: int, block: Block, bias: bool) -> nn.Conv2d:
    layer = nn.Conv2d(maps, block.kernels, block.size, block.stride, block.padding, bias=bias)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def _read_blocks(blocks: Sequence[Block | Mapping[str, Any] | str]) -> tuple[Block, ...]:
    if not isinstance(blocks, (list, tuple)) or not blocks:
        raise ModelError(f"A CNN needs a list of at least one block such as Block(8, 5), not {blocks!r}.")
    return tuple(_read_block(block) for block in blocks)


def _read_block(block: Block | Mapping[str, Any] | str) -> Block:
    if isinstance(block, Block):
        return block
    if isinstance(block, str):
        return Block.parse(block)
    try:
        return Block(**block)
    except TypeError as error:
        raise ModelError(
            f"A block has kernels, size, stride, padding, pool and pool_stride, not {block!r}."
        ) from error
