"""How much a page may ask for."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 2**20


@dataclass(frozen=True)
class Limits:
    """What keeps one machine usable, whoever asks.

    `running` questions are searched at once and `waiting` more may queue; `seconds` is the longest time limit
    of one. Bytes are those of a request's body, `picture_side` the pixels of an uploaded picture's sides.
    """

    running: int = 1
    waiting: int = 32
    seconds: float = 600.0
    body_bytes: int = 2 * MEGABYTE
    picture_bytes: int = 8 * MEGABYTE
    picture_side: int = 4096
    model_bytes: int = 64 * MEGABYTE
    models: int = 16  # that were uploaded and are kept
    answers: int = 200  # that are kept to be fetched
    # Address space of a process that searches or reads a model: libraries alone take a gigabyte of it.
    worker_memory: int = 6144 * MEGABYTE
    reader_memory: int = 3072 * MEGABYTE
    reader_seconds: float = 60.0
    quick_seconds: float = 30.0  # for a prediction; only a process that hangs takes as long
    overtime_seconds: float = 20.0  # after which a search that does not heed its limit is ended
    stopping_seconds: float = 10.0  # after which one that does not heed a stop is ended
    # A question is stopped when nobody has asked about it for so long, or when the last of those who listened
    # has been gone for so long; a browser that lost its connection is back after a second.
    lease_seconds: float = 8.0
    absence_seconds: float = 4.0


LARGEST_IMAGE = 3 * 256 * 256  # numbers in an image that is asked about
LARGEST_DRAWING = 512 * 512
