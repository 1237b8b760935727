"""Capsule networks: convolutions, primary capsules, a capsule for each class, a decoder to an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from closecall.errors import ModelError
from closecall.models.blocks import check_block
from closecall.models.capsules.decoder import Decoder
from closecall.models.capsules.layers import ClassCapsules, DepthwisePrimaryCapsules, PrimaryCapsules
from closecall.models.capsules.losses import margin_loss, presence, reconstruction_error, spread_loss
from closecall.models.capsules.matrix import ConvolutionalCapsules, MatrixClassCapsules, MatrixPrimaryCapsules
from closecall.models.capsules.presets import CapsuleSizes, as_config, choose_sizes, window
from closecall.models.capsules.routing import lengths_of
from closecall.models.checks import check_image_classes

Size = tuple[int, int]

SPREAD = 0.9


class CapsNet(nn.Module):
    """A capsule network; its scores are the lengths (EM: activations) of the class capsules, in [0, 1].

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
        self._add_capsules(maps, size)
        self.decoder = (
            Decoder(self.classes, self.sizes.dimensions, self.sizes.decoder, self.input_shape)
            if self.sizes.decoder
            else None
        )

    def _add_capsules(self, maps: int, size: Size) -> None:
        self.layers = nn.ModuleList()
        if self.sizes.routing == "em":
            self.primary: nn.Module = MatrixPrimaryCapsules(maps, self.sizes.primary_types)
            layers, types, size = _capsule_layers(self.sizes, size)
            self.layers.extend(layers)
            self.parents: nn.Module = MatrixClassCapsules(types, size, self.classes)
            return
        self.primary, children = _primary(self.sizes, maps, size)
        self.parents = ClassCapsules(children, self.classes, self.sizes.dimensions, self.sizes.routing)

    def config(self) -> dict[str, Any]:
        """Give the arguments that build this architecture again, ready for JSON."""
        shape = {"input_shape": list(self.input_shape), "classes": self.classes}
        return {**shape, "preset": self.preset, **as_config(self.sizes)}

    def forward(self, images: Tensor) -> Tensor:
        """Give the length (or, by EM routing, the activation) of each class capsule, (batch, classes)."""
        return self.encode(images)[1]

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Give the class capsules (batch, classes, dimensions) and the scores (batch, classes)."""
        children = self.primary(self.stem(images))
        how = (self.sizes.iterations, self.sizes.gradients == "all")
        if self.sizes.routing == "em":
            for layer in self.layers:
                children = layer(children, *how)
            poses, activations = self.parents(children, *how)
            return poses, activations
        parents: Tensor = self.parents(children, *how)
        return parents, lengths_of(parents)

    def votes(self, images: Tensor) -> Tensor:
        """Give û (batch, classes, primary capsules, dimensions), what vector capsules are routed by."""
        if not isinstance(self.parents, ClassCapsules):
            raise ModelError(
                "Matrix capsules vote in every layer: only vector capsules have one set of votes."
            )
        return self.parents.votes(self.primary(self.stem(images)))

    def decode(self, capsules: Tensor, chosen: Tensor) -> Tensor:
        """Give the images that the chosen capsule (batch,) of each row stands for."""
        if self.decoder is None:
            raise ModelError("This capsule network has no decoder: build it with decoder=(128, 256), say.")
        images: Tensor = self.decoder(capsules, chosen)
        return images

    def training_loss(
        self, images: Tensor, labels: Tensor, parts: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Give margin (EM: spread) loss plus weighted reconstruction error of the true classes, and scores.

        With several labels (batch, n), each true capsule must reconstruct its own part (batch, n, H, W).
        """
        capsules, scores = self.encode(images)
        present = presence(labels, self.classes)
        em = self.sizes.routing == "em"
        loss = spread_loss(scores, present, SPREAD) if em else margin_loss(scores, present)
        if self.decoder is not None:
            error = self._reconstruction_error(capsules, images, labels, parts)
            loss = loss + self.sizes.reconstruction_weight * error
        return loss, scores

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


def _capsule_layers(sizes: CapsuleSizes, size: Size) -> tuple[list[ConvolutionalCapsules], int, Size]:
    """Give the layers of matrix capsules, and the types and the size of the grid that leave them."""
    layers: list[ConvolutionalCapsules] = []
    types = sizes.primary_types
    for number, text in enumerate(sizes.capsule_layers, start=1):
        block = window(text)
        check_block(block, size, f"Capsule layer {number}", strict=False)
        layers.append(ConvolutionalCapsules(types, block.kernels, block.size, block.stride))
        types, size = block.kernels, block.sizes(size)[0]
    return layers, types, size


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
