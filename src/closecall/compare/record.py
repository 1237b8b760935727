"""Measurements that outlive an interruption: one JSON line for each, keyed by what was measured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from closecall.bench.measure import raising_every_interrupt
from closecall.compare.results import build
from closecall.errors import InputError
from closecall.files import append_line, whole_lines

FILE = "measurements.jsonl"

Value = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """What was measured, what came out, and how long that took."""

    key: Value
    value: Value
    seconds: float
    date: str


class Record:
    """Every measurement of a file; the latest of a key counts, and none is made twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._latest: dict[str, Measurement] = {}
        self._used: dict[str, Measurement] = {}
        if path.exists():
            self._read()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._latest.values())

    @property
    def used(self) -> list[Measurement]:
        """The measurements that were asked for since this record was opened."""
        return list(self._used.values())

    def has(self, key: Mapping[str, Any]) -> bool:
        return _identity(key) in self._latest

    def measured(self, key: Mapping[str, Any], measure: Callable[[], Value]) -> Value:
        """What was kept under this key; else measure it, and it is on the disk when this returns.

        A measurement during which Ctrl-C was pressed is never kept.
        """
        name = _identity(key)
        if name not in self._latest:
            began = time.perf_counter()
            with raising_every_interrupt():
                value = measure()
            seconds = round(time.perf_counter() - began, 3)
            date = datetime.now(UTC).isoformat(timespec="seconds")
            self._append(Measurement(dict(key), value, seconds, date))
        self._used[name] = self._latest[name]
        return self._latest[name].value

    def _append(self, measurement: Measurement) -> None:
        line = json.dumps(asdict(measurement), ensure_ascii=False, allow_nan=False)
        append_line(self.path, line)
        # As it will be read the next time, so that a rerun gives the same results.
        self._latest[_identity(measurement.key)] = _parsed(line.encode())

    def _read(self) -> None:
        for number, line in enumerate(whole_lines(self.path), start=1):
            try:
                measurement = _parsed(line)
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"{self.path}: line {number} is not a measurement ({error}): delete that line, or the "
                    "file to measure everything anew."
                ) from error
            self._latest[_identity(measurement.key)] = measurement


def _parsed(line: bytes) -> Measurement:
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return build(Measurement, content)


def _identity(key: Mapping[str, Any]) -> str:
    return json.dumps(key, sort_keys=True, ensure_ascii=False)
