"""The measurements on disk: one line of JSON each, written as soon as it is finished."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from closecall.errors import InputError
from closecall.files import append_line, whole_lines

Key = tuple[object, ...]

SOLVED = ("nearest", "robust", "sat", "unsat")
LEFT_OUT = ("refused", "missing")


@dataclass(frozen=True)
class Measurement:
    """One question, who answered it, and how. `asked` fields identify it; a rerun does not repeat them.

    `outcome` is that of the verdict, or `sat`, `unsat` and `unknown` for an instance, or `refused` (a solver
    would not take the model), `missing` (it is not installed), `failed` (an error that nobody meant).
    """

    yardstick: str
    run: str
    network: str
    image: int | str
    norm: str
    target: str
    cap: float | None
    radius: float | None
    method: str
    solver: str
    limit: float
    threads: int
    version: str
    network_sha256: str
    outcome: str
    seconds: float
    lower: float | None = None
    distance: float | None = None
    nodes: int = 0
    undecided: int | None = None
    expected: str | None = None
    pixels: str | None = None
    note: str = ""
    date: str = ""
    machine: str = ""

    @property
    def question(self) -> Key:
        """What was asked, by whomever it was answered."""
        return (
            self.yardstick, self.run, self.network, self.image, self.norm, self.target, self.cap, self.radius,
            self.version, self.network_sha256,
        )  # fmt: skip

    @property
    def contender(self) -> str:
        named = self.method if self.method == "auto" else f"{self.method} ({self.solver})"
        return named if self.pixels is None else f"{named}, {self.pixels}"

    @property
    def key(self) -> Key:
        return (*self.question, self.method, self.solver, self.limit, self.threads, self.pixels)

    @property
    def solved(self) -> bool:
        """Answered within the limit; any witness answers a question that has a radius."""
        answered = self.outcome in SOLVED or (self.outcome == "adversarial" and self.radius is not None)
        return answered and self.seconds <= self.limit

    @property
    def counted(self) -> float:
        """The seconds, or the limit if that was not enough."""
        return self.seconds if self.solved else self.limit

    @property
    def left_out(self) -> bool:
        return self.outcome in LEFT_OUT


class Record:
    """Every measurement of a file; the latest of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._latest: dict[Key, Measurement] = {}
        if path.exists():
            self._read()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._latest.values())

    def get(self, key: Key) -> Measurement | None:
        return self._latest.get(key)

    def append(self, measurement: Measurement) -> None:
        """Keep a measurement, on the disk when this returns."""
        line = json.dumps(asdict(measurement), ensure_ascii=False, allow_nan=False)
        append_line(self.path, line)
        self._keep(measurement)

    def _keep(self, measurement: Measurement) -> None:
        self._latest.pop(measurement.key, None)  # so that the order is that of the latest
        self._latest[measurement.key] = measurement

    def _read(self) -> None:
        for number, line in enumerate(whole_lines(self.path), start=1):
            try:
                self._keep(_parsed(line))
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"{self.path}: line {number} is not a measurement of this version ({error}): delete that "
                    "line, or the file to measure everything anew."
                ) from error


def _parsed(line: bytes) -> Measurement:
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    unknown = set(content) - {field.name for field in fields(Measurement)}
    if unknown:
        raise ValueError(f"unknown field {min(unknown)}")
    return Measurement(**content)
