"""What came of a question: a verdict, or why there is none; and how a store keeps either."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from closecall.arrays import Image
from closecall.question.effort import Effort
from closecall.question.question import Question
from closecall.verdict.eight_bit import PngReplay
from closecall.verdict.verdict import ADDED, ASKED, FOUND, Verdict

Outcome = Literal["nearest", "adversarial", "robust", "unresolved", "failed", "crashed"]
OUTCOMES: tuple[Outcome, ...] = ("nearest", "adversarial", "robust", "unresolved", "failed", "crashed")
EFFORT = ("method", "solver", "time_limit", "threads", "gap")


@dataclass(frozen=True, eq=False)
class Reply:
    """What one question came to. Without a verdict, `note` says why: it `failed`, or `crashed` its worker.

    `finished` is False where Ctrl-C ended the search early: the question is asked again next time. `memory`
    is the most that the process which answered has used so far, in bytes.
    """

    key: str
    outcome: Outcome
    verdict: Verdict | None = None
    note: str = ""
    finished: bool = True
    memory: int = 0

    def resolved(self, task: str) -> bool:
        """Whether nothing is left to find out: any witness answers `certify`."""
        return is_resolved(self.outcome, task)


def is_resolved(outcome: str, task: str) -> bool:
    return outcome in ("nearest", "robust") or (outcome == "adversarial" and task == "certify")


def record_of(verdict: Verdict) -> str:
    """All of a verdict but its images, as strict JSON."""
    after = verdict.scores_after
    record = {
        **verdict.to_json(),
        "scores_before": verdict.scores_before.tolist(),
        "scores_after": None if after is None else after.tolist(),
    }
    return json.dumps(record, allow_nan=False)


def verdict_from(record: Mapping[str, Any], image: Image, witness: Image | None) -> Verdict:
    """The verdict that a record and the images beside it say."""
    before = np.asarray(record["scores_before"], dtype=np.float64)
    after, png = record["scores_after"], record["png"]
    asked: dict[str, Any] = {name: record.get(name) if name in ADDED else record[name] for name in ASKED}
    asked["radius"] = math.inf if asked["radius"] is None else asked["radius"]
    asked["pixel_range"] = tuple(asked["pixel_range"])
    known = {"amounts": None, **record}  # which earlier versions knew nothing of
    found = {name: known[name] for name in FOUND}
    found["lower_bound"] = math.inf if found["lower_bound"] is None else found["lower_bound"]
    found["why"], found["notes"] = tuple(found["why"]), tuple(found["notes"])
    found["png"] = None if png is None else PngReplay(**png)
    return Verdict(
        **found,
        question=Question(image.astype(np.float64).ravel(), classes=len(before), **asked),
        effort=Effort(**{name: record[name] for name in EFFORT}),
        image=image,
        witness=witness,
        scores_before=before,
        scores_after=None if after is None else np.asarray(after, dtype=np.float64),
    )


def packed(image: Image) -> bytes:
    """An image as a compressed array: its shape, then its pixels in float32."""
    shape = json.dumps(image.shape).encode()
    return zlib.compress(shape + b"\n" + np.ascontiguousarray(image, dtype="<f4").tobytes())


def unpacked(content: bytes) -> Image:
    """The image that `packed` wrote; ValueError or zlib.error where it is not one."""
    shape, _, pixels = zlib.decompress(content).partition(b"\n")
    flat = np.frombuffer(pixels, dtype="<f4").astype(np.float32)
    return flat.reshape(tuple(json.loads(shape)))
