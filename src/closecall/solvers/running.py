"""Run a solver in a thread of its own, so that Ctrl-C and progress stay with the caller.

The solver's callbacks only write numbers into a `Pulse`; the calling thread reads it, calls `on_progress`,
and tells the solver to stop on Ctrl-C or when `on_progress` raises.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from closecall.milp import OnProgress

SECONDS_BETWEEN_LOOKS = 0.05


@dataclass
class Pulse:
    """The latest numbers of a running solver."""

    lower: float = -math.inf
    upper: float = math.inf
    nodes: int = 0
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started


def run_apart(
    work: Callable[[], None], stop: Callable[[], None], pulse: Pulse, on_progress: OnProgress | None
) -> bool:
    """Do `work` in a thread and return whether Ctrl-C ended it.

    `stop` may be called at any moment while `work` runs and must make it return soon. What `work` or
    `on_progress` raises is raised again here, after `work` has returned. A second Ctrl-C is not held back.
    """
    done = threading.Event()
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    interrupted = False
    try:
        threading.Thread(target=guarded, name="closecall-solver", daemon=True).start()
        _watch(done, pulse, on_progress)
    except KeyboardInterrupt:
        interrupted = not done.is_set()
        stop()
    except BaseException:
        stop()
        done.wait()
        raise
    done.wait()
    if failures:
        raise failures[0]
    return interrupted


def _watch(done: threading.Event, pulse: Pulse, on_progress: OnProgress | None) -> None:
    told = None
    while not done.wait(SECONDS_BETWEEN_LOOKS):
        numbers = (pulse.lower, pulse.upper, pulse.nodes)
        if on_progress is not None and numbers != told:
            told = numbers
            on_progress(*numbers, pulse.seconds)
