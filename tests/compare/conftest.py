"""A comparison small enough for a test: the digits, tiny networks, a few steps, one or two images."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from closecall import data
from closecall.cli.progress import showing_interval
from closecall.compare import presets
from closecall.compare.comparison import Comparison
from closecall.compare.contenders import Contender, known
from closecall.compare.presets import Preset, cnn_config
from closecall.compare.progress import Progress
from closecall.compare.record import Record
from closecall.train.threads import using_threads

KINDS = presets.KINDS
TINY = replace(
    presets.PRESETS["quick"][0],
    seeds=1,
    train_images=300,
    epochs={"dnn": 12, "cnn": 20, "cnn-baseline": 1, "capsnet": 1},
    images=2,
    gallery=1,
    time_limit=1.0,
    milp_images=1,
    milp_time_limit=2.0,
    moved_images=40,
    few_counts=(1, 2),
    few_steps={"dnn": 5, "cnn": 5, "cnn-baseline": 2, "capsnet": 2},
    sizes={
        "dnn": {"sizes": [6, 6]},
        "cnn": cnn_config(3, 8, small=True),
        "cnn-baseline": {"kernels": [2, 2, 2], "hidden": [8, 6]},
        "capsnet": {"preset": "small", "convolutions": ["4x3s2"], "primary_types": 2, "primary_size": 3,
                    "decoder": [8]},
    },
    dnn_ladder=(5,),
    cnn_ladder=(2,),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with using_threads(1):
        yield


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Preset:
    """Make `quick` tiny."""
    monkeypatch.setitem(presets.PRESETS, "quick", (TINY, TINY))
    return TINY


@pytest.fixture
def progress() -> Progress:
    return Progress(Console(file=io.StringIO(), width=200), showing_interval)


@pytest.fixture
def made(tmp_path: Path, progress: Progress) -> Callable[..., Comparison]:
    """Give a comparison of some kinds on the digits, with everything else as in `TINY` unless said."""

    def make(*kinds: str, contenders: list[Contender] | None = None, **changes: object) -> Comparison:
        train, test = data.load_dataset("digits", "train"), data.load_dataset("digits", "test")
        preset = replace(TINY, **changes)  # type: ignore[arg-type]
        return Comparison(
            dataset="digits",
            train=train.subset(np.arange(preset.train_images or len(train))),
            test=test,
            preset=preset,
            contenders=contenders or [known(kind, preset) for kind in kinds],
            seeds=list(range(preset.seeds)),
            norm="linf",
            threads=1,
            folder=tmp_path,
            record=Record(tmp_path / "measurements.jsonl"),
            progress=progress,
        )

    return make
