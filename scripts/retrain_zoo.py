"""Train the models of the zoo again: `python scripts/retrain_zoo.py [--only NAME]…`.

Every seed of a model is trained into runs/zoo/NAME-SEED (finished ones are kept, interrupted ones resumed);
the one that is best on the held-out images goes into the package. The test images choose nothing.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from closecall import models
from closecall.files import write_whole
from closecall.models.store import description_bytes, weights_bytes
from closecall.models.zoo import WEIGHTS
from closecall.train import TrainingPlan, train_into

RUNS = Path("runs/zoo")
KEPT = (
    "dataset",
    "accuracy",
    "proven",
    "validation_accuracy",
    "validation_proven",
    "best_epoch",
    "recipe",
    "pruning",
)


@dataclass(frozen=True)
class Recipe:
    """An architecture, how it is trained, and the seeds to choose from."""

    kind: str
    config: dict[str, Any]
    plan: TrainingPlan
    seeds: tuple[int, ...] = field(default=(0,))
    dataset: str = "mnist"


NARROW = TrainingPlan(epochs=30, batch=256, learning_rate=4e-3, schedule="cosine", threads=1)
WIDE = replace(NARROW, epochs=20)
CONVOLUTIONAL = TrainingPlan(
    epochs=30, batch=256, learning_rate=8e-3, schedule="cosine", weight_decay=0.01, shift=1, threads=1
)
PAPER = replace(CONVOLUTIONAL, epochs=20)
STABLE = TrainingPlan(
    epochs=40,
    batch=256,
    learning_rate=4e-3,
    schedule="cosine",
    shift=1,
    threads=1,
    stable=0.5,
    stable_radius=0.1,
    l1=3e-5,
)
CERTIFIED = TrainingPlan(epochs=30, learning_rate=1e-3, schedule="cosine", threads=1, certified=0.1)
CERTIFIED_CIFAR = replace(CERTIFIED, epochs=40, shift=1, certified=2 / 255)
ROBUST = TrainingPlan(
    epochs=20,
    learning_rate=2e-3,
    schedule="cosine",
    threads=1,
    adversarial=0.08,
    stable=35,
    stable_radius=0.19,
    l1=4.5e-5,
)
TWO_STRIDES = {"blocks": ["16x4s2p1/0", "32x4s2p1/0"], "hidden": [100]}
CAPSULES = TrainingPlan(epochs=16, learning_rate=3e-3, schedule="cosine", shift=2, threads=1)
PAIRS = replace(CAPSULES, epochs=20)
WIDER_CAPSULES = {"preset": "small", "convolutions": ["32x5s2", "64x3"]}

RECIPES = {
    "mnist-dnn1": Recipe("dnn", {"sizes": [8] * 3}, NARROW, (0, 1, 2, 3)),
    "mnist-dnn2": Recipe("dnn", {"sizes": [8] * 6}, NARROW, (0, 1, 2, 3)),
    "mnist-dnn3": Recipe("dnn", {"sizes": [20, 10, 8, 8]}, NARROW, (0, 1)),
    "mnist-dnn4": Recipe("dnn", {"sizes": [20, 10, 8, 8, 8]}, NARROW, (0, 1)),
    "mnist-dnn5": Recipe("dnn", {"sizes": [20, 20, 10, 10, 10]}, NARROW, (0, 1)),
    "mnist-50x2": Recipe("dnn", {"sizes": [50, 50]}, WIDE),
    "mnist-cnn": Recipe("cnn", {"blocks": ["8x10s2/2", "48x4/2"], "hidden": [64]}, CONVOLUTIONAL),
    "mnist-cnn-paper": Recipe(
        "cnn", {"blocks": ["4x6s2/2", "4x3/2"], "hidden": [32], "convolution": "paper"}, PAPER
    ),
    "mnist-cnn-stable": Recipe("cnn", {"blocks": ["20x8s4/0"], "hidden": [24]}, STABLE),
    "mnist-cnn-certified": Recipe("cnn", TWO_STRIDES, CERTIFIED),
    "mnist-cnn-robust": Recipe("cnn", TWO_STRIDES, ROBUST),
    "cifar-cnn-robust": Recipe("cnn", TWO_STRIDES, CERTIFIED_CIFAR, dataset="cifar10"),
    "mnist-caps": Recipe("capsnet", {"preset": "small"}, CAPSULES),
    "multimnist-caps": Recipe("capsnet", WIDER_CAPSULES, PAIRS, dataset="multimnist"),
}


def train_seed(name: str, recipe: Recipe, seed: int, console: Console) -> Path:
    """Train one seed of a model, or continue it, unless it is finished; give its folder."""
    folder = RUNS / f"{name}-{seed}"
    if not (folder / "curves.png").exists():
        console.print(f"{name}, seed {seed}")
        plan = replace(recipe.plan, seed=seed)
        resume = (folder / "checkpoint.safetensors").exists()
        train_into(folder, recipe.kind, recipe.config, recipe.dataset, plan, resume=resume, console=console)
    return folder


def install(name: str, folder: Path) -> dict[str, Any]:
    """Put a trained model into the package."""
    model, described = models.load_model(folder), models.describe(folder)
    metadata = {key: described[key] for key in KEPT if key in described}
    write_whole(WEIGHTS / f"{name}.safetensors", weights_bytes(model))
    write_whole(WEIGHTS / f"{name}.json", description_bytes(model, metadata))
    return described


def held_out_share(folder: Path) -> float:
    """Give what the seeds are compared by: held-out images that are right, or proven if that is the aim."""
    described = json.loads((folder / "model.json").read_text())
    return float(described.get("validation_proven", described["validation_accuracy"]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the models of the zoo again.")
    parser.add_argument("--only", action="append", choices=list(RECIPES), help="one model; may be repeated")
    names = parser.parse_args().only or list(RECIPES)
    console = Console()
    for name in names:
        recipe = RECIPES[name]
        folders = [train_seed(name, recipe, seed, console) for seed in recipe.seeds]
        described = install(name, max(folders, key=held_out_share))
        console.print(
            f"{name}: seed {described['recipe']['seed']}, {described['validation_accuracy']:.2%} held out, "
            f"{described['accuracy']:.2%} on the test images, {described['units']} units"
        )


if __name__ == "__main__":
    main()
