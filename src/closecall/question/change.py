"""Changes of the whole image by one or two numbers: brightness β and contrast α, in any range of pixels.

    x'(α, β) = clip(x + α·(x − m) + β·s),   m the mean of the image, s the width of the pixel range

with clip to the pixel range, as an editor of pictures has it. The numbers are what is searched and measured:
clip(z) = low + ReLU(z − low) − ReLU(z − high), so that two ReLUs a pixel put in front of a network make one
that reads them. Pixels of one value change alike and share their ReLUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Mask, Vector
from closecall.network import Network, Node
from closecall.network.layers import Affine, Relu
from closecall.question.domain import Domain, in_float32
from closecall.question.names import CHANGE_LIMITS, CHANGE_NAMES
from closecall.question.norms import Norm


def change_named(given: object) -> str:
    """The name of a change in the one way that it is written."""
    parts = str(given).lower().replace(" ", "").split("+")
    return "+".join(sorted(parts)) if "+".join(sorted(parts)) in CHANGE_NAMES else str(given)


@dataclass(frozen=True, eq=False)
class Change:
    """The images that one or two numbers make of one image; those outside the mask stay as they are."""

    names: tuple[str, ...]
    image: Vector
    slopes: Vector  # (pixels, numbers)
    pixel_range: tuple[float, float]

    @classmethod
    def of(cls, name: str, image: Vector, pixel_range: tuple[float, float], mask: Mask | None) -> Change:
        low, high = pixel_range
        names, moved = tuple(name.split("+")), 1.0 if mask is None else mask.astype(np.float64)
        by_name = {"brightness": np.full(len(image), high - low), "contrast": image - image.mean()}
        return cls(names, image, np.stack([moved * by_name[each] for each in names], axis=1), pixel_range)

    def domain(self, norm: Norm, radius: float = math.inf) -> Domain:
        """The numbers that are searched, around none."""
        lower, upper = np.array([CHANGE_LIMITS[name] for name in self.names]).T
        return Domain(np.zeros(len(self.names)), lower, upper, norm, radius)

    def pixels(self, amounts: Sequence[float] | Vector) -> Vector:
        """The image that the numbers make, in float64."""
        return np.clip(self.image + self.slopes @ np.asarray(amounts, dtype=np.float64), *self.pixel_range)

    def in_float32(self, amounts: Sequence[float] | Vector) -> NDArray[np.float32]:
        """The same as models take images."""
        return in_float32(self.pixels(amounts), *self.pixel_range)

    def before(self, network: Network) -> Network:
        """The network that reads the numbers: its scores are those of the image that they make."""
        low, high = self.pixel_range
        alike = np.column_stack([self.image, self.slopes])
        _, first, place = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        values, slopes, count = self.image[first], self.slopes[first], len(first)
        rising = Affine.of([np.vstack([slopes, slopes])], np.concatenate([values - low, values - high]))
        pixels, place = np.arange(len(self.image)), place.ravel()
        signs = np.repeat([1.0, -1.0], len(pixels))
        entries = (signs, (np.tile(pixels, 2), np.concatenate([place, count + place])))
        clipped = Affine.of([csr_array(entries, shape=(len(pixels), 2 * count))], np.full(len(pixels), low))
        front = (Node(rising, (0,)), Node(Relu(2 * count), (1,)), Node(clipped, (2,)))
        rest = (Node(node.layer, tuple(source + 3 for source in node.inputs)) for node in network.nodes)
        return Network((len(self.names),), (*front, *rest), network.notes)
