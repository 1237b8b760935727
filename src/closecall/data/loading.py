"""From a name or a path to a data set."""

from __future__ import annotations

from pathlib import Path

from closecall.data.affine import load_mnist_affine
from closecall.data.arrays import load_npz
from closecall.data.dataset import Dataset, Split
from closecall.data.digits import load_digits
from closecall.data.folders import load_picture_folder
from closecall.data.idx import holds_idx_files, load_idx_folder
from closecall.data.multimnist import load_multimnist
from closecall.data.published import PUBLISHED
from closecall.errors import DataError

GENERATED = {"multimnist": load_multimnist, "mnist-affine": load_mnist_affine}
KNOWN_NAMES = ("digits", *PUBLISHED, *GENERATED)


def load_dataset(name: str, split: Split = "train") -> Dataset:
    """Load a data set by name (`digits`, `mnist`, `fashion`, `cifar10`, `multimnist`, …) or by path.

    A path is a folder of idx files, a folder of pictures with one sub-folder per class, or an .npz file.
    A name goes before a path: write ./mnist for a folder of that name. Only the published sets use the
    network, and only the first time.
    """
    if split not in ("train", "test"):
        raise DataError(f"a data set has the splits train and test, not {split!r}.")
    if name == "digits":
        return load_digits(split)
    if name in GENERATED:
        return GENERATED[name](split)
    if name in PUBLISHED:
        return PUBLISHED[name].load(split)
    path = Path(name).expanduser()
    if path.is_dir():
        reader = load_idx_folder if holds_idx_files(path) else load_picture_folder
        return reader(path, split, name)
    if path.is_file() and path.suffix.lower() == ".npz":
        return load_npz(path, split, name)
    problem = "is a file but not an .npz" if path.exists() else "is neither a known data set nor a path"
    raise DataError(
        f"{name!r} {problem}: the known names are {', '.join(KNOWN_NAMES)}, and a path to a folder of idx "
        "files, to a folder with one sub-folder of pictures per class, or to an .npz file is also fine."
    )
