"""Keep a library's own remarks, written below Python, from standard error, and let all else through."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STANDARD_ERROR = 2
SECONDS_TO_DRAIN = 1.0


@contextmanager
def without_lines(beginning: bytes) -> Iterator[None]:
    """Drop the lines that begin so from whatever this process writes to standard error meanwhile."""
    sys.stderr.flush()
    try:
        saved = os.dup(STANDARD_ERROR)
    except OSError:  # there is no standard error to keep clean
        yield
        return
    read_end, write_end = os.pipe()
    os.dup2(write_end, STANDARD_ERROR)
    os.close(write_end)
    pump = threading.Thread(target=_pump, args=(read_end, saved, beginning), daemon=True)
    pump.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, STANDARD_ERROR)
        pump.join(SECONDS_TO_DRAIN)


def _pump(read_end: int, saved: int, beginning: bytes) -> None:
    held = b""
    while chunk := os.read(read_end, 65536):
        *lines, held = (held + chunk).split(b"\n")
        _write(saved, b"".join(line + b"\n" for line in lines if not line.startswith(beginning)))
        if not (held.startswith(beginning) or beginning.startswith(held)):
            _write(saved, held)
            held = b""
    _write(saved, b"" if held.startswith(beginning) else held)
    os.close(read_end)
    os.close(saved)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
