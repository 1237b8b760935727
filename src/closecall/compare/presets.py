"""How much is trained and measured: `quick` for a minute on small images, `full` for an hour on MNIST."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from closecall.errors import InputError
from closecall.train import TrainingPlan

KINDS = ("dnn", "cnn", "cnn-baseline", "capsnet")
SMALL_SIDE = 20  # images of a smaller side get smaller networks
BASELINE_KERNELS, BASELINE_HIDDEN = (256, 256, 128), (328, 192)  # the paper's


@dataclass(frozen=True)
class Preset:
    """All that a preset decides; `None` is all there are."""

    name: str
    seeds: int
    train_images: int | None
    epochs: dict[str, int]
    images: int  # whose distances are asked for
    gallery: int  # of these are kept as pictures
    time_limit: float  # seconds for a distance
    milp_images: int
    milp_time_limit: float
    moved_images: int  # test images that are moved, and on which few-image training is tested
    few_counts: tuple[int, ...]
    few_steps: dict[str, int]
    overlapping_pairs: tuple[int, int]  # to train on, to test on
    overlapping_epochs: int
    sizes: dict[str, dict[str, Any]]  # an architecture for each kind
    dnn_ladder: tuple[int, ...]  # widths of two layers
    cnn_ladder: tuple[int, ...]  # kernels of one block

    @property
    def narrow_baseline(self) -> bool:
        config = self.sizes["cnn-baseline"]
        return (tuple(config["kernels"]), tuple(config["hidden"])) != (BASELINE_KERNELS, BASELINE_HIDDEN)


@dataclass(frozen=True)
class Recipes:
    """How each kind of network is trained on images of this size."""

    batch: int
    learning_rates: dict[str, float]
    weight_decay: float = 0.01

    def plan(self, kind: str, epochs: int, seed: int, threads: int) -> TrainingPlan:
        """The plan of one training; no image is moved or changed, for any model."""
        return TrainingPlan(
            epochs=epochs,
            batch=self.batch,
            learning_rate=self.learning_rates[kind],
            schedule="cosine",
            weight_decay=self.weight_decay,
            seed=seed,
            threads=threads,
        )


def is_small(input_shape: tuple[int, int, int]) -> bool:
    return min(input_shape[1:]) < SMALL_SIDE


def recipes_for(input_shape: tuple[int, int, int]) -> Recipes:
    """Small images come in small numbers, so that larger steps are taken."""
    if is_small(input_shape):
        return Recipes(64, {"dnn": 1e-2, "cnn": 1e-2, "cnn-baseline": 5e-3, "capsnet": 4e-3})
    return Recipes(128, {"dnn": 4e-3, "cnn": 4e-3, "cnn-baseline": 1e-3, "capsnet": 3e-3})


def cnn_config(kernels: int, hidden: int, *, small: bool) -> dict[str, Any]:
    """One block with pooling and one dense layer; the windows leave few units on images of this size."""
    windows = "4s2p1/2" if small else "8s4/2"
    return {"blocks": [f"{kernels}x{windows}"], "hidden": [hidden], "strict": False}


def baseline_config(kernel_share: int, hidden_share: int) -> dict[str, Any]:
    """The paper's baseline with so many times fewer kernels and dense units."""
    return {
        "kernels": [count // kernel_share for count in BASELINE_KERNELS],
        "hidden": [count // hidden_share for count in BASELINE_HIDDEN],
    }


def preset_named(name: str, input_shape: tuple[int, int, int]) -> Preset:
    """A preset, cut to the size of the images."""
    if name not in PRESETS:
        raise InputError(f"There is no preset {name!r}: choose {' or '.join(PRESETS)}.")
    return PRESETS[name][0 if is_small(input_shape) else 1]


_CAPSNET = {"preset": "small"}
_QUICK_SMALL = Preset(
    name="quick",
    seeds=2,
    train_images=None,
    epochs={"dnn": 30, "cnn": 40, "cnn-baseline": 6, "capsnet": 6},
    images=4,
    gallery=4,
    time_limit=1.0,
    milp_images=3,
    milp_time_limit=1.0,
    moved_images=360,
    few_counts=(1, 3, 10, 30, 100),
    few_steps={"dnn": 200, "cnn": 200, "cnn-baseline": 50, "capsnet": 30},
    overlapping_pairs=(0, 0),
    overlapping_epochs=0,
    sizes={
        "dnn": {"sizes": [16, 16]},
        "cnn": cnn_config(8, 16, small=True),
        "cnn-baseline": baseline_config(32, 4),
        "capsnet": _CAPSNET,
    },
    dnn_ladder=(6, 10),
    cnn_ladder=(2, 4),
)
_QUICK_LARGE = replace(
    _QUICK_SMALL,
    train_images=6000,
    epochs={"dnn": 20, "cnn": 20, "cnn-baseline": 3, "capsnet": 3},
    time_limit=5.0,
    milp_time_limit=5.0,
    moved_images=500,
    overlapping_pairs=(6000, 500),
    overlapping_epochs=4,
    sizes={
        "dnn": {"sizes": [24, 24]},
        "cnn": cnn_config(8, 10, small=False),
        "cnn-baseline": baseline_config(32, 4),
        "capsnet": _CAPSNET,
    },
    dnn_ladder=(8, 16),
    cnn_ladder=(2, 4),
)
_FULL_SMALL = replace(
    _QUICK_SMALL,
    name="full",
    seeds=3,
    epochs={"dnn": 60, "cnn": 60, "cnn-baseline": 20, "capsnet": 20},
    images=30,
    gallery=10,
    time_limit=20.0,
    milp_images=8,
    milp_time_limit=20.0,
    few_steps={"dnn": 300, "cnn": 300, "cnn-baseline": 300, "capsnet": 300},
    sizes={
        "dnn": {"sizes": [24, 24]},
        "cnn": cnn_config(12, 20, small=True),
        "cnn-baseline": baseline_config(4, 1),
        "capsnet": _CAPSNET,
    },
    dnn_ladder=(6, 8, 10, 12),
    cnn_ladder=(2, 3, 4),
)
_FULL_LARGE = replace(
    _FULL_SMALL,
    epochs={"dnn": 12, "cnn": 12, "cnn-baseline": 3, "capsnet": 6},
    images=16,
    time_limit=20.0,
    milp_images=6,
    milp_time_limit=30.0,
    moved_images=2000,
    few_steps={"dnn": 300, "cnn": 300, "cnn-baseline": 150, "capsnet": 300},
    overlapping_pairs=(30_000, 5000),
    overlapping_epochs=3,
    sizes={
        "dnn": {"sizes": [50, 50]},
        "cnn": cnn_config(16, 32, small=False),
        "cnn-baseline": baseline_config(16, 1),
        "capsnet": _CAPSNET,
    },
    dnn_ladder=(6, 8, 12, 16),
    cnn_ladder=(2, 3, 4),
)
PRESETS = {"quick": (_QUICK_SMALL, _QUICK_LARGE), "full": (_FULL_SMALL, _FULL_LARGE)}
