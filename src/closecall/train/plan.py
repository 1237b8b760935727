"""What a training run does, and the losses and optimisers it can choose from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from closecall.errors import InputError
from closecall.models.capsules.losses import presence
from closecall.train.stability import DEFAULT_L1, DEFAULT_RADIUS, check_stable, l1_size, stability_penalty

# (model, images, labels, parts if there are any) -> (loss, scores)
LossFunction = Callable[..., tuple[Tensor, Tensor]]

SEED_LIMIT = 2**40
EPOCH_LIMIT = 2**20


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that decides the weights a model ends with, beside its architecture and its data.

    `batch=0` takes all images at once; `loss=None` is the model's own loss if it has one, else cross-entropy;
    `learning_rate=None` is the optimiser's usual one; `validation=None` holds out one image in twelve;
    `threads=None` measures which number is fastest (the last bits of the weights may depend on it).
    `stable` weighs the ReLU-stability penalty within `stable_radius` and brings `l1` on the weights with it.
    """

    epochs: int = 10
    batch: int = 128
    optimizer: str = "adam"
    loss: str | None = None
    learning_rate: float | None = None
    schedule: str = "constant"
    weight_decay: float = 0.0
    shift: int = 0
    validation: int | None = None
    seed: int = 0
    threads: int | None = None
    stable: float | None = None
    stable_radius: float | None = None
    l1: float | None = None

    def __post_init__(self) -> None:
        self._check_counts()
        _check_choice("optimizer", self.optimizer, OPTIMIZERS)
        _check_choice("schedule", self.schedule, SCHEDULES)
        if self.loss is not None:
            _check_choice("loss", self.loss, LOSSES)
        if not 0 < self.base_learning_rate < math.inf:
            raise InputError(f"The learning rate must be positive and finite, not {self.learning_rate}.")
        if not 0 <= self.weight_decay < math.inf:
            raise InputError(f"The weight decay must be finite and not negative, not {self.weight_decay}.")
        self._settle_stability()

    def _settle_stability(self) -> None:
        """Check the options of the stability penalty and fill in those that were left out."""
        if self.stable is None:
            if self.stable_radius is not None or self.l1 is not None:
                raise InputError(
                    "A stability radius and an L1 weight need the stability penalty: add --stable."
                )
            return
        for name, usual in (("stable_radius", DEFAULT_RADIUS), ("l1", DEFAULT_L1)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual)
        limits = {"stable": math.inf, "stable_radius": 1.0, "l1": math.inf}
        for name, limit in limits.items():
            value = getattr(self, name)
            if not 0 <= value < math.inf or value > limit:
                allowed = "from 0 to 1" if limit == 1 else "finite and not negative"
                raise InputError(f"--{name.replace('_', '-')} must be {allowed}, not {value}.")

    def _check_counts(self) -> None:
        least = {"epochs": 1, "batch": 0, "shift": 0, "validation": 1, "seed": 0, "threads": 1}
        limits = {"seed": SEED_LIMIT, "epochs": EPOCH_LIMIT}
        for name, minimum in least.items():
            value = getattr(self, name)
            if value is None and name in ("validation", "threads"):
                continue
            if not isinstance(value, int) or value < minimum:
                raise InputError(
                    f"The {name} of a training must be a whole number ≥ {minimum}, not {value!r}."
                )
            if value >= limits.get(name, math.inf):
                raise InputError(f"The {name} of a training must be below {limits[name]}, not {value}.")

    @property
    def base_learning_rate(self) -> float:
        """The learning rate at the start."""
        return OPTIMIZERS[self.optimizer][1] if self.learning_rate is None else self.learning_rate

    def held_out(self, images: int) -> int:
        """Give how many of so many images are held out to choose the best epoch."""
        count = max(1, images // 12) if self.validation is None else self.validation
        if count >= images:
            raise InputError(
                f"Cannot hold out {count} of {images} images for validation: choose a smaller number."
            )
        return count

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Give the learning rate of one of all the steps of a training."""
        return self.base_learning_rate * SCHEDULES[self.schedule](step / steps)

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Make the optimiser for a model's parameters."""
        make = OPTIMIZERS[self.optimizer][0]
        optimizer: torch.optim.Optimizer = make(
            list(model.parameters()), lr=self.base_learning_rate, weight_decay=self.weight_decay, fused=True
        )
        return optimizer

    def loss_function(self, model: nn.Module) -> LossFunction:
        """Give the function (model, images, labels, …) -> (loss, scores) to minimise."""
        loss = self._score_loss(model)
        if self.stable is None or self.stable_radius is None or self.l1 is None:
            return loss
        check_stable(model)
        weight, radius, l1 = self.stable, self.stable_radius, self.l1

        def stable_loss(model: nn.Module, images: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
            value, scores = loss(model, images, *rest)
            return value + weight * stability_penalty(model, images, radius) + l1 * l1_size(model), scores

        return stable_loss

    def _score_loss(self, model: nn.Module) -> LossFunction:
        if self.loss is None and hasattr(model, "training_loss"):
            return _own_loss
        score_loss = LOSSES[self.loss or "cross-entropy"]

        def loss(model: nn.Module, images: Tensor, labels: Tensor, *_parts: Tensor) -> tuple[Tensor, Tensor]:
            scores = model(images)
            return score_loss(scores, labels), scores

        return loss


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """The usual one for one label; for two, whether each class is there: Σ over classes, mean over images."""
    if labels.ndim == 1:
        return F.cross_entropy(scores, labels)
    there = presence(labels, scores.shape[1])
    return F.binary_cross_entropy_with_logits(scores, there, reduction="sum") / len(scores)


def squared_error(scores: Tensor, labels: Tensor) -> Tensor:
    """E = 1/(2M) Σ Σ (t − x)² over M images and all classes; t is 1 for a true class, else 0."""
    targets = presence(labels, scores.shape[1])
    return (targets - scores).square().sum() / (2 * len(scores))


def _own_loss(model: nn.Module, *batch: Tensor) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = model.training_loss(*batch)  # type: ignore[operator]
    return result


def _check_choice(name: str, value: str, choices: dict[str, Any]) -> None:
    if value not in choices:
        raise InputError(f"The {name} is one of {', '.join(choices)}, not {value!r}.")


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": cross_entropy,
    "mse": squared_error,
}
# AdamW without weight decay is Adam; with it, the decay does not pass through Adam's scaling.
OPTIMIZERS: dict[str, tuple[Any, float]] = {"adam": (torch.optim.AdamW, 1e-3), "sgd": (torch.optim.SGD, 0.1)}
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda _done: 1.0,
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
}
