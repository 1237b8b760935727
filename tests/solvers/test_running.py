"""The thread in which solvers run, with work that is easy to see through."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading

import pytest

from closecall.milp import EnoughError
from closecall.solvers.running import Pulse, run_apart


def test_work_is_done_elsewhere_and_waited_for() -> None:
    threads: list[threading.Thread] = []
    interrupted = run_apart(lambda: threads.append(threading.current_thread()), lambda: None, Pulse(), None)
    assert not interrupted
    assert threads
    assert threads[0] is not threading.current_thread()


def test_what_work_raises_is_raised_here() -> None:
    def work() -> None:
        raise LookupError("in the solver")

    with pytest.raises(LookupError, match="in the solver"):
        run_apart(work, lambda: None, Pulse(), None)


def test_ctrl_c_stops_the_work() -> None:
    stopped = threading.Event()

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        assert stopped.wait(60)

    assert run_apart(work, stopped.set, Pulse(), None)


@pytest.mark.skipif(
    sys.platform == "win32", reason="the C library's signal() is taken from the process itself"
)
def test_ctrl_c_reaches_us_though_the_solver_takes_the_signal() -> None:
    ignore = ctypes.c_void_p(1)
    stopped, looked = threading.Event(), threading.Event()
    pulse = Pulse()

    def work() -> None:
        ctypes.CDLL(None).signal(int(signal.SIGINT), ignore)
        pulse.nodes = 1
        assert looked.wait(60)
        pulse.nodes = 2
        assert stopped.wait(60)

    def watch(lower: float, upper: float, nodes: int, seconds: float) -> None:
        if nodes == 1:
            looked.set()
        elif nodes == 2:
            signal.raise_signal(signal.SIGINT)

    assert run_apart(work, stopped.set, pulse, watch)


def test_ctrl_c_is_not_lost_when_the_work_has_just_ended() -> None:
    def watch(lower: float, upper: float, nodes: int, seconds: float) -> None:
        looked.set()
        thread.join()
        signal.raise_signal(signal.SIGINT)

    def work() -> None:
        nonlocal thread
        thread = threading.current_thread()
        assert looked.wait(60)

    looked = threading.Event()
    thread = threading.current_thread()
    assert run_apart(work, lambda: None, Pulse(), watch)


def test_a_solver_that_does_not_listen_at_first_is_told_again() -> None:
    calls: list[int] = []
    stopped = threading.Event()

    def stop() -> None:
        calls.append(1)
        if len(calls) == 3:
            stopped.set()

    def fail(lower: float, upper: float, nodes: int, seconds: float) -> None:
        raise ArithmeticError("from on_progress")

    with pytest.raises(ArithmeticError, match="from on_progress"):
        run_apart(lambda: stopped.wait(60) and None, stop, Pulse(), fail)
    assert len(calls) == 3


def test_whoever_watches_may_say_that_it_is_enough() -> None:
    stopped = threading.Event()

    def watch(lower: float, upper: float, nodes: int, seconds: float) -> None:
        raise EnoughError

    assert not run_apart(lambda: stopped.wait(60) and None, stopped.set, Pulse(), watch)
    assert stopped.is_set()


def test_progress_is_told_in_the_callers_thread_and_only_when_new() -> None:
    pulse = Pulse()
    told: list[tuple[float, float, int, threading.Thread]] = []
    enough = threading.Event()

    def work() -> None:
        for nodes in range(1, 4):
            pulse.lower, pulse.upper, pulse.nodes = nodes / 10, 1.0, nodes
            assert seen[nodes].wait(60)
        enough.wait(0.2)

    seen = {nodes: threading.Event() for nodes in range(1, 4)}

    def tell(lower: float, upper: float, nodes: int, seconds: float) -> None:
        told.append((lower, upper, nodes, threading.current_thread()))
        if nodes in seen and upper == 1.0:
            seen[nodes].set()

    run_apart(work, enough.set, pulse, tell)
    assert {thread for _, _, _, thread in told} == {threading.current_thread()}
    assert len(set(told)) == len(told)
    assert told[-1][:3] == (0.3, 1.0, 3)
