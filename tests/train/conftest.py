"""The embedded digits, and a small synthetic set whose pixels tell its labels."""

from __future__ import annotations

import numpy as np
import pytest

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
