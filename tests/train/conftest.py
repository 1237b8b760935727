"""The embedded digits, and a small synthetic set whose pixels tell its labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closecall import data
from closecall.data import Dataset


@pytest.fixture(scope="session")
def digits() -> Dataset:
    return data.load_dataset("digits", "train")


@pytest.fixture
def stripes() -> Dataset:
    """240 images of 1×6×6, where the brightest of three bands of rows is the class."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 240)
    images = generator.integers(0, 90, (240, 1, 6, 6))
    for index, label in enumerate(labels):
        images[index, 0, 2 * label : 2 * label + 2] += 120
    return Dataset("stripes", images.astype(np.uint8), labels.astype(np.int64), ("top", "middle", "bottom"))


def with_biases(make: Callable[[], nn.Module]) -> nn.Module:
    """A model with the same random weights every time, and biases that are not zero."""
    torch.manual_seed(5)
    model = make().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.normal_(std=0.2)
    return model


def pixels_for(model: nn.Module, count: int) -> Tensor:
    """Random images, some of whose pixels are black or white."""
    return torch.rand(count, *model.input_shape).mul(1.4).sub(0.2).clamp(0, 1)
