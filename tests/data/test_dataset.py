from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closecall.data.dataset import Dataset, number_classes, split_indices
from closecall.errors import DataError


def three_images() -> Dataset:
    images = np.arange(3 * 1 * 2 * 4, dtype=np.uint8).reshape(3, 1, 2, 4) * 10
    return Dataset("tiny", images, np.array([1, 0, 1]), ("no", "yes"))


def test_sizes_are_those_of_the_arrays() -> None:
    dataset = three_images()
    assert dataset.input_shape == (1, 2, 4)
    assert dataset.classes == 2
    assert len(dataset) == 3


def test_an_image_is_its_bytes_divided_by_255() -> None:
    image = three_images().image(2)
    assert image.dtype == np.float32
    assert image.shape == (1, 2, 4)
    np.testing.assert_array_equal(image[0, 0], np.float32([160, 170, 180, 190]) / np.float32(255))
    white = Dataset("white", np.full((1, 1, 1, 1), 255, np.uint8), np.array([0]), ("a",))
    assert white.image(0).item() == 1.0


@pytest.mark.parametrize("index", [-1, 3, 1000])
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(DataError, match=rf"tiny has no image {index}: .*numbered 0 to 2"):
        three_images().image(index)


def test_a_subset_keeps_order_labels_and_classes() -> None:
    subset = three_images().subset([2, 0])
    assert subset.labels.tolist() == [1, 1]
    assert subset.images[:, 0, 0, 0].tolist() == [160, 0]
    assert subset.class_names == ("no", "yes")


@pytest.mark.parametrize("indices", [[], [3], [-1]])
def test_a_subset_out_of_range_is_refused(indices: list[int]) -> None:
    with pytest.raises(DataError, match="indices from 0 to 2"):
        three_images().subset(indices)


@pytest.mark.parametrize(
    ("images", "labels", "complaint"),
    [
        (np.zeros((1, 2, 2), np.uint8), np.array([0]), r"not uint8 of shape \(1, 2, 2\)"),
        (np.zeros((1, 1, 2, 2), np.float32), np.array([0]), "not float32"),
        (np.zeros((0, 1, 2, 2), np.uint8), np.zeros(0, np.int64), "no pixels"),
        (np.zeros((2, 1, 2, 2), np.uint8), np.array([0]), "2 images but 1 labels"),
        (np.zeros((1, 1, 2, 2), np.uint8), np.array([0.0]), "whole numbers, not float64"),
        (np.zeros((1, 1, 2, 2), np.uint8), np.array([[0]]), r"shape \(count,\), not \(1, 1\)"),
        (np.zeros((1, 1, 2, 2), np.uint8), np.array([-1]), "labels run from -1"),
        (np.zeros((1, 1, 2, 2), np.uint8), np.array([2]), "label 2 is out of range, the 2 classes"),
    ],
)
def test_what_is_not_a_data_set_is_refused(images: np.ndarray, labels: np.ndarray, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        Dataset("tiny", images, labels, ("no", "yes"))


def test_classes_are_numbered_up_to_the_largest_label_of_any_split() -> None:
    assert number_classes(np.array([0, 1]), np.array([3])) == ("0", "1", "2", "3")


@given(st.lists(st.integers(0, 4), min_size=1, max_size=80))
def test_a_split_is_a_partition_that_keeps_the_shares_of_the_classes(drawn: list[int]) -> None:
    labels = np.array(drawn, np.int64)
    train, test = split_indices(labels, "train"), split_indices(labels, "test")
    assert sorted([*train, *test]) == list(range(len(labels)))
    for label in range(5):
        assert abs(np.sum(labels[test] == label) - np.sum(labels == label) / 5) < 1


def test_the_split_never_changes() -> None:
    assert split_indices(np.arange(20) // 10, "test").tolist() == [6, 8, 12, 15]
