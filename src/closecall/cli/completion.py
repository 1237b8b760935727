"""What a shell offers to complete, known without importing anything heavy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import closecall

WEIGHTS = Path(closecall.__file__).parent / "models" / "weights"
DATASETS = ("digits", "mnist", "fashion", "cifar10", "multimnist", "mnist-affine")
SPLITS = ("test", "train")
TARGETS = ("any", "paper")
FORMS = ("tight", "paper")
PRESETS = ("paper",)
YARDSTICKS = ("paper", "gurobi", "highs", "norms", "cnn", "robust", "wide", "oval21", "pixels", "growth")
MODELS = ("dnn", "cnn", "cnn-baseline", "capsnet")

Complete = Callable[[str], list[str]]


def one_of(*names: str) -> Complete:
    """Complete to one of a few names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def complete_model(incomplete: str) -> list[str]:
    """The models of the zoo, and paths."""
    zoo = sorted(f"zoo:{path.stem}" for path in WEIGHTS.glob("*.json"))
    return [name for name in zoo if name.startswith(incomplete)] + paths(incomplete, ".onnx")


def complete_dataset(incomplete: str) -> list[str]:
    """The data sets that have a name, and paths."""
    return one_of(*DATASETS)(incomplete) + paths(incomplete, ".npz")


def paths(incomplete: str, suffix: str) -> list[str]:
    """Folders, and files with a suffix, that begin with what was typed."""
    folder, _, start = incomplete.rpartition("/")
    prefix = f"{folder}/" if "/" in incomplete else ""
    try:
        entries = sorted(Path(prefix or ".").iterdir())
    except OSError:
        return []
    found = []
    for entry in entries:
        hidden = entry.name.startswith(".") and not start.startswith(".")
        if entry.name.startswith(start) and not hidden and (entry.is_dir() or entry.suffix == suffix):
            found.append(f"{prefix}{entry.name}" + ("/" if entry.is_dir() else ""))
    return found
