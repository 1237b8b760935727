from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from closecall.data import KNOWN_NAMES, load_dataset
from closecall.errors import DataError


def test_digits_are_those_of_scikit_learn_in_8_bits() -> None:
    train, test = load_dataset("digits"), load_dataset("digits", "test")
    assert (len(train), len(test)) == (1437, 360)
    assert train.input_shape == (1, 8, 8)
    levels = np.concatenate([train.images, test.images]).reshape(-1, 64) * (16 / 255)
    ours = sorted(map(tuple, np.column_stack([np.round(levels), [*train.labels, *test.labels]])))
    theirs = sorted(map(tuple, np.column_stack(load_digits(return_X_y=True))))
    assert ours == theirs
    assert np.abs(levels - np.round(levels)).max() < 16 / 255 / 2 + 1e-9


def test_digits_have_every_class_in_its_share() -> None:
    counts = np.bincount(load_dataset("digits", "test").labels, minlength=10)
    assert counts.min() >= 34
    assert counts.max() <= 38


def test_the_digits_split_never_changes() -> None:
    test = load_dataset("digits", "test")
    digest = hashlib.sha256(test.images.tobytes() + test.labels.astype("<i8").tobytes()).hexdigest()
    assert digest == "3f5517c7c26bd205d40473ef74cf26768fdd6ab60b677292af4b535d33458817"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DataError, match=r"'mnits' is neither .* multimnist, mnist-affine, and a path"):
        load_dataset("mnits")
    assert KNOWN_NAMES == ("digits", "mnist", "fashion", "cifar10", "multimnist", "mnist-affine")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,2")
    with pytest.raises(DataError, match=r"is a file but not an .npz"):
        load_dataset(str(tmp_path / "x.csv"))


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(DataError, match="splits train and test, not 'validation'"):
        load_dataset("digits", "validation")  # type: ignore[arg-type]
