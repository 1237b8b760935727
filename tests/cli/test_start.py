"""What a command does not wait for: other commands, and libraries that its answer does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from closecall import nearest
from closecall.cli import app
from closecall.cli.application import HOMES
from closecall.consoles import TOLD
from closecall.models.plain import load_plain
from closecall.readers.plain_engines import onnx_bytes
from closecall.verdict.saved import save_verdict

PROGRAM = """
import json, sys
sys.argv = ["closecall", *json.loads(sys.argv[1])]
from closecall.cli import main
try:
    main()
except SystemExit as ended:
    print()
    print(ended.code, sorted(name for name in json.loads(sys.stdin.read()) if name in sys.modules))
"""
HEAVY = ["matplotlib", "pandas", "rich", "scipy.linalg", "scipy.optimize", "sklearn", "torch"]


def loaded_by(*arguments: str | Path) -> str:
    """The exit code of a command, run by an interpreter of its own, and the heavy modules that it loaded."""
    given = [sys.executable, "-c", PROGRAM, json.dumps([str(argument) for argument in arguments])]
    nobody_looks = {name: value for name, value in os.environ.items() if name not in TOLD}
    done = subprocess.run(
        given,
        input=json.dumps(HEAVY),
        env=nobody_looks,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.splitlines()[-1]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    # A bar from top to bottom, which is a one to every model of the zoo.
    pixels = np.zeros((1, 28, 28), dtype=np.float32)
    pixels[:, 5:23, 13:15] = 0.9
    np.save(tmp_path / "one.npy", pixels)
    return tmp_path / "one.npy"


@pytest.mark.parametrize("model", ["zoo:mnist-dnn1", "model.onnx"])
def test_a_search_by_linear_programs_needs_no_torch(model: str, picture: Path, tmp_path: Path) -> None:
    plain = load_plain("zoo:mnist-dnn1")
    assert plain is not None
    (tmp_path / "model.onnx").write_bytes(onnx_bytes(plain))
    source = model if model.startswith("zoo:") else tmp_path / model
    asked = ("--model", source, "--image", picture, "--norm", "l1")
    assert loaded_by("nearest", *asked, "--target", "paper") == "0 []"


def test_nor_do_boxes_and_linear_bounds_of_convolutional_networks(picture: Path) -> None:
    """However many units they have: what counts is how many are open."""
    asked = ("--image", picture, "--norm", "linf")
    assert loaded_by("nearest", "--model", "zoo:mnist-cnn-stable", *asked) == "0 []"
    assert loaded_by("certify", "--model", "zoo:mnist-cnn-robust", *asked, "--radius", "0.02") == "0 []"


def test_other_commands_on_models_of_the_zoo_need_no_torch(picture: Path) -> None:
    assert loaded_by("predict", "--model", "zoo:mnist-cnn", "--image", picture) == "0 []"
    assert loaded_by("zoo", "--json") == "0 []"


def test_a_replay_asks_torch(picture: Path, tmp_path: Path) -> None:
    verdict = nearest("zoo:mnist-dnn1", np.load(picture))
    save_verdict(verdict, tmp_path / "run", model="zoo:mnist-dnn1")
    assert loaded_by("replay", tmp_path / "run").endswith("'torch']")


def test_every_command_is_where_the_list_says() -> None:
    homes = {
        command.name or command.callback.__name__: command.callback.__module__
        for command in app.registered_commands
    }
    homes |= {"batch": "closecall.cli.batch_stores", "capsules": "closecall.cli.capsules"}
    assert homes == {name: f"closecall.cli.{home}" for name, home in HOMES.items()}
    assert {group.name for group in app.registered_groups} == {"batch", "capsules"}
