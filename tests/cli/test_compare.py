"""`closecall compare` as a user meets it: bad input, Ctrl-C and going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SECONDS_TO_WAIT = 60


@pytest.fixture(autouse=True)
def _same_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    # The command pins these for good, which other tests should not notice.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dataset", "nothing"], "neither a known data set nor a path"),
        (["--dataset", "multimnist"], "two classes in each image"),
        (["--dataset", "digits", "--models", "dnn,rnn"], "there is no model 'rnn' to train"),
        (["--dataset", "digits", "--models", ","], "nothing to compare"),
        (["--dataset", "digits", "--model", "dnn"], "--model takes NAME=PATH"),
        (["--dataset", "digits", "--model", "dnn=zoo:mnist-50x2"], "takes images of shape"),
        (["--dataset", "digits", "--preset", "slow"], "choose quick or full"),
        (["--dataset", "digits", "--norm", "l9"], "l9"),
        (["--dataset", "digits", "--seeds", "0"], "--seeds must be at least 1"),
    ],
)
def test_bad_input_is_one_sentence(run: Callable, tmp_path: Path, arguments: list[str], words: str) -> None:
    ran = run("compare", *arguments, "--out", tmp_path / "out")
    assert ran.code == 2
    assert words.lower() in ran.err.lower()
    assert len(ran.err.strip().splitlines()) == 1


def test_a_folder_that_cannot_be_made(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run("compare", "--dataset", "digits", "--out", tmp_path / "file" / "out")
    assert ran.code == 2
    assert "Cannot write into the folder" in ran.err


def start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "closecall", "compare", "--dataset", "digits", "--models", "dnn",
               "--seeds", "1", "--images", "2", "--out", str(out)]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_keeps_what_was_measured_and_the_same_command_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "measurements.jsonl"
    first = start(tmp_path)
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while not (kept.exists() and kept.stat().st_size) and first.poll() is None:
        assert time.monotonic() < deadline, "nothing was measured"
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGINT)
    said, complained = first.communicate(timeout=SECONDS_TO_WAIT)
    assert first.returncode == 130, said + complained
    assert complained.strip().endswith("run the same command again to go on.")
    assert "Traceback" not in complained
    before = kept.read_bytes()
    assert not (tmp_path / "results.json").exists()
    second = start(tmp_path)
    said, complained = second.communicate(timeout=SECONDS_TO_WAIT)
    assert second.returncode == 0, complained
    assert "are kept from before" in said
    assert kept.read_bytes().startswith(before)
    results = json.loads((tmp_path / "results.json").read_text())
    assert [model["name"] for model in results["models"]] == ["dnn"]
    assert results["how"]["command"].startswith("closecall compare --dataset digits")
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "csv" / "distances.csv").exists()
