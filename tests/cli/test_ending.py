"""How commands end when they are told to stop, or when what they found cannot be written or read."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from closecall import files

# Says on stdout when the search first reports an interval.
TELLING = """
import os
from closecall.cli import main, progress
progress.LiveLine.__call__ = lambda line, *numbers: os.write(1, b"searching\\n")
main()
"""
# Takes no notice of Ctrl-C while the model is read.
STUBBORN = """
import os, time, closecall.readers
from closecall.cli import main
def read(*_):
    line = b"reading\\n"
    while True:
        try:
            os.write(1, line)
            time.sleep(60)
        except KeyboardInterrupt:
            line = b"no\\n"
closecall.readers.read = read
main()
"""


@contextmanager
def running(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_sigterm_ends_a_search_with_the_interval_proven_so_far(tmp_path: Path) -> None:
    from closecall import data

    small = data.load_dataset("digits", "test").image(0)[0]
    np.save(tmp_path / "digit.npy", np.pad(np.kron(small, np.ones((3, 3))), 2).astype(np.float32)[None])
    how = ("--time-limit", 100, "--method", "milp-basic", "--json")
    question = ("--model", "zoo:mnist-50x2", "--image", tmp_path / "digit.npy", *how)
    with running(TELLING, "nearest", *question) as process:
        assert process.stdout.readline() == "searching\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=90)
    answer = json.loads(out.splitlines()[-1])
    assert process.returncode in (0, 3), err
    assert answer["outcome"] in ("adversarial", "unresolved")
    assert "interrupted: the interval holds as far as it was proven" in answer["notes"]
    assert answer["seconds"] < 90


def test_a_second_signal_ends_at_once_what_does_not_heed_the_first(brightest, pixels) -> None:
    question = ("--model", brightest, "--image", pixels(0.9, 0.5, 0.1, 0.0))
    with running(STUBBORN, "nearest", *question) as process:
        assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "no\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert err == ""


def test_sigterm_before_anything_is_known(brightest, pixels) -> None:
    program = (
        "import os, signal, sys, closecall.readers\n"
        "closecall.readers.read = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from closecall.cli import main; main()"
    )
    arguments = ["nearest", "--model", str(brightest), "--image", str(pixels(0.9, 0.5, 0.1, 0.0))]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == ("", "closecall: interrupted before it was done.\n")


def test_handlers_are_as_before_after_a_command(run) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert run("zoo", "--json").code == 0
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("argument", ["zoo", "--help", "--version"])
def test_an_output_that_is_full(argument: str) -> None:
    command = [sys.executable, "-m", "closecall", argument]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "closecall: cannot read or write the output: No space left on device.\n"


def test_a_reader_that_has_seen_enough() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "closecall", "--help"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@contextmanager
def small_disk() -> Iterator[None]:
    """Let no file grow beyond 10,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("as_json", [False, True])
def test_a_disk_that_fills_up_during_the_search_leaves_the_verdict(
    run, brightest, pixels, tmp_path: Path, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe that is too small stands for a disk that still had room when the search began."""
    monkeypatch.setattr(files, "PROBE_BYTES", 10)
    out, options = tmp_path / "out", ["--json"] if as_json else []
    given = ("--model", brightest, "--image", pixels(0.9, 0.5, 0.1, 0.0), "--out", out)
    with small_disk():
        ran = run("nearest", *given, *options)
    assert ran.code == 1
    assert ran.err == f"closecall: Cannot write the answer into {out}: File too large.\n"
    if as_json:
        answer = json.loads(ran.out)
        assert (answer["outcome"], answer["saved"]) == ("nearest", None)
    else:
        assert ran.out.startswith("Nearest: l1 distance 0.401")
        assert "saved in" not in ran.out
    assert not (out / "verdict.json").exists()
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("command", ["nearest", "ideal", "export-milp", "train", "demo"])
def test_a_full_disk_is_found_out_before_the_work(
    run, brightest, pixels, tmp_path: Path, command: str
) -> None:
    image, out = pixels(0.9, 0.5, 0.1, 0.0), tmp_path / "out"
    given = {
        "nearest": ("--model", brightest, "--image", image, "--out", out),
        "ideal": ("--model", brightest, "--target", 1, "--out", out),
        "export-milp": ("--model", brightest, "--image", image, "--out", out / "model.mps"),
        "train": ("--sizes", 4, "--out", out),
        "demo": ("--out", out),
    }
    with small_disk():
        ran = run(command, *given[command])
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(r"closecall: Cannot .*: File too large; choose another.*\n", ran.err)
    assert list(out.iterdir()) == []


def test_a_file_that_cannot_be_replaced(tmp_path: Path) -> None:
    from closecall.errors import InputError

    with pytest.raises(InputError, match=r"Cannot write .*: it is a folder; choose another file"):
        files.prepare_file(tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"Cannot write .*: Not a directory; choose another file"):
        files.prepare_file(tmp_path / "file" / "below")
    files.prepare_file(tmp_path / "new" / "below")
    assert list((tmp_path / "new").iterdir()) == []
