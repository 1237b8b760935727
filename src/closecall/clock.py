"""A stopwatch for the stages of a search, the time that is left, and a Ctrl-C that is never lost."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

log = logging.getLogger(__name__)


class OutOfTimeError(Exception):
    """A step was left before its end: whoever began it goes on with what is proven so far."""


class Clock:
    """Counts seconds by stage against a limit; after Ctrl-C, whoever looks at it is interrupted."""

    def __init__(self, limit: float) -> None:
        self.began = time.perf_counter()
        self.limit = limit
        self.by_stage: dict[str, float] = {}
        self.at_work = ""  # the stage that is running, for whoever shows what is being waited for
        self.pressed = False

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        self.check()
        return max(0.0, self.limit - self.seconds)

    @property
    def deadline(self) -> float:
        """The perf_counter time at which the limit is reached."""
        return self.began + self.limit

    def share(self, part: float) -> float:
        """The perf_counter time at which a part of the time that is left will be over."""
        return time.perf_counter() + part * self.left

    def load(self, module: str) -> None:
        """Import what a search turns out to need; what is slow to load takes nothing of its limit."""
        began = time.perf_counter()
        importlib.import_module(module)
        self.began += time.perf_counter() - began

    def check(self) -> None:
        """Be interrupted by a Ctrl-C that a library or a destructor has swallowed."""
        if self.pressed:
            raise KeyboardInterrupt

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.check()
        began, before = time.perf_counter(), self.at_work
        self.at_work = name
        try:
            yield
        finally:
            self.at_work = before
            took = time.perf_counter() - began
            self.by_stage[name] = self.by_stage.get(name, 0.0) + took
            log.debug("%s took %.3f s", name, took)

    @contextmanager
    def noting_interrupts(self) -> Iterator[None]:
        """Remember a Ctrl-C beside raising it: an exception raised inside a destructor is lost."""

        before: Any = signal.getsignal(signal.SIGINT)
        if not callable(before) or not in_main_thread():
            yield
            return

        def note(number: int, frame: Any) -> None:
            self.pressed = True
            before(number, frame)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self.pressed = False


@contextmanager
def holding_interrupts_back() -> Iterator[None]:
    """Finish a short piece of work, such as the replay of an answer, in spite of Ctrl-C.

    Whoever counts presses hears of it afterwards; nobody is interrupted any more.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if not callable(before) or not in_main_thread():
        yield
        return
    held: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *press: held.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    for press in held:
        with suppress(KeyboardInterrupt):
            before(*press)


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def out_of_time(until: float) -> bool:
    return time.perf_counter() >= until


def usable_threads(wanted: int) -> int:
    """As many threads as are wanted, but no more than the machine lets this process use."""
    return max(1, min(wanted, usable_cores()))


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
