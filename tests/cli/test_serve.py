"""`closecall serve` from the command line: what it says when it cannot serve, and that it can be left out."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from closecall.cli import application
from closecall.errors import MissingExtraError


def said(*arguments: str) -> str:
    """The one sentence of a command that is refused."""
    done = subprocess.run(
        [sys.executable, "-m", "closecall", "serve", *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line.removeprefix("closecall: ")


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert said("--port", str(port)).startswith(
            f"Port {port} of 127.0.0.1 cannot be used (Address already in use)"
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "--port takes a number from 0 to 65535, not 70000."),
        (["--running", "0"], "--time-limit takes seconds above 0, and --running a number from 1 to 64."),
        (["--model", "nowhere.onnx"], "nowhere.onnx is not a model: give an .onnx file"),
        (["--model", "zoo:none"], "There is no zoo model 'none'"),
        (["--host", "no such host"], "no such host is no address to listen at"),
    ],
)
def test_a_mistake_is_told_before_anything_is_served(arguments: list[str], words: str) -> None:
    assert said(*arguments).startswith(words)


def test_a_model_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"\x08 is no model")
    assert "bad.onnx" in said("--model", str(path))


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    application.load_commands(["serve"])
    from closecall.cli import serve

    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "closecall\[web\]"'):
        serve.serve()
