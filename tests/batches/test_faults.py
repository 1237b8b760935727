"""What a batch survives: each fault is a real one, done to real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from closecall.batches.store import Store
from closecall.batches.tables import rows
from closecall.errors import InputError

SECONDS = 40.0
GONE = "The scheduler is gone: every answer so far is kept, run the same command again to go on."
SLOW = ("--norm", "linf", "--method", "milp-basic", "--time-limit", 100)
QUICK = ("--norm", "linf", "--time-limit", 10)

# The worker that is asked about image 2 is killed by kill -9, whichever it is.
DEADLY = """
import os, signal
import closecall.batches.worker as worker
from closecall.batches.asking import ask
def deadly(classifier, item, *rest):
    if item.place.index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return ask(classifier, item, *rest)
worker.ask = deadly
"""
# A search that takes no notice of Ctrl-C.
DEAF = """
import time
import closecall.batches.running as running
def ask(*_):
    while True:
        try:
            print("asked", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            print("no", flush=True)
running.ask = ask
"""


def table(path: Path) -> list[dict[str, Any]]:
    with Store.reading(path) as store:
        return [*rows(store)]


def until(holds: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until something holds while a process runs."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


def begun(path: Path) -> bool:
    """Whether some running search has told its interval."""
    try:
        return any(row["outcome"] == "begun" for row in table(path))
    except InputError:  # not there yet, or only just being made
        return False


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that answer; spawning has a tracker of its own beside them."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_kill_the_coordinator(closecall_process, small: Path, tmp_path: Path) -> None:
    """What was answered is kept and not asked again."""
    store = tmp_path / "r.sqlite"
    given = ("batch", "--model", small, "--dataset", "digits", "--indices", "0:40", *QUICK, "--store", store)
    with closecall_process(*given, "--workers", 0) as process:
        said = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    answered = {row["index"]: row["answered"] for row in table(store) if row["answered"]}
    assert 5 <= len(said) <= len(answered) <= len(said) + 1
    assert len(answered) < 40
    with closecall_process(*given, "--workers", 0) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert f"{40 - len(answered)} asked now" in out
    after = {row["index"]: row for row in table(store)}
    assert {row["outcome"] for row in after.values()} == {"nearest"}
    assert all(after[index]["answered"] == then for index, then in answered.items())


def test_ctrl_c_once_keeps_the_intervals_and_nobody_else_writes(
    closecall_process, large: Path, tmp_path: Path
) -> None:
    store = tmp_path / "r.sqlite"
    given = ("batch", "--model", large, "--dataset", "digits", "--indices", "0:4", *SLOW, "--store", store)
    with closecall_process(*given, "--workers", 0) as process:
        until(lambda: begun(store), process)
        with closecall_process(*given, "--workers", 0) as second:
            _, err = second.communicate(timeout=SECONDS)
            assert second.returncode == 2
            assert "Another batch is writing to" in err
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "interrupted; what was proven is kept" in err
    counts = Counter(row["outcome"] for row in table(store))
    assert counts["waiting"] == 3
    (cut,) = [row for row in table(store) if row["outcome"] != "waiting"]
    assert cut["outcome"] in ("adversarial", "unresolved")
    assert cut["finished"] is False
    assert cut["lower_bound"] >= 0
    assert "interrupted: the interval holds as far as it was proven" in cut["note"]


def test_ctrl_c_twice_ends_at_once(closecall_process, large: Path, tmp_path: Path) -> None:
    """Stopped for good while the answers of the first press are still being waited for."""
    store = tmp_path / "r.sqlite"
    given = ("batch", "--model", large, "--dataset", "digits", "--indices", "0:4", *SLOW, "--store", store)
    with closecall_process(*given, "--workers", 0, program=DEAF) as process:
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "no\n"
        process.send_signal(signal.SIGINT)
        process.wait(timeout=10)
    assert process.returncode == 130
    assert {row["outcome"] for row in table(store)} == {"waiting"}


def test_a_disk_that_is_full(closecall_process, small: Path, tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    given = ("batch", "--model", small, "--dataset", "digits", "--indices", "0:60", *QUICK, "--store", store)
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))"
    with closecall_process(*given, "--workers", 0, program=limit) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert err.startswith(f"closecall: Cannot write the store {store}: ")
    assert "all earlier answers are kept: make room and run it again" in err
    said = [line for line in out.splitlines() if "Nearest" in line or "misclassified" in line]
    kept = [row for row in table(store) if row["answered"]]
    assert 0 < len(said) == len(kept) < 60
    with closecall_process(*given, "--workers", 0) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert f"{60 - len(kept)} asked now" in out


def test_a_worker_that_is_killed_and_ctrl_c_in_a_cluster(
    closecall_process, large: Path, tmp_path: Path
) -> None:
    """Another worker takes its place; then Ctrl-C brings back what both have proven."""
    store = tmp_path / "r.sqlite"
    given = ("batch", "--model", large, "--dataset", "digits", "--indices", "0:4", *SLOW, "--store", store)
    with closecall_process(*given, "--workers", 2) as process:
        until(lambda: begun(store), process)
        before = {worker.pid for worker in workers_of(process)}
        assert len(before) == 2
        psutil.Process(min(before)).kill()
        until(lambda: len({worker.pid for worker in workers_of(process)} - before) == 1, process)
        until(lambda: sum(row["outcome"] == "begun" for row in table(store)) >= 2, process)
        for target in [process, *workers_of(process)]:  # as a terminal does
            target.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, err
    cut = [row for row in table(store) if row["finished"] is False]
    assert 1 <= len(cut) <= 2
    assert all("interrupted: the interval holds" in row["note"] for row in cut)
    assert not any(row["outcome"] == "crashed" for row in table(store))


def test_a_question_that_kills_its_worker_three_times(closecall_process, small: Path, tmp_path: Path) -> None:
    store, preload = tmp_path / "r.sqlite", tmp_path / "deadly.py"
    preload.write_text(DEADLY)
    given = ("batch", "--model", small, "--dataset", "digits", "--indices", "0:6", *QUICK, "--store", store)
    more = {"DASK_DISTRIBUTED__WORKER__PRELOAD": str(preload)}
    with closecall_process(*given, "--workers", 2, **more) as process:
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, err
    outcomes = {row["index"]: row["outcome"] for row in table(store)}
    assert outcomes == {index: "crashed" if index == 2 else "nearest" for index in range(6)}
    (crashed,) = [row for row in table(store) if row["outcome"] == "crashed"]
    assert crashed["note"] == "the process that was asked died, 3 times"


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A scheduler and two workers on this machine, as a user would start them."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    place = ["--scheduler-file", str(file), "--no-dashboard"]
    at = ["--host", "127.0.0.1", "--port", "0"]
    scheduler = subprocess.Popen([*dask, "scheduler", *place, *at], **quiet)
    worker = [*dask, "worker", *place, "--nthreads", "1", "--no-nanny", "--death-timeout", "20"]
    workers = [subprocess.Popen(worker, **quiet) for _ in range(2)]
    yield file, scheduler
    for process in (scheduler, *workers):
        process.kill()
        process.wait()


def test_kill_the_scheduler(closecall_process, small: Path, tmp_path: Path, loopback) -> None:
    file, scheduler = loopback
    store = tmp_path / "r.sqlite"
    given = ("batch", "--model", small, "--dataset", "digits", "--indices", "0:60", *QUICK, "--store", store)
    until(file.exists, scheduler)
    with closecall_process(*given, "--scheduler-file", file) as process:
        first = process.stdout.readline()
        assert "digits" in first, process.communicate()
        scheduler.kill()
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert err == f"closecall: {GONE}\n"
    kept = sum(row["answered"] is not None for row in table(store))
    assert 0 < kept < 60
    with closecall_process(*given, "--workers", 0) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert f"{60 - kept} asked now" in out
    assert {row["outcome"] for row in table(store)} <= {"nearest", "adversarial"}
