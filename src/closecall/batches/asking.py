"""One question of a batch, asked in whatever process this is; Ctrl-C leaves the interval proven so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from closecall.ask.nearest import answer
from closecall.batches.answers import Reply
from closecall.batches.items import Item
from closecall.clock import Clock
from closecall.errors import ClosecallError
from closecall.question.effort import Effort
from closecall.readers import Classifier

OnInterval = Callable[[str, float, float, int, float], None]

SECONDS_BETWEEN_INTERVALS = 0.5


class StoppableClock(Clock):
    """A clock that knows afterwards whether its search was stopped, also in a thread without signals."""

    stopped = False

    @contextmanager
    def noting_interrupts(self) -> Iterator[None]:
        with super().noting_interrupts():
            try:
                yield
            finally:
                self.stopped |= self.pressed
        self.pressed = False


class Improving:
    """Passes on the interval of a search when it has improved, at most twice a second."""

    def __init__(self, key: str, tell: OnInterval) -> None:
        self.key, self.tell = key, tell
        self.lower, self.upper = -1.0, float("inf")
        self.last = time.perf_counter()  # a search that is over at once has nothing to pass on

    def __call__(self, lower: float, upper: float, nodes: int, seconds: float) -> None:
        now = time.perf_counter()
        better = lower > self.lower or upper < self.upper
        if better and now - self.last >= SECONDS_BETWEEN_INTERVALS:
            self.lower, self.upper, self.last = max(lower, self.lower), min(upper, self.upper), now
            self.tell(self.key, self.lower, self.upper, nodes, seconds)


def ask(classifier: Classifier, item: Item, effort: Effort, clock: StoppableClock, tell: OnInterval) -> Reply:
    """Search and decide; what closecall refuses is an answer, too, so that the rest goes on."""
    try:
        question = item.pose(classifier, clock)
        verdict = answer(
            classifier, question, effort, clock,
            nearest=item.task == "nearest", on_progress=Improving(item.key, tell),
        )  # fmt: skip
    except ClosecallError as error:
        return Reply(item.key, "failed", note=str(error), memory=peak_memory())
    except Exception as error:  # nobody meant it, but the other questions are worth asking
        note = f"{type(error).__name__}: {error}"
        return Reply(item.key, "failed", note=note, memory=peak_memory())
    reply = Reply(item.key, verdict.outcome, verdict, memory=peak_memory())
    if clock.stopped and not reply.resolved(item.task):
        return Reply(item.key, verdict.outcome, verdict, finished=False, memory=reply.memory)
    return reply


def peak_memory() -> int:
    """The most memory that this process has used so far, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    import sys

    unit: Literal[1, 1024] = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
