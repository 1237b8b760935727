"""The proven interval while a search goes on: live on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from closecall.milp import OnProgress

SECONDS_BEFORE_THE_FIRST_LINE = 2.0


def stderr_console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def waiting(what: str, console: Console | None = None) -> Iterator[None]:
    """Say on a terminal what is being waited for."""
    console = console or stderr_console()
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def showing_interval(what: str = "distance", console: Console | None = None) -> Iterator[OnProgress]:
    """Give an `on_progress` that shows the interval of `what` on stderr."""
    console = console or stderr_console()
    if not console.is_terminal:
        yield SparseLines(console, what)
        return
    shown = LiveLine(what)
    with console.status(shown):
        yield shown


class LiveLine:
    """The latest interval; the seconds go on between two reports."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.latest: tuple[float, float, int] | None = None
        self.began = time.perf_counter()

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        self.latest = lower, upper, nodes

    def __rich__(self) -> Text:
        seconds = time.perf_counter() - self.began
        if self.latest is None:
            return Text(f"looking for a first answer · {seconds:.0f} s")
        return Text(sentence(self.what, *self.latest, seconds))


class SparseLines:
    """A plain line after two seconds, then each time the search has gone on for twice as long."""

    def __init__(self, console: Console, what: str) -> None:
        self.console, self.what = console, what
        self.next = SECONDS_BEFORE_THE_FIRST_LINE

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        if seconds >= self.next:
            self.next = 2 * seconds
            self.console.print(sentence(self.what, lower, upper, nodes, seconds))


def sentence(what: str, lower: float, upper: float, nodes: int, seconds: float) -> str:
    """Such as: 3.61 ≤ distance ≤ 4.29 · 1,204 nodes · 7 s."""
    left = "" if math.isinf(lower) else f"{lower:.4g} ≤ "
    right = "" if math.isinf(upper) else f" ≤ {upper:.4g}"
    return f"{left}{what}{right} · {nodes:,} nodes · {seconds:.0f} s"
