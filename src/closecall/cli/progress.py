"""The proven interval while a search goes on: live on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from closecall.milp import OnProgress

SECONDS_BEFORE_THE_FIRST_LINE = 2.0


@contextmanager
def showing_interval(what: str = "distance", console: Console | None = None) -> Iterator[OnProgress]:
    """Give an `on_progress` that shows the interval of `what` on stderr."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield SparseLines(console, what)
        return
    with console.status("looking for a first answer") as status:

        def show(lower: float, upper: float, nodes: int, seconds: float) -> None:
            status.update(sentence(what, lower, upper, nodes, seconds))

        yield show


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
