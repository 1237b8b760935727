"""`closecall capsules` and `closecall predict` as a user runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from closecall import data, models
from closecall.cli import main
from closecall.models import DNN


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["closecall", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["perturb", "--index", 4], "16 dimensions of test image 4 of mnist are drawn in"),
        (["reconstruct", "--count", 2, "--failures", 1], "Test images 0, 1, 445 of mnist are drawn in"),
        (["routing", "--index", 4], "3 iterations of test image 4 of mnist are drawn in"),
    ],
)
def test_pictures(
    arguments: list[object],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "drawn.png"
    assert run(monkeypatch, "capsules", *arguments, "--model", "zoo:mnist-caps", "--out", out) == 0
    assert f"{words} {out}" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert np.asarray(picture).std() > 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["perturb", "--model", "zoo:mnist-cnn"], "zoo:mnist-cnn is a cnn, which has no capsules"),
        (
            ["perturb", "--model", "zoo:mnist-caps", "--dataset", "digits"],
            "takes images of shape (1, 28, 28)",
        ),
        (["routing", "--model", "zoo:mnist-caps", "--index", "10000"], "mnist has no image 10000"),
    ],
)
def test_one_sentence_for_a_mistake(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "capsules", *arguments) == 2
    errors = capsys.readouterr().err
    assert words in errors
    assert errors.count("\n") == 1


def test_training_with_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--preset", "small", "--routing", "attention", "--iterations", 2, "--dataset", "digits")
    how = ("--epochs", 1, "--threads", 1, "--shift", 1, "--out", tmp_path)
    assert run(monkeypatch, "train", "--model", "capsnet", *arguments, *how) == 0
    described = json.loads((tmp_path / "model.json").read_text())
    assert described["kind"] == "capsnet"
    chosen = {name: described["config"][name] for name in ("preset", "routing", "iterations", "input_shape")}
    assert chosen == {"preset": "small", "routing": "attention", "iterations": 2, "input_shape": [1, 8, 8]}
    assert described["accuracy"] > 0.2
    assert (tmp_path / "model.onnx").exists()


def test_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(data.load_dataset("mnist", "test").images[0, 0]).save(tmp_path / "seven.png")
    arguments = ("--model", "zoo:mnist-caps", "--image", tmp_path / "seven.png")
    assert run(monkeypatch, "predict", *arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path / 'seven.png'} is a 7, says zoo:mnist-caps."
    assert lines[1].startswith("  class 7: capsule length 0.9")
    assert run(monkeypatch, "predict", *arguments, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["label"], answer["kind"], len(answer["scores"])) == (7, "lengths", 10)
    assert answer["model"] == "zoo:mnist-caps"


def test_predict_with_a_picture_of_another_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(tmp_path / "tiny.png")
    models.save_model(DNN((3,)), tmp_path / "model")
    assert run(monkeypatch, "predict", "--model", tmp_path / "model", "--image", tmp_path / "tiny.png") == 2
    assert "5x5 pixels" in capsys.readouterr().err
