"""The trained networks of a comparison: trained or loaded, with what can be asked of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from closecall._version import __version__
from closecall.compare.comparison import Comparison
from closecall.compare.contenders import Contender
from closecall.data import Dataset
from closecall.data.dataset import to_unit_interval
from closecall.errors import InputError, ModelError
from closecall.models import CapsNet, build, count_units, describe, load_model, save_model
from closecall.models.store import weights_bytes
from closecall.readers import Classifier, read
from closecall.train import TrainingPlan, train
from closecall.train.batches import fingerprint
from closecall.train.evaluation import check_fit
from closecall.train.folder import CHECKPOINT

AT_A_TIME = 250
MOST_UNITS = 10_000  # bounds of larger networks take minutes for one image

Scores = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Subject:
    """One network with its weights; `seed` is None when it was not trained here."""

    contender: Contender
    seed: int | None
    module: nn.Module | None
    score: Callable[[Scores], Scores]  # (N, channels, height, width) in [0, 1] -> (N, classes)
    weights: str  # a hash
    described: dict[str, Any]

    @property
    def name(self) -> str:
        return self.contender.name

    @property
    def kind(self) -> str:
        return self.contender.kind

    @cached_property
    def units(self) -> int | None:
        """The values of ReLUs and poolings; None where they are not all there is to reason about."""
        if self.module is None:
            return None if self.classifier is None else self.classifier.network.units
        return None if isinstance(self.module, CapsNet) else count_units(self.module)

    @property
    def too_large(self) -> bool:
        return self.module is not None and (self.units or 0) > MOST_UNITS

    @cached_property
    def classifier(self) -> Classifier | None:
        """The network as it is searched; None if closecall cannot reason about it, or it is too large."""
        if self.too_large:
            return None
        try:
            return read(self.contender.source if self.module is None else self.module)
        except ModelError:
            return None

    def predict(self, images: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The class of each image (N, channels, height, width)."""
        parts = [
            self.score(to_unit_interval(images[start : start + AT_A_TIME])).argmax(axis=1)
            for start in range(0, len(images), AT_A_TIME)
        ]
        return np.concatenate(parts).astype(np.int64)

    def accuracy(self, dataset: Dataset) -> float:
        return float((self.predict(dataset.images) == dataset.labels).mean())


def subjects_of(comparison: Comparison, contender: Contender) -> list[Subject]:
    """The networks of one contender: one for each seed, or the one that was brought."""
    if contender.source:
        return [brought_subject(comparison, contender)]
    return [
        trained_subject(
            comparison, contender, comparison.train, seed, comparison.preset.epochs[contender.kind]
        )
        for seed in comparison.seeds
    ]


def brought_subject(comparison: Comparison, contender: Contender) -> Subject:
    """Load what the user brought, and check that it fits the images."""
    if contender.trainable:
        module = load_model(contender.source)
        check_fit(module, comparison.test)
        return module_subject(contender, None, module, describe(contender.source))
    from closecall.ask.predict import open_scorer

    shape, _, score = open_scorer(contender.source)
    if shape != comparison.test.input_shape:
        raise InputError(
            f"{contender.source} takes images of shape {shape}, but those of {comparison.dataset} have "
            f"{comparison.test.input_shape}."
        )
    weights = hashlib.sha256(Path(contender.source).read_bytes()).hexdigest()
    return Subject(contender, None, None, lambda images: np.stack([score(i) for i in images]), weights, {})


def module_subject(
    contender: Contender, seed: int | None, module: nn.Module, described: dict[str, Any]
) -> Subject:
    """A network in torch."""
    module = module.eval()

    def score(images: Scores) -> Scores:
        with torch.no_grad():
            scores: Scores = module(torch.from_numpy(images)).numpy()
        return scores

    weights = hashlib.sha256(weights_bytes(module)).hexdigest()
    return Subject(contender, seed, module, score, weights, described)


def trained_subject(
    comparison: Comparison, contender: Contender, dataset: Dataset, seed: int, epochs: int
) -> Subject:
    """Train a network into its folder, go on with a training that was interrupted, or load a finished one."""
    plan = comparison.recipes.plan(contender.kind, epochs, seed, comparison.threads)
    folder = comparison.folder / "models" / f"{contender.name}-seed{seed}"
    identity = training_identity(contender, plan, dataset)
    if not is_finished(folder, identity):
        train_in_folder(comparison, contender, plan, dataset, folder)
    described = describe(folder)
    key = comparison.key("training", model=contender.name, seed=seed, identity=identity)
    comparison.record.measured(
        key, lambda: {name: described[name] for name in ("seconds", "validation_accuracy", "best_epoch")}
    )
    return module_subject(contender, seed, load_model(folder), described)


def training_identity(contender: Contender, plan: TrainingPlan, dataset: Dataset) -> str:
    """A hash of all that decides the weights."""
    parts = [contender.kind, contender.config, asdict(plan), fingerprint(dataset), __version__]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def is_finished(folder: Path, identity: str) -> bool:
    return (folder / "model.json").exists() and describe(folder).get("identity") == identity


def train_in_folder(
    comparison: Comparison, contender: Contender, plan: TrainingPlan, dataset: Dataset, folder: Path
) -> None:
    fitting = {"input_shape": dataset.input_shape, "classes": dataset.classes}
    config = {**contender.config, **fitting}
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / CHECKPOINT
    what = f"{contender.name}, seed {plan.seed}"
    with comparison.progress.training(what, plan.epochs) as listener:
        model = build(contender.kind, config, seed=plan.seed)
        try:
            resume = checkpoint.exists()
            run = train(model, dataset, plan, checkpoint=checkpoint, resume=resume, listener=listener)
        except InputError:
            # The checkpoint is of another training, or broken.
            if not resume:
                raise
            model = build(contender.kind, config, seed=plan.seed)
            run = train(model, dataset, plan, checkpoint=checkpoint, listener=listener)
    save_model(
        model,
        folder,
        dataset=dataset.name,
        validation_accuracy=run.validation_accuracy,
        best_epoch=run.best_epoch,
        recipe=asdict(plan),
        train_images=len(dataset),
        seconds=round(run.seconds, 2),
        identity=training_identity(contender, plan, dataset),
    )
    checkpoint.unlink(missing_ok=True)
    held_out = f"{run.validation_accuracy:.1%} of the held-out images right"
    comparison.progress.say(f"{what}: {held_out} after {run.seconds:.1f} s of training")
