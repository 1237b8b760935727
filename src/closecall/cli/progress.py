"""What a command waits for and the proven interval of its search, live on a terminal and nowhere else."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from closecall.consoles import may_show_progress, shows_progress, stderr_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from closecall.clock import Clock
    from closecall.milp import OnProgress

SECONDS_BEFORE_SECONDS = 2.0
STAGES = {
    "read": "reading the model",
    "bounds": "bounding units",
    "forms": "bounding capsules",
    "attack": "attacking",
    "encode": "writing the model",
    "tighten": "tightening bounds",
    "walk": "coming nearer",
    "search": "searching",
    "replay": "replaying",
}


def waiting(what: str, console: Console | None = None) -> AbstractContextManager[object]:
    """Say on a terminal what is being waited for, and after a while for how long."""
    return live(Wait(what), console)


@contextmanager
def showing_interval(
    what: str = "distance", console: Console | None = None, clock: Clock | None = None
) -> Iterator[OnProgress]:
    """Give an `on_progress` that shows the interval of `what` on stderr, and what the clock says is done."""
    shown = LiveLine(what, clock)
    with live(shown, console):
        yield shown


def live(shown: Wait | LiveLine, console: Console | None = None) -> AbstractContextManager[object]:
    """A spinner beside what is shown, gone when it is over; nothing where nobody looks.

    Lines printed meanwhile go above it where both are on a terminal; into a file they go as ever.
    """
    if console is None and not may_show_progress():
        return nullcontext()
    console = console or stderr_console()
    if not shows_progress(console):
        return nullcontext()
    from rich.live import Live
    from rich.spinner import Spinner

    spinner = Spinner("dots", text=shown, style="status.spinner")
    above = sys.stdout is not None and sys.stdout.isatty()
    return Live(spinner, console=console, transient=True, refresh_per_second=12.5, redirect_stdout=above)


class Wait:
    """What is being waited for; the seconds go on."""

    def __init__(self, what: str) -> None:
        self.what, self.began = what, time.perf_counter()

    def __rich__(self) -> Text:
        from rich.text import Text

        seconds = time.perf_counter() - self.began
        return Text(self.what if seconds < SECONDS_BEFORE_SECONDS else f"{self.what} · {seconds:.0f} s")


class LiveLine:
    """The best interval of all reports; the seconds go on between two of them."""

    def __init__(self, what: str, clock: Clock | None = None) -> None:
        self.what, self.clock = what, clock
        self.lower, self.upper, self.nodes = -math.inf, math.inf, 0
        self.began = time.perf_counter()

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        """Take a report: every bound holds, so one that is looser than an earlier one says nothing new."""
        self.upper = min(self.upper, upper)
        self.lower = min(max(self.lower, lower), self.upper)
        self.nodes = nodes

    def __rich__(self) -> Text:
        from rich.text import Text

        seconds = time.perf_counter() - self.began
        stage = "" if self.clock is None else STAGES.get(self.clock.at_work, "")
        return Text(sentence(self.what, self.lower, self.upper, self.nodes, seconds, stage))


def sentence(what: str, lower: float, upper: float, nodes: int, seconds: float, stage: str = "") -> str:
    """Such as: 3.61 ≤ distance ≤ 4.29 · searching · 1,204 nodes · 7 s; an unknown end is a question mark."""
    doing = f" · {stage}" if stage else ""
    if math.isinf(lower) and math.isinf(upper):
        return f"looking for a first answer{doing} · {seconds:.0f} s"
    left, right = ("?" if math.isinf(end) else f"{end:.4g}" for end in (lower, upper))
    counted = f" · {nodes:,} nodes" if nodes else ""
    return f"{left} ≤ {what} ≤ {right}{doing}{counted} · {seconds:.0f} s"
