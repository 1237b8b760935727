"""What is known of a model's distances: its rows, their median, and how much of it is proven."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from closecall.compare.page.names import title_of
from closecall.compare.results import DistanceRow, ModelRow, Results
from closecall.report import Range
from closecall.report.numbers import interval, median, rounded_up

TONES = 6
SETTLED = 1e-3  # relative to its upper end, an interval this narrow looks like one figure
MISSED = 1.01  # an attack that is this many times further than the nearest has missed it


@dataclass(frozen=True)
class Known:
    """The distances of one model, as rows of the test images that were asked about."""

    model: ModelRow
    tone: int
    rows: Sequence[DistanceRow]

    @property
    def lower(self) -> float:
        """No smaller median is possible: the median of lower bounds bounds the median."""
        return median([lower_of(row) for row in self.rows])

    @property
    def upper(self) -> float:
        return median([upper_of(row) for row in self.rows])

    @property
    def attack(self) -> float:
        """The median of what the attack alone reached; a failure counts as infinitely far."""
        return median([attack_of(row) for row in self.rows])

    @property
    def state(self) -> str:
        """Whether the median is closed, bounded or open, as a page marks it."""
        if not self.model.provable:
            return "open"
        return "closed" if settled(self.lower, self.upper) else "bounded"

    @property
    def closed(self) -> int:
        return sum(row.proven for row in self.rows)

    @property
    def misread(self) -> int:
        return sum(row.outcome == "misclassified" for row in self.rows)

    def missed(self) -> tuple[int, int]:
        """How often a nearer image than the attack's is known, of how many that were read right."""
        right = [row for row in self.rows if row.outcome != "misclassified"]
        return sum(attack_of(row) > MISSED * upper_of(row) for row in right), len(right)

    def range(self) -> Range:
        upper = None if math.isinf(self.upper) else self.upper
        return Range(title_of(self.model.name), self.lower, upper, self.written(), self.state, self.tone)

    def written(self) -> str:
        """The median in words."""
        if not self.rows:
            return "not measured"
        if self.state == "open":
            return "unknown" if math.isinf(self.upper) else f"≤ {rounded_up(self.upper)}, not proven"
        if self.state == "closed" and math.isfinite(self.upper):
            return rounded_up(self.upper)
        return interval(self.lower, self.upper)


def known_of(results: Results) -> list[Known]:
    """One for each model, in their order; each keeps its colour on the whole page."""
    return [
        Known(
            model, tone_of(results, model.name), [row for row in results.distances if row.model == model.name]
        )
        for model in results.models
    ]


def tone_of(results: Results, name: str) -> int:
    names = [model.name for model in results.models]
    return names.index(name) % TONES + 1 if name in names else TONES


def lower_of(row: DistanceRow) -> float:
    return math.inf if row.lower is None else row.lower


def upper_of(row: DistanceRow) -> float:
    return math.inf if row.upper is None else row.upper


def attack_of(row: DistanceRow) -> float:
    return math.inf if row.attack is None else row.attack


def settled(lower: float, upper: float) -> bool:
    return lower == upper or (math.isfinite(upper) and upper - lower <= SETTLED * upper)
