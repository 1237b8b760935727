"""How a training shows itself: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from closecall.train.record import EpochRecord, Listener


@contextmanager
def showing_progress(console: Console, epochs: int, images: int) -> Iterator[Listener]:
    """Give a listener that shows a training of so many epochs of so many images."""
    if not console.is_terminal:
        yield Lines(console, epochs)
        return
    columns = (
        TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.2%}"),
        TextColumn("{task.fields[rate]:,.0f} images/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(
            "", total=epochs * images, epoch=1, epochs=epochs, loss=0.0, accuracy=0.0, rate=0.0
        )
        yield Bar(progress, task, epochs, images)


def sentence(record: EpochRecord, epochs: int, seconds_left: float) -> str:
    """Put an epoch into one line."""
    proven = "" if record.validation_proven is None else f"proven {record.validation_proven:.2%}  "
    return (
        f"epoch {record.epoch}/{epochs}  loss {record.loss:.4f}  accuracy {record.accuracy:.2%}  "
        f"held out {record.validation_accuracy:.2%}  {proven}{record.images_per_second:,.0f} images/s  "
        f"{seconds_left:.0f} s left"
    )


class Lines:
    """One line per epoch."""

    def __init__(self, console: Console, epochs: int) -> None:
        self.console, self.epochs = console, epochs

    def during_epoch(self, epoch: int, done: int, loss: float, accuracy: float) -> None:
        """Say nothing before the epoch is over."""

    def after_epoch(self, record: EpochRecord) -> None:
        """Print how the epoch ended."""
        left = (self.epochs - record.epoch) * record.seconds
        self.console.print(sentence(record, self.epochs, left), highlight=False, soft_wrap=True)


class Bar:
    """A live bar, with a line left behind by every epoch."""

    def __init__(self, progress: Progress, task: TaskID, epochs: int, images: int) -> None:
        self.progress, self.task = progress, task
        self.lines, self.images = Lines(progress.console, epochs), images
        self.last = (time.monotonic(), 0)

    def during_epoch(self, epoch: int, done: int, loss: float, accuracy: float) -> None:
        """Move the bar."""
        completed = (epoch - 1) * self.images + done
        now, (before, already) = time.monotonic(), self.last
        rate = (completed - already) / max(now - before, 1e-9)
        self.last = (now, completed)
        self.progress.update(
            self.task, completed=completed, epoch=epoch, loss=loss, accuracy=accuracy, rate=rate
        )

    def after_epoch(self, record: EpochRecord) -> None:
        """Leave a line and move the bar."""
        completed = record.epoch * self.images
        self.last = (time.monotonic(), completed)
        self.lines.after_epoch(record)
        self.progress.update(self.task, completed=completed, loss=record.loss, accuracy=record.accuracy)
