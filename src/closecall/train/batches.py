"""The images of a training: held-out split, shuffling and shifts, all decided by (seed, epoch) alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from closecall.data import Dataset, PairDataset
from closecall.errors import InputError
from closecall.train.plan import EPOCH_LIMIT, TrainingPlan


@dataclass(frozen=True)
class Images:
    """Images that stay bytes in memory, with their labels; images of two things come with the parts too."""

    pixels: Tensor  # (N, C, H, W) uint8
    labels: Tensor  # (N,) int64, or (N, 2) when there are two things on every image
    parts: Tensor | None = None  # (N, 2, H, W) uint8

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, dataset: Dataset, chosen: NDArray[np.int64] | None = None) -> Images:
        """Copy the chosen images of a data set, or all."""
        chosen = np.arange(len(dataset)) if chosen is None else chosen
        pixels, parts = torch.from_numpy(dataset.images[chosen]), None
        labels = dataset.labels
        if isinstance(dataset, PairDataset):
            labels, parts = dataset.both_labels(), torch.from_numpy(dataset.parts[chosen])
        return cls(pixels, torch.from_numpy(labels[chosen]).long(), parts)

    def batch(self, start: int, count: int) -> tuple[Tensor, ...]:
        """Give some images as floats in [0, 1], their labels, and their parts if there are any."""
        stop = start + count
        batch = as_floats(self.pixels[start:stop]), self.labels[start:stop]
        return batch if self.parts is None else (*batch, as_floats(self.parts[start:stop]))


def as_floats(pixels: Tensor) -> Tensor:
    """Turn bytes into float32 in [0, 1], the same numbers as float32(byte) / 255."""
    return pixels.float().div_(255)


def fingerprint(dataset: Dataset) -> str:
    """Give a hash of a data set's images and labels, to know it again."""
    digest = hashlib.sha256(np.ascontiguousarray(dataset.images).data)
    digest.update(np.ascontiguousarray(dataset.labels).data)
    return digest.hexdigest()


def split(dataset: Dataset, plan: TrainingPlan) -> tuple[Images, Images]:
    """Give the images to learn from and those held out to choose the best epoch."""
    held_out = plan.held_out(len(dataset))
    order = torch.randperm(len(dataset), generator=_generator(plan.seed, 0)).numpy()
    return Images.of(dataset, order[held_out:]), Images.of(dataset, order[:held_out])


@dataclass(frozen=True)
class Epoch:
    """One pass over the images, in its own order and with its own shifts, gathered batch by batch."""

    images: Images
    order: Tensor  # (N,) int64
    moves: Tensor | None  # (2, N) int64: pixels down and to the right

    def batch(self, start: int, count: int) -> tuple[Tensor, ...]:
        """Give some images as floats in [0, 1], their labels, and their parts if there are any."""
        chosen = self.order[start : start + count]
        moves = None if self.moves is None else self.moves[:, start : start + count]
        batch = _gathered(self.images.pixels, chosen, moves), self.images.labels.index_select(0, chosen)
        parts = self.images.parts
        return batch if parts is None else (*batch, _gathered(parts, chosen, moves))


def _gathered(pixels: Tensor, chosen: Tensor, moves: Tensor | None) -> Tensor:
    gathered = pixels.index_select(0, chosen)
    return as_floats(gathered if moves is None else shift(gathered, moves))


def shuffle(images: Images, plan: TrainingPlan, epoch: int) -> Epoch:
    """Draw the order, and the shifts if the plan has any, of one epoch (counted from 1)."""
    height, width = images.pixels.shape[2:]
    if plan.shift >= min(height, width):
        raise InputError(f"A shift of {plan.shift} pixels would move {height}×{width} images out of sight.")
    generator = _generator(plan.seed, epoch)
    order = torch.randperm(len(images), generator=generator)
    moves = None
    if plan.shift:
        moves = torch.randint(-plan.shift, plan.shift + 1, (2, len(images)), generator=generator)
    return Epoch(images, order, moves)


def shift(pixels: Tensor, moves: Tensor) -> Tensor:
    """Move each image by its own number of pixels; what comes in from outside is black."""
    height, width = pixels.shape[2:]
    shifted = torch.zeros_like(pixels)
    for down, right in torch.unique(moves, dim=1).t().tolist():
        chosen = ((moves[0] == down) & (moves[1] == right)).nonzero().squeeze(1)
        rows, source_rows = _overlap(down, height)
        columns, source_columns = _overlap(right, width)
        moved = torch.zeros_like(pixels[chosen])
        moved[:, :, rows, columns] = pixels[chosen][:, :, source_rows, source_columns]
        shifted[chosen] = moved
    return shifted


def _overlap(move: int, length: int) -> tuple[slice, slice]:
    return slice(max(move, 0), length + min(move, 0)), slice(max(-move, 0), length + min(-move, 0))


def _generator(seed: int, epoch: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed * EPOCH_LIMIT + epoch)
