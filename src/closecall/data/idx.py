"""The idx format of MNIST: a magic number, the sizes in big-endian, then the bytes."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closecall.data.dataset import Dataset, Split, check_labels, number_classes
from closecall.errors import DataError

_UNSIGNED_BYTE = 0x08
_PREFIX: dict[Split, str] = {"train": "train", "test": "t10k"}
_SUFFIXES = ("", ".gz")


def parse_idx(content: bytes | bytearray, dimensions: int, where: str) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx file, refused unless its length is exactly what it declares."""
    header = 4 + 4 * dimensions
    magic = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if len(content) >= 4 and content[:4] != magic:
        raise DataError(
            f"{where} is not an idx file of unsigned bytes in {dimensions} dimensions: "
            f"it starts with {content[:4].hex()}, expected {magic.hex()}."
        )
    if len(content) < header:
        raise DataError(f"{where} is cut short: {len(content)} bytes are too few for an idx header.")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = header + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        state = "is cut short" if len(content) < expected else "is too long"
        raise DataError(
            f"{where} {state}: it holds {len(content)} bytes, its header {shape} promises {expected}; "
            "fetch the file again."
        )
    return np.frombuffer(bytearray(content), dtype=np.uint8, offset=header).reshape(shape)


def parse_pair(
    images: bytes | bytearray, labels: bytes | bytearray, where: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (N, 1, height, width) and their labels (N,) from the two idx files of a split."""
    pictures = parse_idx(images, 3, f"{where} images")[:, np.newaxis]
    numbers = parse_idx(labels, 1, f"{where} labels").astype(np.int64)
    check_labels(numbers, len(pictures), where)
    return pictures, numbers


def holds_idx_files(folder: Path) -> bool:
    """Whether `folder` has the images file of at least one split."""
    return any(_find(folder, split, "images") for split in _PREFIX)


def load_idx_folder(folder: Path, split: Split, name: str) -> Dataset:
    """Read train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-… (each plain or .gz) from `folder`."""
    images = parse_idx(_read(folder, split, "images"), 3, f"{name} {split} images")[:, np.newaxis]
    labels = _labels(folder, split, name)
    check_labels(labels, len(images), f"{name} {split}")
    known = [_labels(folder, other, name) for other in _PREFIX if _find(folder, other, "labels")]
    return Dataset(name, images, labels, number_classes(*(part for part in known if part.size)))


def _labels(folder: Path, split: Split, name: str) -> NDArray[np.int64]:
    return parse_idx(_read(folder, split, "labels"), 1, f"{name} {split} labels").astype(np.int64)


def _file_name(split: Split, kind: str) -> str:
    return f"{_PREFIX[split]}-{kind}-idx{3 if kind == 'images' else 1}-ubyte"


def _find(folder: Path, split: Split, kind: str) -> Path | None:
    candidates = (folder / (_file_name(split, kind) + suffix) for suffix in _SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def _read(folder: Path, split: Split, kind: str) -> bytes:
    path = _find(folder, split, kind)
    if path is None:
        raise DataError(
            f"{folder} has no file {_file_name(split, kind)} or {_file_name(split, kind)}.gz, "
            f"needed for the {split} images."
        )
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); fetch the file again.") from error
