"""Which models are compared: kinds that are trained here, and models that the user brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from closecall.compare.presets import KINDS, Preset
from closecall.errors import InputError
from closecall.models import describe
from closecall.models.zoo import summarise

TRAINED_HERE = "trained here"
OTHER = "other"


@dataclass(frozen=True)
class Contender:
    """A name, an architecture, and where its weights come from.

    `source` is empty for a network that is trained here. An ONNX file is of the kind `other`: it can be
    measured and, if it can be read, proven, but not trained again.
    """

    name: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def trainable(self) -> bool:
        return self.kind != OTHER

    def summary(self, config: Mapping[str, Any]) -> str:
        """The architecture in a few words; `config` is the whole one, with all defaults."""
        if self.kind == OTHER:
            return f"ONNX file {Path(self.source).name}"
        return summarise({"kind": self.kind, "config": config})


def contenders_from(
    names: Sequence[str], given: Mapping[str, str], preset: Preset, shape: tuple[int, int, int]
) -> list[Contender]:
    """The models by name, in their order; those that are only given by path come last."""
    if len(set(names)) < len(names):
        raise InputError(f"Each model is compared once, but --models names {repeated(names)} twice.")
    chosen = [*names, *(name for name in given if name not in names)]
    if not chosen:
        raise InputError(f"There is nothing to compare: give --models, any of {', '.join(KINDS)}.")
    return [brought(name, given[name], shape) if name in given else known(name, preset) for name in chosen]


def known(name: str, preset: Preset) -> Contender:
    """One of the kinds that can be trained here."""
    if name not in KINDS:
        raise InputError(
            f"There is no model {name!r} to train: choose from {', '.join(KINDS)}, or bring it with "
            f"--model {name}=PATH."
        )
    return Contender(name, name, dict(preset.sizes[name]))


def brought(name: str, source: str, shape: tuple[int, int, int]) -> Contender:
    """A model that the user has: a folder of `closecall train`, zoo:NAME or an ONNX file."""
    if Path(source).suffix.lower() == ".onnx":
        return Contender(name, OTHER, source=source)
    described = describe(source)
    takes = tuple(described["config"].get("input_shape", ()))
    if takes != shape:
        raise InputError(
            f"{source} takes images of shape {takes}, but those of this comparison have {shape}."
        )
    return Contender(name, described["kind"], dict(described["config"]), source)


def parse_given(texts: Sequence[str]) -> dict[str, str]:
    """Read NAME=PATH."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, source = text.partition("=")
        if not (name and equals and source):
            raise InputError(f"--model takes NAME=PATH, such as dnn=zoo:mnist-50x2, not {text!r}.")
        if name in given:
            raise InputError(f"--model gives {name} twice: choose one of them, or another name for it.")
        if not all(letter.isalnum() or letter in "-_." for letter in name) or name.startswith("."):
            raise InputError(f"A model's name is made of letters, digits, - _ and ., not {name!r}.")
        given[name] = source
    return given


def repeated(names: Sequence[str]) -> str:
    return next(name for index, name in enumerate(names) if name in names[:index])
