"""What a model is worth on a set of images, and whether it can be trained on it at all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from closecall.data import Dataset, PairDataset
from closecall.errors import InputError
from closecall.models.registry import as_trainable
from closecall.train.batches import Images
from closecall.train.certified import check_certified, count_proven
from closecall.train.plan import LossFunction, TrainingPlan

EVALUATION_BATCH = 1000


def evaluate(model: nn.Module, dataset: Dataset, plan: TrainingPlan | None = None) -> tuple[float, float]:
    """Give a model's mean loss and its accuracy on a whole data set."""
    check_fit(model, dataset)
    loss_function = (plan or TrainingPlan()).loss_function(model)
    return measure(model, Images.of(dataset), loss_function)


def evaluate_proven(model: nn.Module, dataset: Dataset, radius: float) -> float:
    """Give the share of a data set's images whose label intervals prove to win within a radius in L∞."""
    check_fit(model, dataset)
    check_certified(model)
    return proven_share(model, Images.of(dataset), radius)


def proven_share(model: nn.Module, images: Images, radius: float) -> float:
    """Give the share of images whose label intervals prove to win within a radius."""
    proven = 0
    with torch.no_grad():
        for start in range(0, len(images), EVALUATION_BATCH):
            pixels, labels, *_ = images.batch(start, EVALUATION_BATCH)
            proven += count_proven(model, pixels, labels, radius)
    return proven / len(images)


def measure(model: nn.Module, images: Images, loss_function: LossFunction) -> tuple[float, float]:
    """Give a model's mean loss and its accuracy on images."""
    was_training = model.training
    model.eval()
    loss_sum, correct = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(images), EVALUATION_BATCH):
            batch = images.batch(start, EVALUATION_BATCH)
            labels = batch[1]
            loss, scores = loss_function(model, *batch)
            loss_sum += float(loss) * len(labels)
            correct += count_correct(scores, labels)
    model.train(was_training)
    return loss_sum / len(images), correct / len(images)


def count_correct(scores: Tensor, labels: Tensor) -> int:
    """Count the images whose label has the largest score; with two labels (N, 2), the two largest."""
    if labels.ndim == 1:
        return int((scores.argmax(1) == labels).sum())
    best = scores.topk(labels.shape[1]).indices.sort(1).values
    return int((best == labels.sort(1).values).all(1).sum())


def check_fit(model: nn.Module, dataset: Dataset) -> None:
    """Raise InputError when a data set's images or labels do not fit a model."""
    classifier = as_trainable(model)
    if tuple(dataset.input_shape) != tuple(classifier.input_shape):
        raise InputError(
            f"The model takes images of shape {tuple(classifier.input_shape)} but {dataset.name} has "
            f"{tuple(dataset.input_shape)}: build the model for this shape."
        )
    if dataset.classes > classifier.classes:
        raise InputError(
            f"The model tells {classifier.classes} classes apart but {dataset.name} has {dataset.classes}: "
            "build the model for this many."
        )


def check_plan(model: nn.Module, dataset: Dataset, plan: TrainingPlan) -> None:
    """Raise InputError or ModelError when a plan cannot train this model on this data set."""
    check_fit(model, dataset)
    plan.loss_function(model)
    if plan.certified is not None and isinstance(dataset, PairDataset):
        raise InputError(
            f"--certified needs images of one class each, and those of {dataset.name} have two: "
            "choose another data set."
        )
