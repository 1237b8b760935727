"""The command line as a user meets it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from closecall.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run closecall with arguments in this process; give its exit code and what it printed."""

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["closecall", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), said.out, said.err)

    return call


@pytest.fixture(scope="session")
def pixels(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write four pixels as an image file."""

    def write(*values: float) -> Path:
        path = tmp_path_factory.mktemp("image") / "image.npy"
        np.save(path, np.array(values, dtype=np.float32).reshape(1, 2, 2))
        return path

    return write
