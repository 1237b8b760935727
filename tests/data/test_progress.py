from __future__ import annotations

import os
import subprocess
import sys

import pytest

from closecall.data.progress import transfer

PROGRAM = """
from closecall.data.progress import transfer
with transfer("Fetching [b]x", 1000) as advance:
    advance(1000)
"""


def test_elsewhere_than_on_a_terminal_it_is_one_plain_line_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long_name = "Fetching " + "x" * 300
    with transfer(long_name, 1000) as advance:
        advance(1000)
    captured = capsys.readouterr()
    assert captured.err == f"{long_name}\n"
    assert captured.out == ""


def test_on_a_terminal_it_is_a_bar_on_stderr() -> None:
    terminal, attached = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=attached, env=environment, check=True
    )
    os.close(attached)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert done.stdout == b""
    assert "Fetching [b]x" in shown
    assert "━" in shown
    assert "1.0/1.0 kB" in shown
