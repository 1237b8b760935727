"""The questions of a batch: one for each model and image, known by what is asked and by nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import Image
from closecall.ask.posing import Asked, pose
from closecall.clock import Clock
from closecall.errors import InputError
from closecall.question.effort import Effort
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.verdict.verdict import ADDED, ASKED

Task = Literal["nearest", "certify"]
TASKS: tuple[Task, ...] = ("nearest", "certify")


@dataclass(frozen=True, eq=False)
class Pictures:
    """The images that a batch asks about, and where they came from."""

    dataset: str
    split: str
    indices: tuple[int, ...]
    class_names: tuple[str, ...]
    image: Callable[[int], NDArray[Any]]
    label: Callable[[int], int | None]


@dataclass(frozen=True, eq=False)
class Contender:
    """A model by the name that it goes by in the batch, and what it was read from."""

    name: str
    model: object
    classifier: Classifier
    input_shape: tuple[int, ...] | None = None

    @property
    def fingerprint(self) -> str:
        return self.classifier.network.fingerprint


@dataclass(frozen=True)
class Place:
    """Where a question came from: several places may ask the same."""

    model: str
    dataset: str
    split: str
    index: int


@dataclass(frozen=True, eq=False)
class Item:
    """One question of a batch; `key` says all that the answer depends on."""

    key: str
    place: Place
    network: str
    image_hash: str
    pixels: Image
    label: int
    task: Task
    asked: Asked

    def pose(self, classifier: Classifier, clock: Clock) -> Question:
        """The question as a search takes it."""
        return pose(clock, classifier, self.pixels, self.label, None, **self.asked)[1]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a batch asks: every model about every image, the same question with the same effort."""

    contenders: Sequence[Contender]
    pictures: Pictures
    task: Task
    asked: Asked
    effort: Effort
    shard: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise InputError(f"A batch asks for nearest or certify, not for {self.task!r}.")
        if self.task == "certify" and self.asked.get("radius") is None:
            raise InputError("Certify within which radius? Give one, such as 0.1 or 8/255.")
        if not isinstance(self.asked.get("mask"), (str, type(None))):
            raise InputError("A batch takes its mask as the name of a file: save the array with numpy.save.")
        part, parts = self.shard
        if not 1 <= part <= parts:
            raise InputError(f"A shard is a part such as 1/4 to 4/4, not {part}/{parts}.")

    def items(self) -> Iterator[Item]:
        """The questions of this shard, those of one image next to each other."""
        part, parts = self.shard
        position = 0
        for index in self.pictures.indices:
            for contender in self.contenders:
                position += 1
                if (position - part) % parts == 0:
                    yield self.item(contender, index)

    def item(self, contender: Contender, index: int) -> Item:
        given = self.pictures.image(index), self.pictures.label(index)
        classifier, question = pose(Clock(math.inf), contender.classifier, *given, None, **self.asked)
        pixels = question.image.astype(np.float32).reshape(classifier.network.input_shape)
        digest = image_hash(pixels)
        key = key_of(contender.fingerprint, digest, self.task, question, self.effort)
        place = Place(contender.name, self.pictures.dataset, self.pictures.split, index)
        return Item(key, place, contender.fingerprint, digest, pixels, question.label, self.task, self.asked)


def image_hash(pixels: Image) -> str:
    """A sha256 over the pixels as models see them."""
    shaped = repr(pixels.shape).encode() + np.ascontiguousarray(pixels, dtype="<f4").tobytes()
    return hashlib.sha256(shaped).hexdigest()


def key_of(network: str, image: str, task: Task, question: Question, effort: Effort) -> str:
    """What an answer depends on: seconds and threads only say whether there is one, so they are left out."""
    meant: dict[str, Any] = {name: getattr(question, name) for name in ASKED}
    # Options that came later count where they were given: the keys of older stores stay as they were.
    meant = {name: value for name, value in meant.items() if name not in ADDED or value is not None}
    meant["radius"] = None if math.isinf(question.radius) else question.radius
    trusted = {"method": effort.method, "solver": effort.solver}
    gap = effort.gap if task == "nearest" else None
    told = {"network": network, "image": image, "task": task, **meant, **trusted, "gap": gap}
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=float).encode()).hexdigest()
