"""The models that a page can ask about: the zoo, the user's own, and those that were uploaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from closecall.data.published import PUBLISHED
from closecall.errors import ModelError
from closecall.models.folders import describe
from closecall.models.zoo import ZOO_PREFIX, summarise, zoo_names
from closecall.web.messages import Source

DEFAULTS = ("mnist-50x2", "mnist-cnn-stable", "mnist-caps")  # of each kind the one that is asked first
PAIRS = "multimnist"  # the data set of two digits on each image


@dataclass(frozen=True)
class Model:
    """What a page knows of a model; `shape` is that of a picture of it, channels first."""

    source: Source
    title: str
    shape: tuple[int, int, int]
    classes: int
    class_names: tuple[str, ...]
    dataset: str = ""
    accuracy: float | None = None
    units: int | None = None
    provable: bool = True

    @property
    def name(self) -> str:
        return self.source.name


def zoo_model(name: str) -> Model:
    return described_model(ZOO_PREFIX + name, name)


def described_model(place: str, name: str) -> Model:
    """A model of the zoo, or in a folder that `closecall train` wrote, by what is written about it."""
    facts = describe(place)
    config, dataset = facts["config"], str(facts.get("dataset", ""))
    channels, height, width = config["input_shape"]
    classes = int(config["classes"])
    listed = facts.get("class_names")
    names = tuple(map(str, listed)) if isinstance(listed, list) and len(listed) == classes else ()
    if not names and dataset in PUBLISHED and len(PUBLISHED[dataset].class_names) == classes:
        names = PUBLISHED[dataset].class_names
    return Model(
        Source(name, facts["kind"], place),
        title=summarise(facts),
        shape=(channels, height, width),
        classes=classes,
        class_names=names or tuple(map(str, range(classes))),
        dataset=dataset,
        accuracy=facts.get("accuracy"),
        units=facts.get("units"),
        provable=facts["kind"] != "capsnet" or can_be_bounded(config),
    )


def can_be_bounded(config: Mapping[str, Any]) -> bool:
    """Whether routing between these capsules can be bounded; the reader says why where it cannot."""
    return config.get("routing") == "dynamic" and config.get("primary_size") != 0


def onnx_model(name: str, place: str, facts: dict[str, Any]) -> Model:
    """A model by what a worker has read of it."""
    return Model(
        Source(name, "onnx", place, tuple(facts["input_shape"])),
        title=f"{facts['units']:,} values in all layers",
        shape=facts["shape"],
        classes=facts["classes"],
        class_names=tuple(map(str, range(facts["classes"]))),
        units=facts["units"],
    )


class Catalogue:
    """Models by their names, the user's own first."""

    def __init__(self, own: list[Model], most_uploads: int) -> None:
        self.models = {model.name: model for model in [*own, *map(zoo_model, zoo_names())]}
        self.uploaded: list[str] = []
        self.most_uploads = most_uploads

    def find(self, name: str) -> Model:
        if name not in self.models:
            raise UnknownModelError(
                f"There is no model {name[:80]!r} here: reload the page to see which there are."
            )
        return self.models[name]

    def free_name(self, wanted: str) -> str:
        """A name that no other model has, made of nothing but letters, digits and a few signs."""
        stem = "".join(
            letter if letter.isalnum() or letter in "._- " else "-" for letter in wanted[:60]
        ).strip()
        name, count = stem or "model.onnx", 1
        while name in self.models:
            count += 1
            name = f"{stem} ({count})"
        return name

    def add(self, model: Model) -> Model | None:
        """Take an uploaded model; give the one that makes room for it, if any."""
        self.models = {model.name: model, **self.models}
        self.uploaded.append(model.name)
        if len(self.uploaded) <= self.most_uploads:
            return None
        return self.models.pop(self.uploaded.pop(0))

    def warm(self) -> list[Source]:
        """What most pages ask first."""
        return [self.models[name].source for name in DEFAULTS if name in self.models]


class UnknownModelError(ModelError):
    """A name that no model has."""


def own_folder(path: Path) -> Model:
    """A folder that `closecall train` wrote."""
    return described_model(str(path.resolve()), path.resolve().name)
