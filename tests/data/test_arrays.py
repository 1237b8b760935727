from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from closecall.data import load_dataset
from closecall.errors import DataError

GREY = np.random.default_rng(1).integers(0, 256, (10, 4, 5), dtype=np.uint8)
LABELS = np.arange(10) % 3


def write(folder: Path, **arrays: object) -> str:
    np.savez(folder / "own.npz", **arrays)  # type: ignore[arg-type]
    return str(folder / "own.npz")


def test_images_and_labels_are_split_four_to_one(tmp_path: Path) -> None:
    path = write(tmp_path, images=GREY, labels=LABELS)
    train, test = load_dataset(path), load_dataset(path, "test")
    assert (len(train), len(test)) == (8, 2)
    assert train.class_names == test.class_names == ("0", "1", "2")
    both = np.concatenate([train.images, test.images])[:, 0]
    order = [int(np.flatnonzero((image == GREY).all(axis=(1, 2)))[0]) for image in both]
    assert sorted(order) == list(range(10))
    assert [*train.labels, *test.labels] == [LABELS[index] for index in order]


def test_given_splits_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, x_train=GREY[:7], y_train=LABELS[:7], x_test=GREY[7:], y_test=[4, 0, 0])
    np.testing.assert_array_equal(load_dataset(path).images[:, 0], GREY[:7])
    np.testing.assert_array_equal(load_dataset(path, "test").images[:, 0], GREY[7:])
    assert load_dataset(path).classes == load_dataset(path, "test").classes == 5


def test_floats_are_rounded_to_8_bits(tmp_path: Path) -> None:
    values = np.array([0, 0.001, 0.5, 1 / 255 + 1e-9, 1]).reshape(1, 1, 5)
    path = write(tmp_path, x_train=values.astype(np.float32), y_train=[0])
    assert load_dataset(path).images.ravel().tolist() == [0, 0, 128, 1, 255]


def test_every_byte_survives_as_a_float(tmp_path: Path) -> None:
    values = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    path = write(tmp_path, x_train=values.astype(np.float32) / 255, y_train=[0])
    np.testing.assert_array_equal(load_dataset(path).images[0], values)


@pytest.mark.parametrize(
    ("shape", "input_shape"),
    [
        ((2, 4, 5), (1, 4, 5)),
        ((2, 3, 4, 5), (3, 4, 5)),
        ((2, 1, 4, 5), (1, 4, 5)),
        ((2, 4, 5, 3), (3, 4, 5)),
        ((2, 4, 5, 1), (1, 4, 5)),
    ],
)
def test_the_channel_axis_is_found(
    tmp_path: Path, shape: tuple[int, ...], input_shape: tuple[int, ...]
) -> None:
    path = write(tmp_path, x_train=np.zeros(shape, np.uint8), y_train=[0, 1])
    assert load_dataset(path).input_shape == input_shape


def test_channels_last_are_moved_and_not_reshaped(tmp_path: Path) -> None:
    images = np.random.default_rng(2).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)
    loaded = load_dataset(write(tmp_path, x_train=images, y_train=[0, 1])).images
    assert loaded[1, 2, 3, 4] == images[1, 3, 4, 2]
    assert loaded.flags.c_contiguous


@pytest.mark.parametrize("shape", [(2, 20), (2, 3, 4, 3), (2, 1, 4, 1), (2, 2, 4, 5), (2, 1, 3, 4, 5)])
def test_other_shapes_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="just one axis can be the 1 or 3 channels"):
        load_dataset(write(tmp_path, x_train=np.zeros(shape, np.uint8), y_train=[0, 1]))


@pytest.mark.parametrize(
    ("pixel", "complaint"),
    [
        (np.float32("nan"), "a pixel is NaN"),
        (np.float32(1.5), r"pixels run from 0 to 1\.5"),
        (np.float32("inf"), "pixels run from 0 to inf"),
        (np.float32(-0.1), r"pixels run from -0\.1 to 0"),
        (np.int64(7), "not int64"),
    ],
)
def test_pixels_out_of_range_are_refused(tmp_path: Path, pixel: np.generic, complaint: str) -> None:
    images = np.zeros((1, 2, 2), pixel.dtype)
    images[0, 1, 1] = pixel
    with pytest.raises(DataError, match=complaint):
        load_dataset(write(tmp_path, x_train=images, y_train=[0]))


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ([0.0, 1.0], "whole numbers, not float64"),
        ([0, -1], "labels run from -1 to 0"),
        ([0, 10**9], "at most 999"),
        ([0, 1, 2], "2 images but 3 labels"),
        ([[0], [1]], r"not \(2, 1\)"),
        (["a", "b"], "whole numbers"),
    ],
)
def test_bad_labels_are_refused(tmp_path: Path, labels: list[object], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        load_dataset(write(tmp_path, x_train=GREY[:2], y_train=labels))


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="never pickled objects"):
        load_dataset(write(tmp_path, images=np.array([{"a": 1}, None]), labels=[0, 1]))


def test_missing_arrays_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has the arrays images, x, expected images and labels, or x_train"):
        load_dataset(write(tmp_path, images=GREY, x=LABELS))


def test_a_missing_split_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="or x_test and y_test"):
        load_dataset(write(tmp_path, x_train=GREY, y_train=LABELS), "test")


def test_a_single_image_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"too few images .* test split"):
        load_dataset(write(tmp_path, images=GREY[:1], labels=LABELS[:1]), "test")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\3\4 damaged"])
def test_what_is_not_an_npz_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "own.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"not an .npz file that can be read"):
        load_dataset(str(tmp_path / "own.npz"))


def test_a_truncated_npz_is_refused(tmp_path: Path) -> None:
    path = Path(write(tmp_path, images=GREY, labels=LABELS))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"not an .npz file that can be read"):
        load_dataset(str(path))


def test_a_single_array_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "own.npz").open("wb") as file:
        np.save(file, GREY)
    with pytest.raises(DataError, match="holds a single array"):
        load_dataset(str(tmp_path / "own.npz"))
