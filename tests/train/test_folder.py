"""From a name to a folder: what is written, what it says, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from closecall import data, models
from closecall.errors import DataError, InputError
from closecall.train import TrainingPlan, train_into
from closecall.train.folder import WRITTEN, prepare_folder

PLAN = TrainingPlan(epochs=3, batch=64, learning_rate=3e-3, seed=1, threads=1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "dnn"
    train_into(folder, "dnn", {"sizes": [16, 16]}, "digits", PLAN)
    return folder


def test_everything_is_written(trained: Path) -> None:
    assert sorted(path.name for path in trained.iterdir()) == sorted(WRITTEN)


def test_the_description_is_true(trained: Path) -> None:
    described = json.loads((trained / "model.json").read_text())
    test_set = data.load_dataset("digits", "test")
    session = onnxruntime.InferenceSession(trained / "model.onnx")
    (scores,) = session.run(None, {"image": test_set.images.astype(np.float32) / np.float32(255)})
    assert described["accuracy"] == pytest.approx((scores.argmax(1) == test_set.labels).mean())
    assert described["accuracy"] > 0.6
    assert described["dataset"] == "digits"
    assert described["config"]["input_shape"] == [1, 8, 8]
    assert TrainingPlan(**described["recipe"]) == PLAN
    assert models.load_model(trained).config() == described["config"]


def test_curves(trained: Path) -> None:
    with (trained / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[0]["loss"]) > float(rows[2]["loss"])
    described = json.loads((trained / "model.json").read_text())
    best = rows[described["best_epoch"] - 1]
    assert float(best["validation_accuracy"]) == described["validation_accuracy"]
    with Image.open(trained / "curves.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 400


def test_the_recipe_gives_the_same_weights(trained: Path, tmp_path: Path) -> None:
    described = models.describe(trained)
    plan = TrainingPlan(**described["recipe"])
    train_into(tmp_path, described["kind"], described["config"], described["dataset"], plan)
    assert (tmp_path / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_a_used_folder_is_refused_unless_told(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"already holds model.json: add --resume"):
        prepare_folder(tmp_path, resume=False, overwrite=False)
    with pytest.raises(InputError, match="not both"):
        prepare_folder(tmp_path, resume=True, overwrite=True)
    (tmp_path / ".model.onnx.123.part").write_text("cut off")
    prepare_folder(tmp_path, resume=False, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match=r"Cannot use the folder .*taken"):
        prepare_folder(tmp_path / "taken" / "run", resume=False, overwrite=False)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that may be read but not written, also when the tests run as root."""
    with tempfile.TemporaryDirectory() as name:
        user = os.geteuid()
        Path(name).chmod(0o555)
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(user)
            Path(name).chmod(0o700)


def test_a_read_only_folder(read_only: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot use the folder .*: Permission denied"):
        train_into(read_only, "dnn", {"sizes": [4]}, "digits", PLAN)
    with pytest.raises(InputError, match=r"Cannot use the folder .*: Permission denied"):
        train_into(read_only / "run", "dnn", {"sizes": [4]}, "digits", PLAN)


def test_an_unknown_data_set_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither a known data set nor a path"):
        train_into(tmp_path / "run", "dnn", {"sizes": [4]}, "letters", PLAN)
    assert not (tmp_path / "run").exists()
