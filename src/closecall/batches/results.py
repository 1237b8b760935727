"""What a page needs of a store: its rows, and the pictures of a few images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from closecall.arrays import Image
from closecall.report.numbers import NORM_NAMES

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Results:
    """A store as plain values; `pictures` holds original and witness of some questions, by key."""

    name: str
    rows: Sequence[Row]
    class_names: Mapping[str, Sequence[str]]
    pictures: Mapping[str, tuple[Image, Image]] = field(default_factory=dict)

    @property
    def colours(self) -> bool:
        """Whether any image that is shown has more than shades of grey."""
        return any(3 in (image.shape[0], image.shape[-1]) for image, _ in self.pictures.values())

    def class_name(self, row: Row, number: int | None) -> str:
        names = self.class_names.get(row["dataset"], ())
        if number is None:
            return ""
        return names[number] if number < len(names) else str(number)


@dataclass(frozen=True)
class Group:
    """The answers of one model in one norm or change, which can be shown on one scale."""

    model: str
    norm: str  # or what is changed, and in which norm if that is more than one number
    tone: int
    rows: Sequence[Row]


def groups_of(results: Results) -> list[Group]:
    """One for each model and norm or change; a model keeps its colour on the whole page."""
    answered = [row for row in results.rows if has_interval(row)]
    models = [*dict.fromkeys(row["model"] for row in results.rows)]
    found = dict.fromkeys((row["model"], measure_of(row)) for row in answered)
    return [
        Group(
            model, norm, models.index(model) % 6 + 1,
            [row for row in answered if (row["model"], measure_of(row)) == (model, norm)],
        )
        for model, norm in found
    ]  # fmt: skip


def measure_of(row: Row) -> str:
    """What the distance of an answer is measured in: a norm, or the numbers of a change."""
    change = row.get("change")
    if change is None:
        return str(row["norm"])
    return f"{change} in {NORM_NAMES[row['norm']]}" if "+" in change else str(change)


def has_interval(row: Row) -> bool:
    """Whether anything is known of the distance: of what failed, crashed or waits, nothing is."""
    return row["outcome"] in ("nearest", "adversarial", "robust", "unresolved", "begun")


def lower_of(row: Row) -> float:
    """The distance below which nothing is; a proof within a radius says nothing beyond it."""
    if row["outcome"] == "robust":
        return math.inf if row["radius"] is None else float(row["radius"])
    return float(row["lower_bound"] or 0.0)


def upper_of(row: Row) -> float:
    return math.inf if row["distance"] is None else float(row["distance"])


def hardest(group: Group, count: int) -> list[Row]:
    """The images with a witness that take the most change, as far as that is proven."""
    return sorted(with_witness(group), key=lambda row: (-lower_of(row), -upper_of(row)))[:count]


def easiest(group: Group, count: int) -> list[Row]:
    """The images with a witness that take the least change."""
    return sorted(with_witness(group), key=upper_of)[:count]


def with_witness(group: Group) -> list[Row]:
    """Those that were read right and have a witness, once each."""
    return [row for row in group.rows if row["distance"] is not None and row["distance"] > 0]
