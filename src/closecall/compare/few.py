"""Accuracy after training on a few images of each class."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import torch
from torch import nn

from closecall.compare.comparison import Comparison
from closecall.compare.contenders import Contender
from closecall.compare.results import FewRow
from closecall.compare.subjects import module_subject
from closecall.data import Dataset
from closecall.models import build
from closecall.train import TrainingPlan
from closecall.train.batches import Images, shuffle


def measure_few(comparison: Comparison) -> list[FewRow]:
    """A row for each model, count and seed; every model learns from the same images."""
    comparison.progress.heading("few training images")
    counts = possible_counts(comparison)
    rows: list[FewRow] = []
    for contender in comparison.contenders:
        if not contender.trainable:
            comparison.narrow(f"{contender.name} is not trained on few images: it is an ONNX file.")
            continue
        for count in counts:
            rows += [measure_one(comparison, contender, count, seed) for seed in comparison.seeds]
    return rows


def possible_counts(comparison: Comparison) -> list[int]:
    """The preset's counts, as far as every class has so many images."""
    fewest = int(np.bincount(comparison.train.labels, minlength=comparison.train.classes).min())
    left_out = [count for count in comparison.preset.few_counts if count > fewest]
    if left_out:
        comparison.narrow(
            f"No training on {' or '.join(map(str, left_out))} images of each class: the smallest class has "
            f"{fewest}."
        )
    return [count for count in comparison.preset.few_counts if count <= fewest]


def measure_one(comparison: Comparison, contender: Contender, count: int, seed: int) -> FewRow:
    steps = comparison.preset.few_steps[contender.kind]
    plan = comparison.recipes.plan(contender.kind, 1, seed, comparison.threads)
    key = comparison.key(
        "few",
        model=contender.name,
        kind=contender.kind,
        config=contender.config,
        plan=asdict(plan),
        count=count,
        steps=steps,
        images=len(comparison.moved_test),
    )

    def measure() -> FewRow:
        with comparison.progress.waiting(f"training {contender.name} on {images_words(count)}"):
            few = few_images(comparison.train, count, seed)
            fitting = {"input_shape": few.input_shape, "classes": few.classes}
            model = build(contender.kind, {**contender.config, **fitting}, seed=seed)
            take_steps(model, few, plan, steps)
            subject = module_subject(contender, seed, model, {})
            return FewRow(contender.name, count, seed, subject.accuracy(comparison.moved_test))

    known = comparison.record.has(key)
    row = comparison.row(FewRow, key, measure)
    if not known:
        comparison.progress.say(f"{contender.name}, {images_words(count)}, seed {seed}: {row.accuracy:.1%}")
    return row


def images_words(count: int) -> str:
    return f"{count} image{'s' if count > 1 else ''} of each class"


def few_images(dataset: Dataset, count: int, seed: int) -> Dataset:
    """So many images of each class, drawn by the seed; fewer of them are always among the more."""
    order = np.random.RandomState(seed).permutation(len(dataset))
    chosen = [order[dataset.labels[order] == label][:count] for label in range(dataset.classes)]
    return dataset.subset(np.concatenate(chosen))


def take_steps(model: nn.Module, dataset: Dataset, plan: TrainingPlan, steps: int) -> None:
    """A fixed number of steps over all the images; none is held out, as there are too few to choose by."""
    images = Images.of(dataset)
    batch = min(plan.batch, len(images))
    per_epoch = math.ceil(len(images) / batch)
    optimizer, loss_function = plan.make_optimizer(model), plan.loss_function(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        model.train()
        for step in range(steps):
            if step % per_epoch == 0:
                epoch = shuffle(images, plan, 1 + step // per_epoch)
            for group in optimizer.param_groups:
                group["lr"] = plan.learning_rate_at(step, steps)
            optimizer.zero_grad()
            loss, _ = loss_function(model, *epoch.batch(step % per_epoch * batch, batch))
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    model.eval()
