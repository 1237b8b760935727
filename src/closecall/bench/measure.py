"""Put one question to one contender and time the answer, on as many threads as the yardstick says."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from closecall._version import __version__
from closecall.bench.questions import BenchQuestion
from closecall.bench.record import Measurement
from closecall.bench.yardsticks import Contender, Run, Yardstick
from closecall.errors import ClosecallError, MissingExtraError
from closecall.solvers import available

PACKAGES = ("numpy", "scipy", "torch", "highspy", "pyscipopt", "gurobipy")


def identify(yardstick: Yardstick, run: Run, question: BenchQuestion, contender: Contender) -> dict[str, Any]:
    """The fields of a measurement that are known before it is made."""
    return {
        **question.identity(),
        "yardstick": yardstick.name,
        "run": run,
        "method": contender.method,
        "solver": contender.solver,
        "pixels": contender.pixels,
        "limit": float(contender.limit(run)),
        "threads": yardstick.threads,
        "version": __version__,
        "network_sha256": question.classifier.network.fingerprint,
    }


def measure(question: BenchQuestion, contender: Contender, known: dict[str, Any]) -> Measurement:
    """Ask and time; a refusal is an answer too, and an error is kept so that the other questions go on."""
    stamp: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
    }
    if contender.solver not in available():
        sentence = str(MissingExtraError(f"The {contender.solver} solver", contender.solver))
        return Measurement(**known, **stamp, outcome="missing", seconds=0.0, note=sentence)
    load_beforehand(contender.solver)
    before = torch.get_num_threads()
    torch.set_num_threads(known["threads"])
    began = time.perf_counter()
    try:
        with raising_every_interrupt():
            answered = question.answer(contender, known["limit"], known["threads"])
    except ClosecallError as error:
        answered = {"outcome": "refused", "note": str(error)}
    except Exception as error:
        answered = {"outcome": "failed", "note": f"{type(error).__name__}: {error}"}
    finally:
        torch.set_num_threads(before)
    answered.setdefault("seconds", time.perf_counter() - began)
    if contender.method == "auto" and answered["outcome"] not in ("refused", "failed"):
        answered["undecided"] = question.undecided(answered.get("distance"))
    return Measurement(**known, **stamp, **answered)


@cache
def load_beforehand(solver: str) -> None:
    """Import what a first search would import, so that no question pays for it."""
    importlib.import_module("closecall.search.crown")
    importlib.import_module(f"closecall.solvers.{solver}")


class Noticing:
    """A handler of Ctrl-C that remembers it was pressed."""

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        signal.default_int_handler(number, frame)


@contextmanager
def raising_every_interrupt() -> Iterator[None]:
    """Raise Ctrl-C here even if the search took it as a wish for its best answer so far.

    Contexts may be nested: one that opens after a Ctrl-C that nobody heeded raises at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if isinstance(before, Noticing) and before.pressed:
        raise KeyboardInterrupt
    notice = Noticing()
    signal.signal(signal.SIGINT, notice)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if notice.pressed:
        raise KeyboardInterrupt


@cache
def describe_machine() -> str:
    """The processor, the system and the versions that matter, in one line."""
    parts = [f"{processor()}, {os.cpu_count()} cores, {platform.system()}"]
    parts.append(f"Python {platform.python_version()}")
    for package in PACKAGES:
        try:
            parts.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "; ".join(parts)


def processor() -> str:
    details = Path("/proc/cpuinfo")
    if details.is_file():
        for line in details.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
