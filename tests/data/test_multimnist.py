"""Overlapping pairs against their parts, placed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from closecall.data import Dataset, PairDataset
from closecall.data.multimnist import FURTHEST_SHIFT, overlap_digits
from closecall.errors import DataError


@pytest.fixture(scope="module")
def digits() -> Dataset:
    random = np.random.default_rng(0)
    images = random.integers(1, 256, (200, 1, 6, 5)).astype(np.uint8)
    return Dataset("some", images, random.integers(0, 3, 200), ("a", "b", "c"))


@pytest.fixture(scope="module")
def pairs(digits: Dataset) -> PairDataset:
    return overlap_digits(digits, 7, "pairs")


def corner(part: np.ndarray) -> tuple[int, int]:
    rows, columns = np.nonzero(part)
    return int(rows.min()), int(columns.min())


def test_every_image_is_the_sum_of_two_of_different_classes(digits: Dataset, pairs: PairDataset) -> None:
    assert pairs.images.shape == (200, 1, 14, 13)
    total = pairs.parts[:, 0].astype(int) + pairs.parts[:, 1]
    assert (pairs.images[:, 0] == np.minimum(total, 255)).all()
    assert (pairs.labels != pairs.second_labels).all()
    assert (pairs.labels == digits.labels).all()
    assert pairs.both_labels().shape == (200, 2)


def test_parts_are_whole_digits_of_their_class_moved_by_up_to_four(
    digits: Dataset, pairs: PairDataset
) -> None:
    moves = set()
    known = {image.tobytes(): label for image, label in zip(digits.images, digits.labels, strict=True)}
    for part, labels in zip(pairs.parts, pairs.both_labels(), strict=True):
        for number in range(2):
            down, right = corner(part[number])
            moves.add((down, right))
            cut = part[number, down : down + 6, right : right + 5]
            assert known[cut.tobytes()] == labels[number]
            assert np.count_nonzero(part[number]) == 30
    assert {down for down, _ in moves} == set(range(2 * FURTHEST_SHIFT + 1))
    assert {right for _, right in moves} == set(range(2 * FURTHEST_SHIFT + 1))


def test_the_same_seed_gives_the_same_pairs(digits: Dataset, pairs: PairDataset) -> None:
    assert (overlap_digits(digits, 7, "again").images == pairs.images).all()
    assert (overlap_digits(digits, 8, "other").images != pairs.images).any()


def test_a_subset_keeps_its_parts(pairs: PairDataset) -> None:
    chosen = pairs.subset([5, 3])
    assert isinstance(chosen, PairDataset)
    assert (chosen.parts == pairs.parts[[5, 3]]).all()
    assert (chosen.both_labels() == pairs.both_labels()[[5, 3]]).all()


def test_bad_pairs(digits: Dataset, pairs: PairDataset) -> None:
    with pytest.raises(DataError, match="at least two classes"):
        overlap_digits(digits.subset(np.flatnonzero(digits.labels == 1)), 0, "pairs")
    fields = ("x", pairs.images, pairs.labels, pairs.class_names)
    with pytest.raises(DataError, match="must be of different classes"):
        PairDataset(*fields, pairs.labels, pairs.parts)
    with pytest.raises(DataError, match="the parts have shape"):
        PairDataset(*fields, pairs.second_labels, pairs.parts[:, :1])


def test_mnist_pairs_overlap_as_published() -> None:
    from closecall.data import load_dataset

    pairs = load_dataset("multimnist", "test")
    assert isinstance(pairs, PairDataset)
    assert pairs.images.shape == (10_000, 1, 36, 36)
    assert (pairs.labels == load_dataset("mnist", "test").labels).all()
