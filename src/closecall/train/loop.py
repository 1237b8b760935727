"""The one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from closecall.data import Dataset
from closecall.errors import InputError, TrainingError
from closecall.train.batches import Epoch, fingerprint, shuffle, split
from closecall.train.checkpoint import Weights, broken_checkpoint, load_checkpoint, restore, save_checkpoint
from closecall.train.evaluation import check_plan, count_correct, measure, proven_share
from closecall.train.interrupt import holding_interrupts
from closecall.train.plan import TrainingPlan
from closecall.train.record import EpochRecord, Listener, TrainingRun
from closecall.train.stability import Pruning, drop_tiny_weights
from closecall.train.threads import choose_threads, using_threads

SECONDS_BETWEEN_CHECKPOINTS = 60.0
SECONDS_BETWEEN_REPORTS = 0.1


@dataclass
class _Progress:
    """Where a training stands; all of it goes into the checkpoint."""

    epoch: int = 1
    images_done: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    history: list[EpochRecord] = field(default_factory=list)


class _Session:
    """A model, its optimiser, its data and its progress, from the first step to the last."""

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        plan: TrainingPlan,
        checkpoint: Path | None,
        resume: bool,
        about: Mapping[str, Any],
    ) -> None:
        self.model, self.plan, self.checkpoint, self.about = model, plan, checkpoint, about
        self.images, self.held_out = split(dataset, plan)
        self.batch = plan.batch or len(self.images)
        self.steps_per_epoch = math.ceil(len(self.images) / self.batch)
        self.optimizer = plan.make_optimizer(model)
        self.loss_function = plan.loss_function(model)
        self.progress = _Progress()
        self.best: Weights = _copy_weights(model)
        self.identity = _identity(model, dataset, plan)
        self.last_saved = time.monotonic()
        if resume:
            self.threads = self._restore()
        else:
            self.threads = plan.threads or choose_threads(model, plan, *self.images.batch(0, self.batch))

    def _restore(self) -> int:
        if self.checkpoint is None:
            raise InputError("There is nothing to resume without a checkpoint file.")
        tensors, saved = load_checkpoint(self.checkpoint)
        try:
            _check_identity(saved["identity"], self.identity, self.checkpoint)
            self.best = restore(tensors, self.model, self.optimizer)
            history = [EpochRecord(**record) for record in saved["progress"].pop("history")]
            self.progress = _Progress(**saved["progress"], history=history)
            _check_epochs(len(history), self.plan)
            return self.plan.threads or int(saved["threads"])
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise broken_checkpoint(self.checkpoint, error) from error

    @property
    def steps(self) -> int:
        """How many there are in all."""
        return self.plan.epochs * self.steps_per_epoch

    def steps_before(self, number: int) -> int:
        """How many come before this one of the current epoch."""
        return (self.progress.epoch - 1) * self.steps_per_epoch + number

    def learning_rate(self, number: int) -> float:
        return self.plan.learning_rate_at(self.steps_before(number), self.steps)

    def save(self) -> None:
        if self.checkpoint is not None:
            saved = {
                "about": self.about,
                "identity": self.identity,
                "threads": self.threads,
                "progress": asdict(self.progress),
            }
            save_checkpoint(self.checkpoint, self.model, self.optimizer, self.best, saved)
            self.last_saved = time.monotonic()


def train(
    model: nn.Module,
    dataset: Dataset,
    plan: TrainingPlan | None = None,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    about: Mapping[str, Any] | None = None,
) -> TrainingRun:
    """Train a model in place and leave it with the weights of its best epoch on held-out images.

    A part of `dataset` is held out to choose that epoch. The checkpoint is written after every epoch, every
    minute and on Ctrl-C, which then raises KeyboardInterrupt; `resume` continues from it to the same weights
    as if the run had not been interrupted. `about` is kept in the checkpoint for whoever resumes. The same
    seed, threads and machine give the same weights.
    """
    plan = plan or TrainingPlan()
    check_plan(model, dataset, plan)
    with torch.random.fork_rng(devices=[]), holding_interrupts() as interrupted:
        torch.manual_seed(plan.seed)
        session = _Session(model, dataset, plan, checkpoint, resume, about or {})
        with using_threads(session.threads):
            if not resume:
                session.save()
            while session.progress.epoch <= plan.epochs:
                _train_epoch(session, interrupted, listener)
                _finish_epoch(session, listener)
            model.load_state_dict(session.best)
            model.eval()
            pruning = None if plan.stable is None else _prune(session)
    return TrainingRun(session.progress.history, session.progress.best_epoch, session.threads, pruning)


def _prune(session: _Session) -> Pruning:
    model, held_out, radius = session.model, session.held_out, session.plan.radius_to_prove
    loss_function = TrainingPlan(loss="cross-entropy").loss_function(model)

    def shares() -> list[float]:
        _, accuracy = measure(model, held_out, loss_function)
        return [accuracy] if radius is None else [accuracy, proven_share(model, held_out, radius)]

    return drop_tiny_weights(model, shares)


def _train_epoch(session: _Session, interrupted: list[int], listener: Listener | None) -> None:
    """Take the remaining steps of the current epoch."""
    progress, plan = session.progress, session.plan
    epoch = shuffle(session.images, plan, progress.epoch)
    session.model.train()
    last_reported = began = time.monotonic()
    spent = progress.seconds
    for start in range(progress.images_done, len(session.images), session.batch):
        _take_step(session, epoch, start)
        now = time.monotonic()
        progress.seconds = spent + now - began
        if interrupted:
            session.save()
            raise KeyboardInterrupt
        if now - session.last_saved > SECONDS_BETWEEN_CHECKPOINTS:
            session.save()
        if listener and now - last_reported > SECONDS_BETWEEN_REPORTS:
            done = progress.images_done
            listener.during_epoch(progress.epoch, done, progress.loss_sum / done, progress.correct / done)
            last_reported = now


def _take_step(session: _Session, epoch: Epoch, start: int) -> None:
    progress = session.progress
    batch = epoch.batch(start, session.batch)
    labels = batch[1]
    number = start // session.batch
    for group in session.optimizer.param_groups:
        group["lr"] = session.learning_rate(number)
    session.optimizer.zero_grad()
    loss_function = session.plan.loss_function(session.model, session.steps_before(number) / session.steps)
    loss, scores = loss_function(session.model, *batch)
    value = float(loss.detach())
    _check_finite(value, f"in epoch {progress.epoch}, batch {number + 1} of {session.steps_per_epoch}")
    loss.backward()  # type: ignore[no-untyped-call]
    session.optimizer.step()
    progress.images_done += len(labels)
    progress.loss_sum += value * len(labels)
    progress.correct += count_correct(scores.detach(), labels)


def _finish_epoch(session: _Session, listener: Listener | None) -> None:
    """Measure the held-out images, keep the weights if they are the best so far, record and save."""
    progress = session.progress
    began = time.monotonic()
    loss, accuracy = measure(session.model, session.held_out, session.loss_function)
    _check_finite(loss, f"on the held-out images after epoch {progress.epoch}")
    radius = session.plan.radius_to_prove
    proven = None if radius is None else proven_share(session.model, session.held_out, radius)
    count = len(session.images)
    record = EpochRecord(
        epoch=progress.epoch,
        loss=progress.loss_sum / count,
        accuracy=progress.correct / count,
        validation_loss=loss,
        validation_accuracy=accuracy,
        learning_rate=session.learning_rate(session.steps_per_epoch - 1),
        seconds=progress.seconds + time.monotonic() - began,
        images_per_second=count / max(progress.seconds, 1e-9),
        validation_proven=proven,
    )
    history = [*progress.history, record]
    best_epoch = _best_epoch(history, session.plan)
    if best_epoch == record.epoch:
        session.best = _copy_weights(session.model)
    session.progress = _Progress(epoch=progress.epoch + 1, best_epoch=best_epoch, history=history)
    session.save()
    if listener:
        listener.after_epoch(record)


def _best_epoch(history: list[EpochRecord], plan: TrainingPlan) -> int:
    """Give the most accurate epoch; if the loss weighs more than accuracy, that of the least loss."""
    if any(aim is not None for aim in (plan.stable, plan.adversarial, plan.certified)):
        return min(history, key=lambda r: r.validation_loss).epoch
    return max(history, key=lambda r: (r.validation_accuracy, -r.validation_loss)).epoch


def _check_finite(loss: float, where: str) -> None:
    if not math.isfinite(loss):
        raise TrainingError(f"The loss became {loss} {where}: train again with a smaller learning rate.")


def _copy_weights(model: nn.Module) -> Weights:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _identity(model: nn.Module, dataset: Dataset, plan: TrainingPlan) -> dict[str, Any]:
    """Give what must be the same for a resumed run to end as the first would have."""
    described = {f"plan {name}": value for name, value in asdict(plan).items() if name != "threads"}
    if not plan.epochs_matter:
        del described["plan epochs"]
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    return {**described, "model": shapes, "data set": fingerprint(dataset)}


def _check_epochs(done: int, plan: TrainingPlan) -> None:
    if done > plan.epochs:
        raise InputError(f"{done} epochs are done already: ask for as many or more, not for {plan.epochs}.")


def _check_identity(saved: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    for name, value in wanted.items():
        if saved.get(name) != value:
            raise InputError(
                f"{path} was started with another {name.removeprefix('plan ')} "
                f"({saved.get(name)}, now {value}): "
                "resume with the same arguments, or start again with --overwrite."
            )
