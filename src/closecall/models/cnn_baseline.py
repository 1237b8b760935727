"""The convolutional baseline that capsule networks are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from closecall.errors import ModelError
from closecall.models.checks import check_image_classes, whole_numbers
from closecall.models.modules import initialise_dense

WINDOW = 5


class CNNBaseline(nn.Module):
    """Three 5×5 convolutions of stride 1, two dense layers, dropout, and one score per class, all with ReLUs.

    After Sabour, Frosst and Hinton (2017), who give 35.4 M parameters for 28×28 images but not the padding:
    with two pixels of zeros all round, which keep every map as large as the image, there are 35,445,522, and
    without padding there would be 13,277,970. Softmax is left to the loss, so that the scores are logits.
    """

    def __init__(
        self,
        kernels: Sequence[int] = (256, 256, 128),
        hidden: Sequence[int] = (328, 192),
        input_shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        *,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.kernels = whole_numbers("The kernels of a baseline's convolutions", kernels)
        self.hidden = whole_numbers("The dense layers of a baseline", hidden)
        self.input_shape, self.classes = check_image_classes(input_shape, classes)
        if not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
            raise ModelError(f"A baseline's dropout must be at least 0 and below 1, not {dropout!r}.")
        self.dropout = float(dropout)
        self.layers = nn.Sequential(*self._convolutions(), nn.Flatten(), *self._dense())

    def _convolutions(self) -> list[nn.Module]:
        layers: list[nn.Module] = []
        maps = self.input_shape[0]
        for kernels in self.kernels:
            convolution = nn.Conv2d(maps, kernels, WINDOW, padding=WINDOW // 2)
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            layers += [convolution, nn.ReLU()]
            maps = kernels
        return layers

    def _dense(self) -> list[nn.Module]:
        layers: list[nn.Module] = []
        inputs = self.kernels[-1] * self.input_shape[1] * self.input_shape[2]
        for width in self.hidden:
            linear = nn.Linear(inputs, width)
            initialise_dense(linear, relu=True)
            layers += [linear, nn.ReLU()]
            inputs = width
        last = nn.Linear(inputs, self.classes)
        initialise_dense(last, relu=False)
        return [*layers, nn.Dropout(self.dropout), last]

    def config(self) -> dict[str, Any]:
        """Give the arguments that build this architecture again, ready for JSON."""
        return {
            "kernels": list(self.kernels),
            "hidden": list(self.hidden),
            "input_shape": list(self.input_shape),
            "classes": self.classes,
            "dropout": self.dropout,
        }

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.layers(images)
        return scores
