from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from closecall.data import load_dataset
from closecall.data.idx import parse_idx
from closecall.errors import DataError

ToIdx = Callable[[np.ndarray], bytes]


@pytest.fixture
def folder(tmp_path: Path, to_idx: ToIdx) -> Path:
    """Five training images in plain files, two test images in compressed ones."""
    images = np.random.default_rng(0).integers(0, 256, (7, 4, 3), dtype=np.uint8)
    labels = np.array([0, 1, 2, 0, 1, 3, 0], np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(to_idx(images[:5]))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(to_idx(labels[:5]))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(to_idx(images[5:])))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(to_idx(labels[5:])))
    return tmp_path


def test_both_splits_are_read_plain_and_compressed(folder: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (7, 4, 3), dtype=np.uint8)
    train, test = load_dataset(str(folder)), load_dataset(str(folder), "test")
    np.testing.assert_array_equal(train.images, images[:5, np.newaxis])
    np.testing.assert_array_equal(test.images, images[5:, np.newaxis])
    assert train.labels.tolist() == [0, 1, 2, 0, 1]
    assert test.labels.tolist() == [3, 0]
    assert train.input_shape == (1, 4, 3)


def test_both_splits_have_the_same_classes(folder: Path) -> None:
    assert (
        load_dataset(str(folder)).class_names
        == load_dataset(str(folder), "test").class_names
        == ("0", "1", "2", "3")
    )


def test_images_can_be_written_to(folder: Path) -> None:
    """torch.from_numpy warns about arrays that cannot."""
    assert load_dataset(str(folder)).images.flags.writeable


def test_a_truncated_file_is_refused(folder: Path) -> None:
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"images is cut short: it holds 75 bytes, .* promises 76"):
        load_dataset(str(folder))


def test_a_truncated_compressed_file_is_refused(folder: Path) -> None:
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte.gz cannot be read"):
        load_dataset(str(folder), "test")


def test_what_is_not_compressed_is_refused_under_a_compressed_name(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"plain")
    with pytest.raises(DataError, match="cannot be read"):
        load_dataset(str(folder), "test")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "too few for an idx header"),
        (b"\0\0\x08", "too few for an idx header"),
        (b"\0\0\x08\x03\0\0\0\1", "too few for an idx header"),
        (b"PK\3\4" + bytes(20), "starts with 504b0304, expected 00000803"),
        (b"\0\0\x0d\x03" + bytes(12), "starts with 00000d03"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "cut short"),
        (b"\0\0\x08\x03" + bytes(13), "too long"),
    ],
)
def test_bad_headers_are_refused(content: bytes, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        parse_idx(content, 3, "file")


def test_images_and_labels_must_be_as_many(folder: Path, to_idx: ToIdx) -> None:
    (folder / "train-labels-idx1-ubyte").write_bytes(to_idx(np.zeros(4, np.uint8)))
    with pytest.raises(DataError, match="5 images but 4 labels"):
        load_dataset(str(folder))


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"no file t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz"):
        load_dataset(str(folder), "test")


def test_a_set_without_images_is_refused(folder: Path, to_idx: ToIdx) -> None:
    (folder / "train-images-idx3-ubyte").write_bytes(to_idx(np.zeros((0, 4, 3), np.uint8)))
    (folder / "train-labels-idx1-ubyte").write_bytes(to_idx(np.zeros(0, np.uint8)))
    with pytest.raises(DataError, match="no images"):
        load_dataset(str(folder))
