"""What a comparison says while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from rich.console import Console

from closecall.milp import OnProgress
from closecall.train.record import EpochRecord

SECONDS_BETWEEN_LINES = 5.0

ShowInterval = Callable[[], AbstractContextManager[OnProgress]]


@dataclass(frozen=True, eq=False)
class Progress:
    """Lines on a console; on a terminal also what is being waited for."""

    console: Console
    show_interval: ShowInterval

    def say(self, line: str) -> None:
        self.console.print(line, markup=False)

    def heading(self, title: str) -> None:
        self.console.print(f"— {title}", markup=False)

    def waiting(self, what: str) -> AbstractContextManager[object]:
        return self.console.status(what) if self.console.is_terminal else nullcontext()

    @contextmanager
    def training(self, what: str, epochs: int) -> Iterator[TrainingLines]:
        """A listener for one training."""
        with self.waiting(f"training {what}"):
            yield TrainingLines(self, what, epochs)


class TrainingLines:
    """A line when an epoch, or a long part of one, is over, but not more often than every few seconds."""

    def __init__(self, progress: Progress, what: str, epochs: int) -> None:
        self.progress, self.what, self.epochs = progress, what, epochs
        self.last = time.monotonic()

    def during_epoch(self, epoch: int, done: int, loss: float, accuracy: float) -> None:
        self._say(f"epoch {epoch}/{self.epochs}, {done:,} images, loss {loss:.4f}, accuracy {accuracy:.1%}")

    def after_epoch(self, record: EpochRecord) -> None:
        left = (self.epochs - record.epoch) * record.seconds
        self._say(
            f"epoch {record.epoch}/{self.epochs}, loss {record.loss:.4f}, held out "
            f"{record.validation_accuracy:.1%}, {left:.0f} s left"
        )

    def _say(self, line: str) -> None:
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            self.progress.say(f"  training {self.what}: {line}")
