"""DNNs and CNNs as layers in plain numbers: torch builds modules from them, and readers need no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from closecall.errors import ModelError
from closecall.models.blocks import Block, check_block, default_blocks
from closecall.models.checks import check_image_classes, check_outputs, whole_numbers

CONVOLUTIONS = ("standard", "paper")
# Small enough that answers on MNIST are proven within seconds.
DEFAULT_SIZES = (50, 50)
DEFAULT_HIDDEN = (32,)

Sides = tuple[int, ...]


@dataclass(frozen=True)
class Dense:
    """Wx + b, or Wx alone."""

    inputs: int
    outputs: int
    bias: bool

    def tensors(self) -> dict[str, Sides]:
        """The shapes of its weights by their names."""
        return {"weight": (self.outputs, self.inputs), **({"bias": (self.outputs,)} if self.bias else {})}


@dataclass(frozen=True)
class Convolution:
    """Square kernels over all maps at once, or the paper's without depth over each map separately."""

    maps: int
    kernels: int
    size: int
    stride: int
    padding: int
    bias: bool
    paper: bool

    def tensors(self) -> dict[str, Sides]:
        """The shapes of its weights by their names."""
        window = (self.size, self.size)
        weight: dict[str, Sides] = (
            {"kernels": (self.kernels, 1, 1, *window)}
            if self.paper
            else {"weight": (self.kernels, self.maps, *window)}
        )
        return {**weight, **({"bias": (self.kernels,)} if self.bias else {})}


@dataclass(frozen=True)
class Pooling:
    """The largest value of each square window."""

    size: int
    stride: int


@dataclass(frozen=True)
class Rectifier:
    """max(0, x)."""


@dataclass(frozen=True)
class Flattening:
    """All maps as one row."""


DesignLayer = Dense | Convolution | Pooling | Rectifier | Flattening


def dense_layers(
    inputs: int, hidden: Sequence[int], classes: int, *, bias: bool, outputs: str
) -> list[DesignLayer]:
    """Dense, ReLU, …, dense; `outputs="relu"` puts a ReLU on the last one too."""
    layers: list[DesignLayer] = []
    for width in hidden:
        layers += [Dense(inputs, width, bias), Rectifier()]
        inputs = width
    last: list[DesignLayer] = [Dense(inputs, classes, bias)]
    return [*layers, *last] + ([Rectifier()] if outputs == "relu" else [])


class DNNDesign:
    """What `models.DNN` takes, checked, and the layers that it means."""

    def __init__(
        self,
        sizes: Sequence[int] = DEFAULT_SIZES,
        input_shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        *,
        bias: bool = True,
        outputs: str = "logits",
    ) -> None:
        self.sizes = whole_numbers("The hidden layers of a DNN", sizes)
        self.input_shape, self.classes = check_image_classes(input_shape, classes)
        self.bias, self.outputs = bool(bias), check_outputs(outputs)

    def layers(self) -> list[DesignLayer]:
        """The layers in their order."""
        inputs = math.prod(self.input_shape)
        dense = dense_layers(inputs, self.sizes, self.classes, bias=self.bias, outputs=self.outputs)
        return [Flattening(), *dense]


class CNNDesign:
    """What `models.CNN` takes, checked, and the layers that it means."""

    def __init__(
        self,
        blocks: Sequence[Block | Mapping[str, Any] | str] | None = None,
        hidden: Sequence[int] = DEFAULT_HIDDEN,
        input_shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        *,
        convolution: str = "standard",
        bias: bool = True,
        strict: bool | None = None,
        outputs: str = "logits",
    ) -> None:
        self.hidden = whole_numbers("The hidden layers of a CNN", hidden, may_be_empty=True)
        self.input_shape, self.classes = check_image_classes(input_shape, classes)
        usual, fits = default_blocks(self.input_shape[1:])
        self.blocks = usual if blocks is None else _read_blocks(blocks)
        self.strict = (fits or blocks is not None) if strict is None else bool(strict)
        if convolution not in CONVOLUTIONS:
            raise ModelError(f'The convolution is "standard" or "paper", not {convolution!r}.')
        self.convolution, self.bias = convolution, bool(bias)
        self.outputs = check_outputs(outputs)

    def layers(self) -> list[DesignLayer]:
        """The layers in their order, or a ModelError where a block does not fit its input."""
        layers: list[DesignLayer] = []
        maps, *sides = self.input_shape
        size = (sides[0], sides[1])
        paper = self.convolution == "paper"
        for number, block in enumerate(self.blocks, start=1):
            check_block(block, size, f"Block {number}", strict=self.strict)
            layers += [
                Convolution(maps, block.kernels, block.size, block.stride, block.padding, self.bias, paper),
                Rectifier(),
            ]
            if block.pool:
                layers.append(Pooling(block.pool, block.pool_step))
            maps = maps * block.kernels if paper else block.kernels
            _, size = block.sizes(size)
        flat = maps * size[0] * size[1]
        dense = dense_layers(flat, self.hidden, self.classes, bias=self.bias, outputs=self.outputs)
        return [*layers, Flattening(), *dense]


DESIGNS: dict[str, type[DNNDesign] | type[CNNDesign]] = {"dnn": DNNDesign, "cnn": CNNDesign}


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
