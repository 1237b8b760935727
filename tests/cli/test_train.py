"""`closecall train` as a user runs it, killed, interrupted and misused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from safetensors import safe_open
from typer.testing import CliRunner

from closecall.cli import app, main
from closecall.models import Block

ARGUMENTS = ["train", "--sizes", "12,8", "--shift", "1", "--seed", "5", "--threads", "1"]


@contextmanager
def running(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A training in a process of its own."""
    command = [
        sys.executable,
        "-c",
        "from closecall.cli import main; main()",
        *ARGUMENTS,
        "--out",
        str(folder),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, *more], **pipes, text=True, env=environment) as process:
        yield process


def current_epoch(folder: Path) -> int:
    try:
        with safe_open(folder / "checkpoint.safetensors", framework="pt") as file:
            return int(json.loads(file.metadata()["progress"])["progress"]["epoch"])
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_stopped_and_resumed_gives_the_same_weights(tmp_path: Path, number: signal.Signals) -> None:
    stopped, straight = tmp_path / "stopped", tmp_path / "straight"
    with running(stopped, "--epochs", "1000000") as process:
        while current_epoch(stopped) < 4:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        output, errors = process.communicate()
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert f"the state is saved in {stopped}: give the same command with --resume to go on" in errors
        assert "Traceback" not in errors
    assert not (stopped / "model.json").exists()

    epochs = current_epoch(stopped) + 3
    with running(stopped, "--epochs", str(epochs), "--resume") as process:
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.count("held out") == 4
    done = CliRunner().invoke(app, [*ARGUMENTS, "--epochs", str(epochs), "--out", str(straight)])
    assert done.exit_code == 0, done.output
    for name in ("model.safetensors", "model.onnx"):
        assert (stopped / name).read_bytes() == (straight / name).read_bytes()
    assert sorted(path.name for path in stopped.iterdir()) == sorted(path.name for path in straight.iterdir())


