"""The one form every data set takes, and the checks it must pass to take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from closecall.errors import DataError

Split = Literal["train", "test"]

MOST_CLASSES = 1000
_SPLIT_SEED = 20_250_101


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled 8-bit images of one size; a pixel's value is its byte divided by 255."""

    name: str
    images: NDArray[np.uint8]  # (N, channels, height, width)
    labels: NDArray[np.int64]  # (N,)
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise DataError(
                f"{self.name}: images must be uint8 of shape (count, channels, height, width), "
                f"not {self.images.dtype} of shape {self.images.shape}."
            )
        if 0 in self.images.shape:
            raise DataError(f"{self.name}: there are no pixels in images of shape {self.images.shape}.")
        check_labels(self.labels, len(self.images), self.name)
        if self.labels.max() >= self.classes:
            raise DataError(
                f"{self.name}: label {self.labels.max()} is out of range, "
                f"the {self.classes} classes are numbered 0 to {self.classes - 1}."
            )

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of every image."""
        _, channels, height, width = self.images.shape
        return channels, height, width

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    def __len__(self) -> int:
        return len(self.images)

    def image(self, index: int) -> NDArray[np.float32]:
        """Image number `index`, counted from 0, as (channels, height, width) in [0, 1]."""
        if not 0 <= index < len(self):
            raise DataError(
                f"{self.name} has no image {index}: its {len(self)} images are numbered 0 to {len(self) - 1}."
            )
        return to_unit_interval(self.images[index])

    def subset(self, indices: Sequence[int] | NDArray[np.int64]) -> Dataset:
        """The images at `indices`, in that order, as a data set of the same classes."""
        chosen = np.asarray(indices, dtype=np.int64)
        if chosen.size == 0 or chosen.min() < 0 or chosen.max() >= len(self):
            raise DataError(
                f"{self.name}: a subset takes one or more indices from 0 to {len(self) - 1}, "
                "at least one of those given is not."
            )
        return Dataset(self.name, self.images[chosen], self.labels[chosen], self.class_names)


def to_unit_interval(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bytes divided by 255."""
    return pixels.astype(np.float32) / np.float32(255)


def check_labels(labels: NDArray[Any], count: int, where: str) -> None:
    """Refuse labels that are not one whole number from 0 upwards for each of `count` images."""
    if not np.issubdtype(labels.dtype, np.integer):
        raise DataError(f"{where}: labels must be whole numbers, not {labels.dtype}.")
    if labels.ndim != 1:
        raise DataError(f"{where}: labels must have shape (count,), not {labels.shape}.")
    if len(labels) != count:
        raise DataError(f"{where}: there are {count} images but {len(labels)} labels, one each is needed.")
    if count == 0:
        raise DataError(f"{where}: there are no images.")
    if labels.min() < 0 or labels.max() >= MOST_CLASSES:
        raise DataError(
            f"{where}: labels run from {labels.min()} to {labels.max()}, "
            f"but classes are numbered from 0 and at most {MOST_CLASSES - 1}."
        )


def number_classes(*labels: NDArray[Any]) -> tuple[str, ...]:
    """Names for classes that are only known by number: '0', '1', … up to the largest label."""
    return tuple(str(number) for number in range(max(int(part.max()) for part in labels) + 1))


def split_indices(labels: NDArray[np.int64], split: Split) -> NDArray[np.int64]:
    """The images that belong to `split` of a set that has no split of its own.

    Shuffled by a fixed seed and ordered by class, every fifth image is for testing: the classes keep
    their shares to within one image. RandomState's numbers are the same in every NumPy, so the split is.
    """
    shuffled = np.random.RandomState(_SPLIT_SEED).permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    for_testing = np.zeros(len(labels), dtype=bool)
    for_testing[by_class[1::5]] = True
    return np.flatnonzero(for_testing if split == "test" else ~for_testing)
