"""Ctrl-C for the process that coordinates: heeded between answers, so that none is lost half-way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from closecall.clock import in_main_thread


class Stop:
    """Whether somebody has asked for an end. The second press is not held back."""

    def __init__(self) -> None:
        self.pressed = False
        self._raising = False

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Take Ctrl-C as a wish for the best answers so far, for as long as this lasts."""
        before: Any = signal.getsignal(signal.SIGINT)
        if not callable(before) or not in_main_thread():
            yield
            return

        def press(number: int, frame: Any) -> None:
            again, self.pressed = self.pressed, True
            if self._raising or again:
                before(number, frame)

        signal.signal(signal.SIGINT, press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let the first press interrupt what is done here, such as a search in this process."""
        self._raising = True
        try:
            yield
        finally:
            self._raising = False
