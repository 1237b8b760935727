"""What a comparison found: typed rows, to and from `results.json`, from which alone the page is made."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from closecall.errors import InputError

FORMAT = 1
FILE = "results.json"

Picture = list[list[list[float]]]  # (channels, height, width) in [0, 1], rounded to four digits

Row = TypeVar("Row")


@dataclass(frozen=True)
class ModelRow:
    """One of the compared models; lists have one entry for each seed.

    `source` is "trained here" or what `--model` gave, which has no training time here. `units` are the values
    that ReLUs and poolings compute, None where no MILP is made of them. `provable`: exact distances can be
    asked for. `note` is a sentence for the reader, or empty.
    """

    name: str
    kind: str  # dnn, cnn, cnn-baseline, capsnet or other
    description: str
    source: str
    parameters: int
    units: int | None
    accuracy: list[float]
    training_seconds: list[float]
    milliseconds_single: float
    milliseconds_batched: float
    provable: bool
    note: str = ""

    @property
    def mean_accuracy(self) -> float:
        return sum(self.accuracy) / len(self.accuracy)


@dataclass(frozen=True)
class DistanceRow:
    """How far one test image is from its nearest adversarial under one model (that of the first seed).

    `outcome` is a verdict's (nearest, adversarial, robust, unresolved), or `misclassified` (the distance is
    0), or `attacked` (only an attack was possible: `lower` is 0 and nothing is proven). The distance lies in
    [`lower`, `upper`]; `lower` None: proven that there is none in the whole box; `upper` None: none was
    found. `proven`: the interval is closed. `attack` is what the heuristic alone reached, None if it failed.
    `nearest` is the image at `upper`.
    """

    model: str
    index: int
    label: int
    became: int | None
    norm: str
    outcome: str
    lower: float | None
    upper: float | None
    proven: bool
    attack: float | None
    seconds: float
    nodes: int
    original: Picture | None = None
    nearest: Picture | None = None


@dataclass(frozen=True)
class TransformRow:
    """Accuracy on test images that were moved; `amount` is in `unit`, and 0 (scale: 1) leaves them be."""

    model: str
    kind: str  # shift, rotation, scale or shear
    amount: float
    unit: str  # pixels, degrees, times or empty
    accuracy: list[float]  # one entry for each seed


@dataclass(frozen=True)
class FewRow:
    """Accuracy after training on a few images of each class, drawn by the seed."""

    model: str
    images_per_class: int
    seed: int
    accuracy: float


@dataclass(frozen=True)
class OverlapShot:
    """Two overlapping things, what the model saw, and what it reconstructs of each thing it saw."""

    image: Picture
    labels: list[int]
    predicted: list[int]
    restored: list[Picture]  # one for each of `predicted`; empty without a decoder


@dataclass(frozen=True)
class OverlapRow:
    """A model trained and tested on pairs; right means both classes right."""

    model: str
    description: str
    accuracy: float
    parameters: int
    trained_pairs: int
    tested_pairs: int
    seconds: float
    shots: list[OverlapShot] = field(default_factory=list)


@dataclass(frozen=True)
class Reconstruction:
    """A test image and what the decoder makes of its longest capsule."""

    index: int
    label: int
    predicted: int
    original: Picture
    restored: Picture


@dataclass(frozen=True)
class Dimensions:
    """What the decoder makes of the longest capsule as each of its dimensions moves by each step."""

    index: int
    label: int
    predicted: int
    steps: list[float]
    pictures: list[list[Picture]]  # one row for each dimension, one picture for each step


@dataclass(frozen=True)
class CapsuleRow:
    """The inside of one capsule network."""

    model: str
    reconstructions: list[Reconstruction]
    dimensions: list[Dimensions]


@dataclass(frozen=True)
class MilpAnswer:
    """One image's MILP (tight form, within the distance of an attack) and what the solver came to.

    `gap` is (upper − lower) / upper, 0 when solved, None when there is no upper bound.
    """

    index: int
    radius: float | None
    variables: int
    binaries: int
    rows: int
    undecided: int
    nodes: int
    seconds: float
    lower: float
    upper: float | None
    gap: float | None
    solved: bool


@dataclass(frozen=True)
class EncodingRow:
    """One network of the question whether a DNN's or a CNN's MILP is the more suitable.

    `pairing` says why it is here: matched "accuracy", matched "size" (the same number of `matched_by`), or
    "as trained" (one of the compared models). Rows of the same pairing belong together. The counts are
    medians over `answers`.
    """

    model: str
    family: str  # dnn or cnn
    description: str
    pairing: str
    matched_by: str  # validation accuracy, units, or empty
    accuracy: float
    validation_accuracy: float | None
    parameters: int
    units: int
    variables: float
    binaries: float
    rows: float
    undecided: float
    nodes: float
    seconds: float  # unsolved questions count with their time limit
    solved_share: float
    answers: list[MilpAnswer] = field(default_factory=list)


@dataclass(frozen=True)
class HowMade:
    """Everything needed to make it again, and in plain sentences what was narrowed or left out."""

    version: str
    python: str
    packages: dict[str, str]
    machine: str
    command: str
    started: str
    finished: str
    measured_seconds: float
    threads: int
    solver: str
    time_limit: float
    milp_time_limit: float
    gap: float
    margin: float
    training: dict[str, str]  # a sentence for each model
    narrowed: list[str]


@dataclass(frozen=True)
class Results:
    """All of a comparison."""

    dataset: str
    class_names: list[str]
    input_shape: list[int]
    train_images: int
    test_images: int
    preset: str
    seeds: list[int]
    norm: str
    distance_images: list[int]  # the test images whose distances were asked for
    models: list[ModelRow]
    distances: list[DistanceRow]
    transformed: list[TransformRow]
    few: list[FewRow]
    overlapping: list[OverlapRow]
    capsules: list[CapsuleRow]
    encodings: list[EncodingRow]
    how: HowMade
    format: int = FORMAT

    def to_json(self) -> str:
        """The content of `results.json`."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False, indent=None) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, where: str = FILE) -> Results:
        """Read `results.json`, or say what is wrong with it."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise InputError(f"{where} is not valid JSON ({error}): run the comparison again.") from error
        version = content.get("format") if isinstance(content, dict) else None
        if version != FORMAT:
            raise InputError(
                f"{where} has the format {version}, but this version reads {FORMAT}: compare again."
            )
        try:
            return build(cls, content)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{where} does not hold a whole comparison ({error}): run the comparison again."
            ) from error

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file, or say why it cannot be read."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror}; run the comparison first.") from error
        return cls.from_json(content, str(path))


def build(kind: type[Row], content: Mapping[str, Any]) -> Row:
    """Make a row of JSON; a field that is unknown or missing is an error."""
    hints = typing.get_type_hints(kind)
    unknown = set(content) - set(hints)
    if unknown:
        raise ValueError(f"{kind.__name__} has no field {min(unknown)!r}")
    known = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _value(hints[name], content[name]) for name in known if name in content})


def _value(hint: Any, content: Any) -> Any:
    """Turn JSON into what a type hint asks for; a number may come as a whole one."""
    if hint is Any:
        return content
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if content is None:
            return None
        return _value(next(option for option in arguments if option is not type(None)), content)
    if origin is list:
        return [_value(arguments[0], entry) for entry in _checked(list, content)]
    if origin is dict:
        return {name: _value(arguments[1], entry) for name, entry in _checked(dict, content).items()}
    if is_dataclass(hint):
        return build(typing.cast("type[Any]", hint), _checked(dict, content))
    if hint is float and isinstance(content, int) and not isinstance(content, bool):
        return float(content)
    return _checked(hint, content)


def _checked(kind: type[Any], content: Any) -> Any:
    if not isinstance(content, kind) or (kind is int and isinstance(content, bool)):
        raise TypeError(f"expected {kind.__name__}, got {type(content).__name__}")
    return content
