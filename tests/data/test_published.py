from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from closecall.data import load_dataset
from closecall.data.published import FASHION, MNIST, PUBLISHED
from closecall.errors import DataError


def test_mnist_is_mnist() -> None:
    """Fetched for real the first time, into the cache that everything else uses."""
    train, test = load_dataset("mnist"), load_dataset("mnist", "test")
    assert (len(train), len(test)) == (60_000, 10_000)
    assert train.input_shape == test.input_shape == (1, 28, 28)
    assert np.bincount(train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert train.images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    assert train.images.std() / 255 == pytest.approx(0.3081, abs=5e-5)
    assert test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


def test_each_set_names_its_classes_and_sources() -> None:
    for published in PUBLISHED.values():
        assert len(set(published.class_names)) == 10
        names = [source.name for source in published.sources]
        assert len(names) >= 2
        assert all(name.startswith(("https://", "npm package", "Debian package")) for name in names)
    hashes = [file.sha256 for published in PUBLISHED.values() for file in (*published.train, *published.test)]
    assert len(set(hashes)) == len(hashes) == 14


def test_fashion_never_takes_mnist_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files have the same names and sizes: only their content tells them apart."""
    load_dataset("mnist", "test")
    from closecall.data.cache import cache_folder

    mnist = cache_folder() / "mnist"
    (tmp_path / "fashion").mkdir()
    for file in (*MNIST.train, *MNIST.test):
        (tmp_path / "fashion" / file.name).symlink_to(mnist / file.name)
    monkeypatch.setenv("CLOSECALL_DATA", str(tmp_path))
    without_sources = type(FASHION)(**{**vars(FASHION), "sources": ()})
    with pytest.raises(DataError, match="fashion could not be fetched"):
        without_sources.load("test")


def test_the_files_of_one_split_are_enough_for_that_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_dataset("mnist", "test")
    from closecall.data.cache import cache_folder

    mnist = cache_folder() / "mnist"
    (tmp_path / "mnist").mkdir()
    for file in MNIST.test:
        (tmp_path / "mnist" / file.name).symlink_to(mnist / file.name)
    monkeypatch.setenv("CLOSECALL_DATA", str(tmp_path))
    without_sources = type(MNIST)(**{**vars(MNIST), "sources": ()})
    assert len(without_sources.load("test")) == 10_000
    with pytest.raises(DataError, match="train-images-idx3-ubyte"):
        without_sources.load("train")


def test_importing_data_imports_nothing_heavy() -> None:
    program = "import json, sys, closecall.data; print(json.dumps([*sys.modules]))"
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    )
    assert not {"torch", "scipy", "sklearn", "matplotlib", "rich"} & set(loaded)
