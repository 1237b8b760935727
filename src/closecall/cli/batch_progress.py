"""What a batch shows: running searches, a bar and counts on a terminal; elsewhere a line for each answer."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from closecall.cli.output import print_json, print_line
from closecall.cli.progress import sentence
from closecall.consoles import may_show_progress, shows_progress, stderr_console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from closecall.batches.answers import Reply
    from closecall.batches.items import Item

BAR = 32  # letters
MOST_LINES = 12  # of running searches; a cluster may have hundreds


class BatchProgress:
    """Hears of every interval and answer, and shows or prints them."""

    def __init__(self, class_names: tuple[str, ...], *, as_json: bool, live: bool) -> None:
        self.class_names, self.as_json, self.live = class_names, as_json, live
        self.total = self.known = self.done = 0
        self.memory = 0
        self.counts: Counter[str] = Counter()
        self.running: dict[str, tuple[Item, float, float, int, float]] = {}
        self.began = time.perf_counter()

    def begins(self, total: int, known: int) -> None:
        self.total, self.known, self.began = total, known, time.perf_counter()
        if known:
            plural = "question is" if known == 1 else "questions are"
            print_line(f"{known:,} of {total:,} {plural} answered in the store already.", self.as_json)

    def improves(self, item: Item, lower: float, upper: float, nodes: int, seconds: float) -> None:
        self.running[item.key] = item, lower, upper, nodes, time.perf_counter() - seconds

    def ends(self, item: Item, reply: Reply) -> None:
        self.running.pop(item.key, None)
        self.done += 1
        self.counts[reply.outcome] += 1
        self.memory = max(self.memory, reply.memory)
        if self.as_json:
            print_json(record(item, reply))
        elif not self.live:
            print_line(f"{place(item)}: {self.said(reply)}", as_json=False)

    def said(self, reply: Reply) -> str:
        if reply.verdict is None:
            return f"{reply.outcome.capitalize()}: {reply.note}"
        return reply.verdict.summary(self.class_names or None)

    def __rich__(self) -> RenderableType:
        """A line for each running search, then the bar."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = time.perf_counter()
        shown = [
            Text(f"{place(item)}: {sentence('distance', lower, upper, nodes, now - began)}")
            for item, lower, upper, nodes, began in [*self.running.values()][-MOST_LINES:]
        ]
        total = Table.grid(padding=(0, 1))
        completed = self.known + self.done
        total.add_row(ProgressBar(max(1, self.total), completed, width=BAR), Text(self.counted(now)))
        return Group(*shown, total)

    def counted(self, now: float) -> str:
        """Such as: 312 of 1,000 · 41 min left · 300 nearest, 12 unresolved."""
        left = self.total - self.known - self.done
        parts = [f"{self.known + self.done:,} of {self.total:,}"]
        if self.done and left:
            parts.append(f"{duration((now - self.began) / self.done * left)} left")
        if self.counts:
            parts.append(counts_said(self.counts))
        return " · ".join(parts)


def counts_said(counts: Counter[str]) -> str:
    """The outcomes and how often each, the most frequent first."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common())


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def place(item: Item) -> str:
    where = f"{item.place.dataset} " if item.place.dataset else "image "
    return f"{item.place.model}, {where}{item.place.index}"


def record(item: Item, reply: Reply) -> dict[str, Any]:
    """One answer as one object."""
    found = {} if reply.verdict is None else reply.verdict.to_json()
    where = {"model": item.place.model, "dataset": item.place.dataset, "split": item.place.split}
    rest = {"outcome": reply.outcome, "finished": reply.finished, "note": reply.note, "memory": reply.memory}
    return {**where, "index": item.place.index, "task": item.task, "label": item.label, **found, **rest}


@contextmanager
def showing_batch(class_names: tuple[str, ...], as_json: bool) -> Iterator[BatchProgress]:
    """Live on a terminal, in lines elsewhere."""
    console = stderr_console() if may_show_progress() else None
    if console is None or not shows_progress(console):
        yield BatchProgress(class_names, as_json=as_json, live=False)
        return
    from rich.live import Live

    shown = BatchProgress(class_names, as_json=as_json, live=True)
    with Live(shown, console=console, transient=True, refresh_per_second=8):
        yield shown
