"""Capsule networks: convolutions, primary capsules, a capsule for each class, a decoder to an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from closecall.errors import ModelError
from closecall.models.blocks import check_block
from closecall.models.capsules.decoder import Decoder
from closecall.models.capsules.layers import ClassCapsules, DepthwisePrimaryCapsules, PrimaryCapsules
from closecall.models.capsules.losses import margin_loss, presence, reconstruction_error
from closecall.models.capsules.presets import CapsuleSizes, as_config, choose_sizes, window
from closecall.models.capsules.routing import lengths_of
from closecall.models.checks import check_image_classes

Size = tuple[int, int]


class CapsNet(nn.Module):
    """A capsule network; its scores are the lengths of the class capsules, between 0 and 1.

    A preset gives the sizes and every size can be given instead. Several classes may be present at once.
    """

    def __init__(
        self,
        input_shape: Sequence[int] = (1, 28, 28),
        classes: int = 10,
        *,
        preset: str = "small",
        convolutions: Sequence[str] | None = None,
        batch_norm: bool | None = None,
        primary_types: int | None = None,
        primary_dimensions: int | None = None,
        primary_size: int | None = None,
        primary_stride: int | None = None,
        capsule_layers: Sequence[str] | None = None,
        dimensions: int | None = None,
        decoder: Sequence[int] | None = None,
        routing: str | None = None,
        iterations: int | None = None,
        gradients: str | None = None,
        reconstruction_weight: float | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in CapsuleSizes.__dataclass_fields__}
        super().__init__()
        self.input_shape, self.classes = check_image_classes(input_shape, classes)
        self.preset, self.sizes = preset, choose_sizes(preset, min(self.input_shape[1:]), given)
        self.stem, maps, size = _stem(self.sizes, self.input_shape)
        self.primary, children = _primary(self.sizes, maps, size)
        self.parents = ClassCapsules(children, self.classes, self.sizes.dimensions, self.sizes.routing)
        self.decoder = (
            Decoder(self.classes, self.sizes.dimensions, self.sizes.decoder, self.input_shape)
            if self.sizes.decoder
            else None
        )

    def config(self) -> dict[str, Any]:
        """Give the arguments that build this architecture again, ready for JSON."""
        shape = {"input_shape": list(self.input_shape), "classes": self.classes}
        return {**shape, "preset": self.preset, **as_config(self.sizes)}

    def forward(self, images: Tensor) -> Tensor:
        """Give the length of each class capsule, (batch, classes)."""
        return lengths_of(self.capsules(images))

    def capsules(self, images: Tensor, trace: list[Tensor] | None = None) -> Tensor:
        """Give the class capsules (batch, classes, dimensions); `trace` receives the couplings."""
        children = self.primary(self.stem(images))
        all_gradients = self.sizes.gradients == "all"
        parents: Tensor = self.parents(children, self.sizes.iterations, all_gradients, trace)
        return parents

    def decode(self, capsules: Tensor, chosen: Tensor) -> Tensor:
        """Give the images that the chosen capsule (batch,) of each row stands for."""
        if self.decoder is None:
            raise ModelError("This capsule network has no decoder: build it with decoder=(128, 256), say.")
        images: Tensor = self.decoder(capsules, chosen)
        return images

    def training_loss(
        self, images: Tensor, labels: Tensor, parts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Give the margin loss plus the weighted reconstruction error of the true classes, and the scores.

        With several labels (batch, n), each true capsule must reconstruct its own part (batch, n, H, W).
        """
        capsules = self.capsules(images)
        lengths = lengths_of(capsules)
        loss = margin_loss(lengths, presence(labels, self.classes))
        if self.decoder is not None:
            error = self._reconstruction_error(capsules, images, labels, parts)
            loss = loss + self.sizes.reconstruction_weight * error
        return loss, lengths

    def _reconstruction_error(
        self, capsules: Tensor, images: Tensor, labels: Tensor, parts: Tensor | None
    ) -> Tensor:
        if parts is None:
            return reconstruction_error(self.decode(capsules, labels), images)
        errors = [
            reconstruction_error(self.decode(capsules, labels[:, number]), parts[:, number].unsqueeze(1))
            for number in range(labels.shape[1])
        ]
        return sum(errors[1:], errors[0])


def _stem(sizes: CapsuleSizes, input_shape: tuple[int, int, int]) -> tuple[nn.Sequential, int, Size]:
    """Give the convolutions before the capsules, and the number and size of the maps that leave them."""
    layers: list[nn.Module] = []
    maps, *sides = input_shape
    size = (sides[0], sides[1])
    for number, text in enumerate(sizes.convolutions, start=1):
        block = window(text)
        check_block(block, size, f"Convolution {number} of the capsule network", strict=False)
        layers.append(nn.Conv2d(maps, block.kernels, block.size, block.stride, block.padding))
        if sizes.batch_norm:
            layers.append(nn.BatchNorm2d(block.kernels))
        layers.append(nn.ReLU())
        maps, size = block.kernels, block.sizes(size)[0]
    return nn.Sequential(*layers), maps, size


def _primary(sizes: CapsuleSizes, maps: int, size: Size) -> tuple[nn.Module, tuple[int, int]]:
    """Give the primary capsules, and how many there are of how many dimensions."""
    types, dimensions = sizes.primary_types, sizes.primary_dimensions
    if sizes.primary_size == 0:
        if maps != types * dimensions:
            raise ModelError(
                f"Primary capsules with one window per map turn {types} × {dimensions} maps into capsules, "
                f"but the last convolution gives {maps}."
            )
        return DepthwisePrimaryCapsules(maps, dimensions, size), (types, dimensions)
    block = window(f"{types * dimensions}x{sizes.primary_size}s{sizes.primary_stride}")
    check_block(block, size, "The primary capsules", strict=False)
    height, width = block.sizes(size)[0]
    primary = PrimaryCapsules(maps, types, dimensions, sizes.primary_size, sizes.primary_stride)
    return primary, (types * height * width, dimensions)
