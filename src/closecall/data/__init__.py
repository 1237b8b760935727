"""Labelled images: the built-in sets by name, and a user's own by path."""

from __future__ import annotations

from closecall.data.dataset import Dataset, Split
from closecall.data.loading import KNOWN_NAMES, load_dataset
from closecall.data.multimnist import PairDataset
from closecall.data.pictures import load_image

__all__ = ["KNOWN_NAMES", "Dataset", "PairDataset", "Split", "load_dataset", "load_image"]
