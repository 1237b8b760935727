"""What the server and its workers send each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Call:
    """Do a task, by its name."""

    number: int
    task: str
    arguments: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Stop:
    """End a call with what is known so far."""

    number: int


@dataclass(frozen=True)
class Told:
    """Something that became known while a call runs."""

    number: int
    what: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Done:
    """What a call has come to."""

    number: int
    result: Any = field(repr=False)


@dataclass(frozen=True)
class Refused:
    """Why a call came to nothing; `expected` unless nobody meant it to happen."""

    number: int
    sentence: str
    expected: bool = True


@dataclass(frozen=True)
class Source:
    """Where a worker reads a model from: `zoo:NAME`, a folder, or an .onnx file that the server named."""

    name: str
    kind: str
    place: str
    input_shape: tuple[int, ...] | None = None
