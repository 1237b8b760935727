"""What a training shows, on a terminal and elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from closecall.train.progress import showing_progress
from closecall.train.record import EpochRecord


def record(epoch: int) -> EpochRecord:
    return EpochRecord(epoch, 0.25, 0.931, 0.3, 0.912, 0.001, 2.0, 27500.0)


def test_plain_lines_when_not_on_a_terminal() -> None:
    file = io.StringIO()
    with showing_progress(Console(file=file, width=40), 8, 55_000) as listener:
        listener.during_epoch(1, 20_000, 0.4, 0.9)
        assert file.getvalue() == ""
        listener.after_epoch(record(3))
    assert file.getvalue() == (
        "epoch 3/8  loss 0.2500  accuracy 93.10%  held out 91.20%  27,500 images/s  10 s left\n"
    )


def test_a_live_bar_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, width=120, force_terminal=True, color_system=None)
    with showing_progress(console, 8, 55_000) as listener:
        listener.during_epoch(2, 20_000, 0.4, 0.9)
        listener.progress.refresh()  # type: ignore[attr-defined]
        listener.after_epoch(record(2))
    shown = file.getvalue()
    assert "epoch 2/8" in shown
    assert "loss 0.4000  accuracy 90.00%" in shown
    assert "images/s" in shown
    assert "epoch 2/8  loss 0.2500  accuracy 93.10%  held out 91.20%  27,500 images/s  12 s left" in shown
