"""The course of a training as a table and as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields

from closecall.train.record import EpochRecord

LEARNED, HELD_OUT, PROVEN, FAINT = "#4c78a8", "#e45756", "#54a24b", "#8a8a8a"


def curves_csv(history: Sequence[EpochRecord]) -> bytes:
    """Give one row per epoch, as the content of a CSV file."""
    text = io.StringIO()
    columns = [field.name for field in fields(EpochRecord)]
    if history[0].validation_proven is None:
        columns.remove("validation_proven")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in history)
    return text.getvalue().encode()


def curves_png(history: Sequence[EpochRecord], best_epoch: int, title: str) -> bytes:
    """Draw loss and accuracy over the epochs, as the content of a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11)
    losses, accuracies = figure.subplots(1, 2)
    epochs = [record.epoch for record in history]
    _draw(losses, epochs, [r.loss for r in history], [r.validation_loss for r in history])
    _draw(accuracies, epochs, [r.accuracy for r in history], [r.validation_accuracy for r in history])
    proven = [r.validation_proven for r in history if r.validation_proven is not None]
    if proven:
        accuracies.plot(epochs, proven, ".-", color=PROVEN, label="held-out images, proven")
    losses.set_ylabel("loss")
    accuracies.set_ylabel("accuracy")
    accuracies.yaxis.set_major_formatter(PercentFormatter(1.0))
    best = history[best_epoch - 1]
    accuracies.axvline(best_epoch, color=FAINT, linewidth=0.8, linestyle=":", zorder=0)
    accuracies.plot([best_epoch], [best.validation_accuracy], "o", color=HELD_OUT, markersize=7)
    kept = f"kept: epoch {best_epoch}, {best.validation_accuracy:.2%} held out"
    accuracies.set_title(kept, fontsize=9, color=FAINT)
    for axes in (losses, accuracies):
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return picture.getvalue()


def _draw(axes: object, epochs: list[int], learned: list[float], held_out: list[float]) -> None:
    axes.plot(epochs, learned, ".-", color=LEARNED, label="training images")  # type: ignore[attr-defined]
    axes.plot(epochs, held_out, ".-", color=HELD_OUT, label="held-out images")  # type: ignore[attr-defined]
