"""The 1,797 handwritten 8x8 digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from closecall.data.dataset import Dataset, Split, split_indices


def load_digits(split: Split) -> Dataset:
    """The digits with grey levels 0..16 spread over 0..255, 1,437 for training and 360 for testing."""
    from sklearn.datasets import load_digits as load_levels

    levels, targets = load_levels(return_X_y=True)
    images = np.round(levels * 255 / 16).astype(np.uint8).reshape(-1, 1, 8, 8)
    labels = targets.astype(np.int64)
    chosen = split_indices(labels, split)
    return Dataset("digits", images[chosen], labels[chosen], tuple("0123456789"))
