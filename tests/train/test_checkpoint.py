"""Checkpoints that are missing, cut off, tampered with or cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from closecall.data import Dataset
from closecall.errors import InputError
from closecall.models import DNN
from closecall.train import TrainingPlan, train

PLAN = TrainingPlan(epochs=2, batch=32, threads=1)


@pytest.fixture
def checkpoint(stripes: Dataset, tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.safetensors"
    train(model(), stripes, PLAN, checkpoint=path)
    return path


def model() -> DNN:
    torch.manual_seed(0)
    return DNN((5,), input_shape=(1, 6, 6), classes=3)


def resume(stripes: Dataset, path: Path) -> None:
    train(model(), stripes, PLAN, checkpoint=path, resume=True)


def test_nothing_else_is_left_beside_it(checkpoint: Path) -> None:
    assert [path.name for path in checkpoint.parent.iterdir()] == [checkpoint.name]


def test_missing(stripes: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing to resume: .* does not exist"):
        resume(stripes, tmp_path / "checkpoint.safetensors")


@pytest.mark.parametrize("kept", [0, 7, 60, -1])
def test_cut_off(stripes: Dataset, checkpoint: Path, kept: int) -> None:
    checkpoint.write_bytes(checkpoint.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"not a whole checkpoint .* start again with --overwrite"):
        resume(stripes, checkpoint)


@pytest.mark.parametrize("without", ["random", "model/layers.1.weight", "optimizer/0/exp_avg"])
def test_a_tensor_taken_out(stripes: Dataset, checkpoint: Path, without: str) -> None:
    with safe_open(checkpoint, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    del tensors[without]
    save_file(tensors, checkpoint, metadata)
    with pytest.raises(InputError, match="not a whole checkpoint"):
        resume(stripes, checkpoint)


@pytest.mark.parametrize("metadata", [None, {}, {"progress": "{"}, {"progress": "{}"}, {"progress": "[]"}])
def test_progress_that_is_none(stripes: Dataset, checkpoint: Path, metadata: dict[str, str] | None) -> None:
    with safe_open(checkpoint, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, checkpoint, metadata)
    with pytest.raises(InputError, match="not a whole checkpoint"):
        resume(stripes, checkpoint)


def test_a_place_that_cannot_be_written(stripes: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot write the checkpoint"):
        train(model(), stripes, PLAN, checkpoint=tmp_path / "nowhere" / "checkpoint.safetensors")
