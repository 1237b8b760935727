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
from closecall.train import adversarial as against
from closecall.train.certified import (
    DEFAULT_RAMP,
    DEFAULT_REACH,
    DEFAULT_WEIGHT,
    check_certified,
    grown,
    worst_loss,
)
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
    `adversarial` trains on images moved against the model within this radius, which grows from 0 over the
    share `adversarial_ramp` of the training.
    `certified` is the radius within which proofs are wanted: the loss of the worst scores that intervals
    allow within `certified_reach` times that radius counts `certified_weight`, that of the images the rest;
    radius and weight grow from 0 over the share `certified_ramp` of the training. Where there is a ramp,
    the penalty of `stable` grows with it.
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
    adversarial: float | None = None
    adversarial_ramp: float | None = None
    certified: float | None = None
    certified_reach: float | None = None
    certified_weight: float | None = None
    certified_ramp: float | None = None

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
        self._settle_adversarial()
        self._settle_certified()

    def _settle_stability(self) -> None:
        """Check the options of the stability penalty and fill in those that were left out."""
        if self.stable is None:
            if self.stable_radius is not None or self.l1 is not None:
                raise InputError(
                    "A stability radius and an L1 weight need the stability penalty: add --stable."
                )
            return
        self._fill_in({"stable_radius": DEFAULT_RADIUS, "l1": DEFAULT_L1})
        self._check_amounts({"stable": math.inf, "stable_radius": 1.0, "l1": math.inf})

    def _settle_adversarial(self) -> None:
        """Check the options of training on moved images and fill in those that were left out."""
        if self.adversarial is None:
            if self.adversarial_ramp is not None:
                raise InputError("--adversarial-ramp needs a radius to move images in: add --adversarial.")
            return
        self._check_radius("adversarial")
        self._fill_in({"adversarial_ramp": against.DEFAULT_RAMP})
        self._check_amounts({"adversarial_ramp": 1.0})

    def _settle_certified(self) -> None:
        """Check the options of training for proofs and fill in those that were left out."""
        usual = {
            "certified_reach": DEFAULT_REACH,
            "certified_weight": DEFAULT_WEIGHT,
            "certified_ramp": DEFAULT_RAMP,
        }
        if self.certified is None:
            for name in usual:
                if getattr(self, name) is not None:
                    raise InputError(f"{_option(name)} needs a radius to prove: add --certified.")
            return
        self._check_radius("certified")
        if self.loss not in (None, "cross-entropy"):
            raise InputError(f"--certified is trained by cross-entropy: leave --loss {self.loss} out.")
        self._fill_in(usual)
        self._check_amounts({"certified_reach": math.inf, "certified_weight": 1.0, "certified_ramp": 1.0})

    def _check_radius(self, name: str) -> None:
        radius = getattr(self, name)
        if not 0 < radius <= 1:
            raise InputError(
                f"{_option(name)} takes a radius above 0 and up to 1, such as 0.1 or 2/255, not {radius}."
            )

    def _fill_in(self, usual: dict[str, float]) -> None:
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def _check_amounts(self, limits: dict[str, float]) -> None:
        for name, limit in limits.items():
            value = getattr(self, name)
            if not 0 <= value < math.inf or value > limit:
                allowed = "from 0 to 1" if limit == 1 else "finite and not negative"
                raise InputError(f"{_option(name)} must be {allowed}, not {value}.")

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

    @property
    def epochs_matter(self) -> bool:
        """Whether each epoch depends on how many there will be."""
        return self.schedule != "constant" or self.ramp > 0

    @property
    def ramp(self) -> float:
        """The share of the training over which the hardest part of the loss grows from 0."""
        return max(self.adversarial_ramp or 0.0, self.certified_ramp or 0.0)

    @property
    def radius_to_prove(self) -> float | None:
        """Where it is worth counting what intervals prove: of networks that are trained to be proven."""
        return self.adversarial if self.certified is None and self.stable is not None else self.certified

    def loss_function(self, model: nn.Module, done: float = 1.0) -> LossFunction:
        """Give the function (model, images, labels, …) -> (loss, scores) to minimise.

        `done` is the share of the training that is over, for losses that change on the way.
        """
        loss = self._score_loss(model)
        if self.adversarial is not None:
            loss = self._adversarial_loss(loss, done)
        if self.certified is not None:
            loss = self._certified_loss(model, loss, done)
        return loss if self.stable is None else self._stable_loss(model, loss, done)

    def _adversarial_loss(self, loss: LossFunction, done: float) -> LossFunction:
        """The loss of moved images, and the scores of the images as they are."""
        radius, ramp = _settled(self.adversarial, self.adversarial_ramp)
        seed, reach = int(done * SEED_LIMIT) + self.seed, radius * grown(done, ramp)

        def adversarial_loss(model: nn.Module, images: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
            moved = against.moved_against(images, reach, lambda near: loss(model, near, *rest)[0], seed)
            with torch.no_grad():
                _, scores = loss(model, images, *rest)
            return loss(model, moved, *rest)[0], scores

        return adversarial_loss

    def _stable_loss(self, model: nn.Module, loss: LossFunction, done: float) -> LossFunction:
        check_stable(model)
        weight, radius, l1 = _settled(self.stable, self.stable_radius, self.l1)
        size = grown(done, self.ramp)

        def stable_loss(model: nn.Module, images: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
            value, scores = loss(model, images, *rest)
            penalty = stability_penalty(model, images, size * radius)
            return value + size * weight * penalty + l1 * l1_size(model), scores

        return stable_loss

    def _certified_loss(self, model: nn.Module, loss: LossFunction, done: float) -> LossFunction:
        check_certified(model)
        radius, reach, weight, ramp = _settled(
            self.certified, self.certified_reach, self.certified_weight, self.certified_ramp
        )
        size = grown(done, ramp)
        share = size * weight

        def certified_loss(
            model: nn.Module, images: Tensor, labels: Tensor, *_parts: Tensor
        ) -> tuple[Tensor, Tensor]:
            value, scores = loss(model, images, labels)
            worst = worst_loss(model, images, labels, size * reach * radius)
            return (1 - share) * value + share * worst, scores

        return certified_loss

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


def _settled(*values: float | None) -> list[float]:
    """Options that a plan has filled in when it was made."""
    return [value for value in values if value is not None]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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
