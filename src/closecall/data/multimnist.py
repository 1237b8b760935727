"""Overlapping digits: two of MNIST on one image, made on the fly and always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closecall.data.dataset import Dataset, Split, check_labels
from closecall.data.published import MNIST
from closecall.errors import DataError

FURTHEST_SHIFT = 4
_SEEDS: dict[Split, int] = {"train": 36_001, "test": 36_002}


@dataclass(frozen=True, eq=False)
class PairDataset(Dataset):
    """Images of two things of different classes that overlap; `labels` are the classes of the first."""

    second_labels: NDArray[np.int64]  # (N,)
    parts: NDArray[np.uint8]  # (N, 2, height, width), each thing alone

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.second_labels, len(self), self.name)
        if (self.labels == self.second_labels).any():
            raise DataError(f"{self.name}: the two things on an image must be of different classes.")
        if self.parts.shape != (len(self), 2, *self.images.shape[2:]):
            raise DataError(f"{self.name}: the parts have shape {self.parts.shape}, not (count, 2, …).")

    def both_labels(self) -> NDArray[np.int64]:
        """The classes of both things, (N, 2)."""
        return np.stack([self.labels, self.second_labels], axis=1)

    def subset(self, indices: Sequence[int] | NDArray[np.int64]) -> PairDataset:
        """The images at `indices`, in that order, with their parts."""
        chosen = super().subset(indices)
        taken = np.asarray(indices, dtype=np.int64)
        second, parts = self.second_labels[taken], self.parts[taken]
        return PairDataset(self.name, chosen.images, chosen.labels, self.class_names, second, parts)


def load_multimnist(split: Split) -> PairDataset:
    """Every digit of a split of MNIST together with another of a different class, on 36×36 pixels.

    Each of the two is moved by up to 4 pixels down or up and left or right, and the two are added:
    pixel = min(255, a + b).
    """
    return overlap_digits(MNIST.load(split), _SEEDS[split], "multimnist")


def overlap_digits(digits: Dataset, seed: int, name: str) -> PairDataset:
    """Put every image together with another of a different class, each moved by up to 4 pixels.

    RandomState's numbers are the same in every NumPy, so the pairs are.
    """
    random = np.random.RandomState(seed)
    partners = _partners_of_another_class(digits.labels, random)
    moves = random.randint(0, 2 * FURTHEST_SHIFT + 1, size=(2, len(digits), 2))
    parts = np.stack(
        [_placed(digits.images[:, 0], moves[0]), _placed(digits.images[partners, 0], moves[1])], 1
    )
    both = np.minimum(parts.astype(np.uint16).sum(axis=1), 255).astype(np.uint8)
    return PairDataset(
        name, both[:, np.newaxis], digits.labels, digits.class_names, digits.labels[partners], parts
    )


def _partners_of_another_class(labels: NDArray[np.int64], random: np.random.RandomState) -> NDArray[np.int64]:
    if (labels == labels[0]).all():
        raise DataError("Overlapping pairs need images of at least two classes.")
    partners = random.randint(0, len(labels), size=len(labels))
    while (same := labels[partners] == labels).any():
        partners[same] = random.randint(0, len(labels), size=int(same.sum()))
    return partners.astype(np.int64)


def _placed(images: NDArray[np.uint8], corners: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Put each image on a black ground with its upper left corner where it is said."""
    count, height, width = images.shape
    ground = np.zeros((count, height + 2 * FURTHEST_SHIFT, width + 2 * FURTHEST_SHIFT), np.uint8)
    for down in range(2 * FURTHEST_SHIFT + 1):
        for right in range(2 * FURTHEST_SHIFT + 1):
            here = (corners[:, 0] == down) & (corners[:, 1] == right)
            ground[here, down : down + height, right : right + width] = images[here]
    return ground
