"""Run a solver in a thread of its own, so that Ctrl-C and progress stay with the caller.

The solver's callbacks only write numbers into a `Pulse`; the calling thread reads it, calls `on_progress`,
and tells the solver to stop on Ctrl-C or when `on_progress` raises.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from closecall.milp import EnoughError, OnProgress, Solution

SECONDS_BETWEEN_LOOKS = 0.05


@dataclass
class Pulse:
    """The latest numbers of a running solver."""

    lower: float = -math.inf
    upper: float = math.inf
    nodes: int = 0
    enough: bool = False  # whether the caller has seen enough, and nobody pressed Ctrl-C
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started


def run_apart(
    work: Callable[[], None], stop: Callable[[], None], pulse: Pulse, on_progress: OnProgress | None
) -> bool:
    """Do `work` in a thread and return whether Ctrl-C was pressed meanwhile.

    `stop` must make `work` return soon; it is called again and again until then, since a solver may not
    listen yet. What `work` or `on_progress` raises is raised again here, after `work` has returned, but for
    EnoughError. A second Ctrl-C is not held back.
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
        interrupted = True
        _stop_and_wait(stop, done)
    except EnoughError:
        pulse.enough = True
        _stop_and_wait(stop, done)
    except BaseException:
        _stop_and_wait(stop, done)
        raise
    if failures:
        raise failures[0]
    return interrupted


def mark_interrupted(solution: Solution, interrupted: bool, pulse: Pulse) -> Solution:
    """Say "interrupted" after Ctrl-C alone: even of a solve that had just finished, but of none that had
    only been told to stop, whatever the solver calls that."""
    if interrupted:
        return replace(solution, status="interrupted")
    if pulse.enough and solution.status == "interrupted":
        return replace(solution, status="limit")
    return solution


def _watch(done: threading.Event, pulse: Pulse, on_progress: OnProgress | None) -> None:
    told = None
    pause = 0.001
    while not done.wait(pause):
        pause = min(2 * pause, SECONDS_BETWEEN_LOOKS)
        _take_ctrl_c_back()
        numbers = (pulse.lower, pulse.upper, pulse.nodes)
        if on_progress is not None and numbers != told:
            told = numbers
            on_progress(*numbers, pulse.seconds)


def _take_ctrl_c_back() -> None:
    """Install Python's own handler again: Gurobi and CPLEX put theirs in its place when they start."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


def _stop_and_wait(stop: Callable[[], None], done: threading.Event) -> None:
    while not done.is_set():
        stop()
        done.wait(SECONDS_BETWEEN_LOOKS)
