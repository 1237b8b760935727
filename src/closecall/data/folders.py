"""Folders of pictures with one sub-folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from closecall.data.dataset import MOST_CLASSES, Dataset, Split, split_indices
from closecall.data.pictures import PICTURE_SUFFIXES, picture_header, read_picture
from closecall.errors import DataError

_Labelled = list[tuple[Path, int]]


def load_picture_folder(folder: Path, split: Split, name: str) -> Dataset:
    """Read `<class>/<picture>`, or `train/<class>/<picture>` and `test/<class>/<picture>`.

    Classes are numbered in the order of their names. Without train and test folders the pictures are
    split 80 to 20 in a fixed way. Pictures are PNG or JPEG, all of one size; if any has colour, all are
    read as RGB.
    """
    has_splits = all((folder / part).is_dir() for part in ("train", "test"))
    parts = [folder / "train", folder / "test"] if has_splits else [folder]
    class_names = sorted({path.name for part in parts for path in _sub_folders(part)})
    if not class_names:
        raise DataError(
            f"{folder} is empty or has no sub-folders; "
            "expected idx files, or one sub-folder of pictures per class."
        )
    if len(class_names) > MOST_CLASSES:
        raise DataError(f"{folder} has {len(class_names)} class folders, at most {MOST_CLASSES} can be used.")
    pictures = [picture for part in parts for picture in _pictures(part, class_names)]
    if not pictures:
        raise DataError(f"{folder} has no .png, .jpg or .jpeg files in its class folders.")
    channels = _common_channels([path for path, _ in pictures])
    chosen = _pictures(folder / split, class_names) if has_splits else _choose(pictures, split)
    if not chosen:
        raise DataError(f"{folder} has too few pictures: none are left for its {split} split.")
    images = np.stack([read_picture(path, channels) for path, _ in chosen])
    return Dataset(name, images, np.array([label for _, label in chosen], np.int64), tuple(class_names))


def _sub_folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


def _pictures(folder: Path, class_names: list[str]) -> _Labelled:
    return [
        (path, label)
        for label, class_name in enumerate(class_names)
        if (folder / class_name).is_dir()
        for path in sorted((folder / class_name).iterdir())
        if path.suffix.lower() in PICTURE_SUFFIXES and not path.name.startswith(".")
    ]


def _choose(pictures: _Labelled, split: Split) -> _Labelled:
    labels = np.array([label for _, label in pictures], np.int64)
    return [pictures[index] for index in split_indices(labels, split)]


def _common_channels(paths: list[Path]) -> int:
    """The channels that hold every picture, once all are known to have the size of the first."""
    headers = [picture_header(path) for path in paths]
    expected = headers[0][1]
    for path, (_, size) in zip(paths, headers, strict=True):
        if size != expected:
            raise DataError(
                f"{path} is {size[0]}x{size[1]} pixels but {paths[0]} is {expected[0]}x{expected[1]}; "
                "all pictures of a data set must have one size."
            )
    return max(channels for channels, _ in headers)