def test_every_option_reaches_the_model_and_the_plan(tmp_path: Path) -> None:
    arguments = (
        "--model cnn --blocks 2x3p1/2,2x2s2/2s1 --hidden 5,4 --convolution paper --no-bias --no-strict "
        "--outputs relu --dataset digits --epochs 2 --batch full --optimizer sgd --loss mse "
        "--learning-rate 0.02 --schedule cosine --weight-decay 0.001 --shift 1 --validation 77 --seed 9 "
        "--threads 1"
    )
    done = CliRunner().invoke(app, ["train", *arguments.split(), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    described = json.loads((tmp_path / "model.json").read_text())
    blocks = [
        {"kernels": 2, "size": 3, "stride": 1, "padding": 1, "pool": 2, "pool_stride": 2},
        {"kernels": 2, "size": 2, "stride": 2, "padding": 0, "pool": 2, "pool_stride": 1},
    ]
    assert described["config"] == {
        "blocks": blocks,
        "hidden": [5, 4],
        "input_shape": [1, 8, 8],
        "classes": 10,
        "convolution": "paper",
        "bias": False,
        "strict": False,
        "outputs": "relu",
    }
    assert described["recipe"] == {
        "epochs": 2,
        "batch": 0,
        "optimizer": "sgd",
        "loss": "mse",
        "learning_rate": 0.02,
        "schedule": "cosine",
        "weight_decay": 0.001,
        "shift": 1,
        "validation": 77,
        "seed": 9,
        "threads": 1,
    }


def stopped_with_a_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setattr(sys, "argv", ["closecall", "train", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    errors = capsys.readouterr().err
    assert errors.startswith("closecall: ")
    assert errors.count("\n") == 1
    return errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sizes", "8,x"], "--sizes takes whole numbers separated by commas"),
        (["--sizes", "8", "--batch", "many"], "--batch takes a whole number, not 'many'"),
        (["--sizes", "8", "--blocks", "8x3"], "The model dnn has no option 'blocks'"),
        (["--model", "cnn", "--blocks", "4x3s2"], "Block 1, convolution: (8 − 3 + 2·0)/2 + 1 = 3.5"),
        (["--sizes", "8", "--dataset", "letters"], "'letters' is neither a known data set nor a path"),
        (["--sizes", "8", "--resume"], "There is nothing to resume"),
        (["--sizes", "8", "--shift", "8"], "A shift of 8 pixels would move 8×8 images out of sight"),
    ],
)
def test_one_sentence_for_a_mistake(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = [*arguments, "--out", str(tmp_path / "run")]
    assert words in stopped_with_a_sentence(arguments, capsys, monkeypatch)


def test_a_used_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "curves.csv").write_text("")
    sentence = stopped_with_a_sentence(["--sizes", "8", "--out", str(tmp_path)], capsys, monkeypatch)
    assert "add --resume to continue that training or --overwrite to start it again" in sentence


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One epoch of a training whose every option is its own."""
    folder = tmp_path_factory.mktemp("run") / "cnn"
    arguments = (
        "--model cnn --blocks 2x4s2/0 --hidden 5 --no-bias --epochs 1 --batch full --seed 9 --threads 1"
    )
    done = CliRunner().invoke(app, ["train", *arguments.split(), "--loss", "mse", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def test_resuming_needs_no_options_again(started: Path, tmp_path: Path) -> None:
    folder, straight = tmp_path / "copy", tmp_path / "straight"
    shutil.copytree(started, folder)
    text = "--model cnn --blocks 2x4s2/0 --hidden 5 --no-bias --batch full --seed 9 --loss mse --threads 1"
    options = [*text.split(), "--dataset", "digits", "--learning-rate", "0.001"]
    for more in (["--epochs", "3"], [], options):
        done = CliRunner().invoke(app, ["train", "--resume", "--out", str(folder), *more])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["train", *options, "--epochs", "3", "--out", str(straight)])
    assert done.exit_code == 0, done.output
    for name in ("model.safetensors", "model.onnx"):
        assert (folder / name).read_bytes() == (straight / name).read_bytes()
    assert json.loads((folder / "model.json").read_text())["recipe"]["epochs"] == 3


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--model dnn", "was started with --model cnn, not with --model dnn: leave that option out to go on"),
        ("--blocks 2x4s2", "with --blocks 2x4s2/0, not with --blocks 2x4s2/2"),
        ("--hidden 5,5", "with --hidden 5, not with --hidden 5,5"),
        ("--bias", "with --no-bias, not with --bias"),
        ("--sizes 8", "without --sizes, not with --sizes 8"),
        ("--dataset mnist", "with --dataset digits, not with --dataset mnist"),
        ("--batch 64", "with --batch full, not with --batch 64"),
        ("--seed 10", "with --seed 9, not with --seed 10"),
        ("--loss cross-entropy", "with --loss mse, not with --loss cross-entropy"),
        ("--learning-rate 0.002", "with --learning-rate 0.001, not with --learning-rate 0.002"),
        ("--stable 0.5", "without --stable, not with --stable 0.5"),
        ("--epochs 0", "must be a whole number ≥ 1, not 0"),
    ],
)
def test_an_option_that_differs_is_refused(
    started: Path,
    option: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = (started / "checkpoint.safetensors").read_bytes()
    arguments = ["--resume", *option.split(), "--out", str(started)]
    assert words in stopped_with_a_sentence(arguments, capsys, monkeypatch)
    assert (started / "checkpoint.safetensors").read_bytes() == before


def test_a_training_cannot_end_before_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    CliRunner().invoke(app, [*ARGUMENTS, "--epochs", "2", "--out", str(tmp_path)])
    arguments = ["--resume", "--epochs", "1", "--out", str(tmp_path)]
    sentence = stopped_with_a_sentence(arguments, capsys, monkeypatch)
    assert "2 epochs are done already: ask for as many or more, not for 1" in sentence


@pytest.mark.parametrize("kind", ["dnn", "cnn", "caps"])
def test_the_defaults_are_enough_and_are_those_of_the_help(kind: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["train", "--model", kind, "--epochs", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    described = json.loads((tmp_path / "model.json").read_text())
    config, recipe = described["config"], described["recipe"]
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "1000"}).stdout
    said = {
        "dnn": lambda: f"{','.join(map(str, config['sizes']))} unless given",
        "cnn": lambda: f"{Block(**config['blocks'][0])} for 8×8",
        "caps": lambda: f"{config['preset']} unless given",
    }
    assert said[kind]() in shown
    assert (described["dataset"], recipe["batch"], recipe["seed"]) == ("digits", 128, 0)


def test_help_names_the_notation_of_blocks() -> None:
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "200"}).stdout
    assert "8x6s2p1/3s2" in shown
