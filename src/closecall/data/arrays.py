"""Data sets as arrays: .npz files."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.data.dataset import Dataset, Split, check_labels, number_classes, split_indices
from closecall.errors import DataError

_WHOLE = ("images", "labels")
_SPLIT_KEYS: dict[Split, tuple[str, str]] = {"train": ("x_train", "y_train"), "test": ("x_test", "y_test")}


def load_npz(path: Path, split: Split, name: str) -> Dataset:
    """Read an .npz with `images` and `labels`, or with `x_train`, `y_train`, `x_test` and `y_test`.

    Images are bytes, or floats in [0, 1] that are rounded to 8 bits, of shape (N, height, width),
    (N, channels, height, width) or (N, height, width, channels) with 1 or 3 channels. `images` and
    `labels` are split 80 to 20 in a fixed way.
    """
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(
                    f"{path} holds a single array, not an .npz archive; write it with numpy.savez."
                )
            return _load_archive(archive, split, name)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not an .npz file that can be read; write it with numpy.savez.") from error


def _load_archive(archive: np.lib.npyio.NpzFile, split: Split, name: str) -> Dataset:
    if set(_WHOLE) <= set(archive.files):
        images, labels = _read_pair(archive, _WHOLE, name)
        chosen = split_indices(labels, split)
        if chosen.size == 0:
            raise DataError(f"{name} has too few images to set some apart for its {split} split.")
        return Dataset(name, images[chosen], labels[chosen], number_classes(labels))
    keys = _SPLIT_KEYS[split]
    if not set(keys) <= set(archive.files):
        raise DataError(
            f"{name} has the arrays {', '.join(archive.files) or '(none)'}, expected images and labels, "
            f"or {keys[0]} and {keys[1]}."
        )
    images, labels = _read_pair(archive, keys, name)
    return Dataset(name, images, labels, number_classes(labels, *_other_labels(archive, split, name)))


def check_unit_interval(values: NDArray[Any], where: str) -> None:
    """Refuse pixels that are not floats in [0, 1]."""
    if not np.issubdtype(values.dtype, np.floating):
        raise DataError(f"{where}: pixels must be uint8, or floats in [0, 1], not {values.dtype}.")
    lowest, highest = values.min(initial=0), values.max(initial=0)
    if np.isnan(lowest) or np.isnan(highest):
        raise DataError(f"{where}: a pixel is NaN (not a number); pixels must be in [0, 1].")
    if lowest < 0 or highest > 1:
        raise DataError(
            f"{where}: pixels run from {lowest:g} to {highest:g}, floats must be in [0, 1]; "
            "divide by 255 or give uint8."
        )


def _read_pair(
    archive: np.lib.npyio.NpzFile, keys: tuple[str, str], name: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images = _to_bytes(
        _channels_first(_read(archive, keys[0], name), f"{name} {keys[0]}"), f"{name} {keys[0]}"
    )
    labels = _read(archive, keys[1], name)
    check_labels(labels, len(images), f"{name} {keys[1]}")
    return images, labels.astype(np.int64)


def _other_labels(archive: np.lib.npyio.NpzFile, split: Split, name: str) -> list[NDArray[Any]]:
    """The labels of the other split, so that both splits have the same classes."""
    key = _SPLIT_KEYS["test" if split == "train" else "train"][1]
    if key not in archive.files:
        return []
    labels = _read(archive, key, name)
    check_labels(labels, len(labels), f"{name} {key}")
    return [labels]


def _read(archive: np.lib.npyio.NpzFile, key: str, name: str) -> NDArray[Any]:
    try:
        values: NDArray[Any] = archive[key]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{name}: the array {key} cannot be read; only plain numbers are, never pickled objects, "
            "and the file must be whole."
        ) from error
    return values


def _channels_first(images: NDArray[Any], where: str) -> NDArray[Any]:
    """(N, H, W), (N, H, W, C) or (N, C, H, W) to the last; C is 1 or 3 and the only axis that could be."""
    if images.ndim == 3:
        return images[:, np.newaxis]
    if images.ndim == 4:
        first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
        if first and not last:
            return images
        if last and not first:
            return images.transpose(0, 3, 1, 2)
    raise DataError(
        f"{where} has shape {images.shape}, expected (N, height, width), (N, channels, height, width) or "
        "(N, height, width, channels) where just one axis can be the 1 or 3 channels."
    )


def _to_bytes(images: NDArray[Any], where: str) -> NDArray[np.uint8]:
    if images.dtype != np.uint8:
        check_unit_interval(images, where)
        images = np.round(images.astype(np.float64) * 255).astype(np.uint8)
    return np.ascontiguousarray(images)
