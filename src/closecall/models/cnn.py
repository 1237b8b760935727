"""Convolutional networks, with the standard convolution and with the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from closecall.models.blocks import Block
from closecall.models.designs import DEFAULT_HIDDEN, CNNDesign
from closecall.models.modules import modules_of


class CNN(nn.Module):
    """A convolutional network: blocks of convolution, ReLU and max pooling, then dense layers, then scores.

    Without `blocks` there is one convolution that suits the images. `strict=True` asks that every window fits
    its input a whole number of times, which is the rule for blocks that are given; `strict=False` rounds down
    as PyTorch does. `convolution="paper"` slides kernels without depth over each map separately.
    """

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
        super().__init__()
        design = CNNDesign(
            blocks, hidden, input_shape, classes,
            convolution=convolution, bias=bias, strict=strict, outputs=outputs,
        )  # fmt: skip
        self.blocks, self.hidden = design.blocks, design.hidden
        self.input_shape, self.classes = design.input_shape, design.classes
        self.convolution, self.bias = design.convolution, design.bias
        self.strict, self.outputs = design.strict, design.outputs
        self.layers = nn.Sequential(*modules_of(design.layers()))

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
