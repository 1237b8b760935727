"""What is known about a training: each epoch, the finished run, and who hears of it on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from closecall.train.stability import Pruning


@dataclass(frozen=True)
class EpochRecord:
    """What one epoch came to; the training figures are means over its batches while it went on."""

    epoch: int
    loss: float
    accuracy: float
    validation_loss: float
    validation_accuracy: float
    learning_rate: float
    seconds: float
    images_per_second: float
    validation_proven: float | None = None  # the share that intervals prove, when that is trained for


@dataclass(frozen=True)
class TrainingRun:
    """A finished training: the model holds the weights of its best epoch on the held-out images."""

    history: list[EpochRecord]
    best_epoch: int
    threads: int
    pruning: Pruning | None = None

    @property
    def validation_accuracy(self) -> float:
        """The accuracy on the held-out images with the weights that were kept."""
        if self.pruning is not None:
            return self.pruning.validation_accuracy
        return self.history[self.best_epoch - 1].validation_accuracy

    @property
    def validation_proven(self) -> float | None:
        """The share of the held-out images that intervals prove within the radius trained for, if any."""
        return self.history[self.best_epoch - 1].validation_proven

    @property
    def seconds(self) -> float:
        """The time that all epochs took."""
        return sum(record.seconds for record in self.history)


class Listener(Protocol):
    """Whoever wants to hear how the training goes."""

    def during_epoch(self, epoch: int, done: int, loss: float, accuracy: float) -> None:
        """Hear the means so far after `done` images of an epoch."""
        ...

    def after_epoch(self, record: EpochRecord) -> None:
        """Hear how an epoch ended."""
        ...
