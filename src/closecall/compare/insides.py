"""What capsules know: reconstructions, and what each dimension of a capsule stands for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from closecall.compare.comparison import Comparison, picture
from closecall.compare.results import CapsuleRow, Dimensions, Reconstruction
from closecall.compare.subjects import Subject
from closecall.data import Dataset
from closecall.models import CapsNet
from closecall.models.capsules.pictures import STEPS, perturbed

RECONSTRUCTIONS = 8


def look_inside(comparison: Comparison, subjects: Sequence[Subject]) -> list[CapsuleRow]:
    """One row for each capsule network that has a decoder."""
    rows = []
    for subject in subjects:
        module = subject.module
        if not isinstance(module, CapsNet):
            continue
        if module.decoder is None:
            comparison.narrow(f"{subject.name} has no reconstructions: it was built without a decoder.")
            continue
        key = comparison.key("insides", model=subject.name, weights=subject.weights)
        rows.append(comparison.row(CapsuleRow, key, lambda s=subject: inside(comparison.test, s)))  # type: ignore[misc]
    return rows


def inside(test: Dataset, subject: Subject) -> CapsuleRow:
    """The first images of the test set restored, and the dimensions of the first that is read right."""
    if not isinstance(subject.module, CapsNet):
        raise TypeError(f"{subject.name} has no capsules")
    count = min(RECONSTRUCTIONS, len(test))
    predicted = subject.predict(test.images[:count])
    right = np.flatnonzero(predicted == test.labels[:count])
    chosen = int(right[0]) if right.size else 0
    return CapsuleRow(
        subject.name,
        [restore(subject.module, test, index, int(predicted[index])) for index in range(count)],
        [move_dimensions(subject.module, test, chosen, int(predicted[chosen]))],
    )


def restore(module: CapsNet, test: Dataset, index: int, predicted: int) -> Reconstruction:
    image = test.image(index)
    with torch.no_grad():
        capsules, _ = module.encode(torch.from_numpy(image).unsqueeze(0))
        restored = module.decode(capsules, torch.tensor([predicted]))[0].numpy()
    return Reconstruction(index, int(test.labels[index]), predicted, picture(image), picture(restored))


def move_dimensions(module: CapsNet, test: Dataset, index: int, predicted: int) -> Dimensions:
    with torch.no_grad():
        capsules, _ = module.encode(torch.from_numpy(test.image(index)).unsqueeze(0))
        rows = perturbed(module, capsules, torch.tensor([predicted]))
    pictures = [[picture(pixels) for pixels in row] for row in rows]
    return Dimensions(index, int(test.labels[index]), predicted, list(STEPS), pictures)
