"""One comparison: its images, its settings, its record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from closecall._version import __version__
from closecall.compare.contenders import Contender
from closecall.compare.presets import Preset, Recipes, recipes_for
from closecall.compare.progress import Progress
from closecall.compare.record import Record
from closecall.compare.results import Picture, build
from closecall.data import Dataset
from closecall.question.names import NormName
from closecall.train.batches import fingerprint

FIRST_SEED = 0

Row = TypeVar("Row")


@dataclass(frozen=True, eq=False)
class Comparison:
    """All that the measurements need; `narrowed` gathers a sentence for each thing left out."""

    dataset: str
    train: Dataset
    test: Dataset
    preset: Preset
    contenders: list[Contender]
    seeds: list[int]
    norm: NormName
    threads: int
    folder: Path
    record: Record
    progress: Progress
    narrowed: list[str] = field(default_factory=list)

    @cached_property
    def recipes(self) -> Recipes:
        return recipes_for(self.train.input_shape)

    @cached_property
    def data_identity(self) -> str:
        """The images that everything was measured on, by their hash."""
        return f"{fingerprint(self.train)[:16]}/{fingerprint(self.test)[:16]}"

    @cached_property
    def moved_test(self) -> Dataset:
        """The test images that are moved about, spread over the whole test set."""
        return self.test.subset(spread(len(self.test), self.preset.moved_images))

    def key(self, what: str, **rest: Any) -> dict[str, Any]:
        """What a measurement is known by."""
        return {
            "what": what,
            **rest,
            "data": self.data_identity,
            "threads": self.threads,
            "version": __version__,
        }

    def row(self, kind: type[Row], key: dict[str, Any], measure: Callable[[], Row]) -> Row:
        """A row that was kept, or measured now; both go through JSON, so that a rerun gives the same."""
        return build(kind, self.record.measured(key, lambda: asdict(measure())))  # type: ignore[call-overload]

    def narrow(self, sentence: str) -> None:
        if sentence not in self.narrowed:
            self.narrowed.append(sentence)


def spread(count: int, wanted: int) -> NDArray[np.int64]:
    """So many of `count` numbers at even steps, or all."""
    if wanted >= count:
        return np.arange(count)
    return np.arange(wanted) * count // wanted


def picture(pixels: NDArray[Any]) -> Picture:
    """An image (channels, height, width) as nested lists of four digits."""
    rounded: Picture = np.round(pixels.astype(np.float64), 4).tolist()
    return rounded
