"""From measurements to figures: solved, geometric means, speed-ups, and answers that contradict others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from closecall.bench.record import Key, Measurement

# Two distances of one question are both within a gap of 1e-4 of the nearest, and rounded to float32.
AGREEING = 3e-4


@dataclass(frozen=True)
class Standing:
    """How one contender did; `speedup` is how many times as long as the first contender it took."""

    contender: str
    limit: float
    asked: int
    solved: int
    left_out: int
    seconds: float | None
    speedup: float | None
    compared: int


@dataclass(frozen=True)
class Group:
    """The standings over the questions of one kind about one network, or over all of a yardstick."""

    network: str
    kind: str
    undecided: float | None
    standings: tuple[Standing, ...]


@dataclass(frozen=True)
class Summary:
    """All that a page says about one yardstick."""

    yardstick: str
    run: str
    groups: tuple[Group, ...]
    overall: Group
    measurements: tuple[Measurement, ...] = field(repr=False)
    contradictions: tuple[str, ...] = ()

    @property
    def growing(self) -> bool:
        """Whether the same is asked with several radii."""
        return len({m.radius for m in self.measurements} - {None}) > 1


def summarise(measurements: Iterable[Measurement]) -> Summary:
    """Sum up the measurements of one yardstick and one run."""
    shown = tuple(latest(measurements))
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for measurement in shown:
        groups.setdefault((measurement.network, kind_of(measurement)), []).append(measurement)
    contenders = tuple(dict.fromkeys(named(measurement) for measurement in sorted(shown, key=auto_first)))
    return Summary(
        shown[0].yardstick,
        shown[0].run,
        tuple(grouped(*place, part, contenders) for place, part in groups.items()),
        grouped("all", "", shown, contenders),
        shown,
        tuple(contradictions(shown)),
    )


def latest(measurements: Iterable[Measurement]) -> list[Measurement]:
    """For each question and contender the latest measurement, whatever the version and the weights."""
    kept: dict[Key, Measurement] = {}
    for m in measurements:
        place = (m.network, m.image, m.norm, m.target, m.cap, m.radius, m.contender)
        kept.pop(place, None)
        kept[place] = m
    return list(kept.values())


def grouped(
    network: str, kind: str, measurements: Sequence[Measurement], contenders: tuple[tuple[str, float], ...]
) -> Group:
    first = {m.question: m for m in measurements if named(m) == contenders[0]}
    counts = sorted(m.undecided for m in first.values() if m.undecided is not None)
    standings = tuple(
        standing(contender, [m for m in measurements if named(m) == contender], first)
        for contender in contenders
    )
    return Group(network, kind, median(counts), standings)


def standing(
    contender: tuple[str, float], measurements: list[Measurement], first: dict[Key, Measurement]
) -> Standing:
    counted = [m for m in measurements if not m.left_out]
    pairs = [(m, first[m.question]) for m in counted if m.question in first]
    ratios = [m.counted / ours.counted for m, ours in pairs if not ours.left_out]
    return Standing(
        *contender,
        asked=len(measurements),
        solved=sum(m.solved for m in counted),
        left_out=len(measurements) - len(counted),
        seconds=geometric_mean([m.counted for m in counted]),
        speedup=geometric_mean(ratios),
        compared=len(ratios),
    )


def geometric_mean(values: Sequence[float]) -> float | None:
    """(v₁ · … · vₙ)^(1/n); nothing of nothing."""
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None


def median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    middle = len(values) // 2
    return float(values[middle]) if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def contradictions(measurements: Sequence[Measurement]) -> list[str]:
    """Answers that cannot be true together with the expected answer or with each other, and failures."""
    found = []
    questions: dict[Key, list[Measurement]] = {}
    for m in measurements:
        questions.setdefault(m.question, []).append(m)
        if m.outcome == "failed":
            found.append(f"{place_of(m)}: {m.contender} failed with {m.note}")
        if {m.outcome, m.expected} == {"sat", "unsat"}:
            found.append(f"{place_of(m)}: {m.contender} says {m.outcome}, expected is {m.expected}")
    for answers in questions.values():
        for one, other in combinations(answers, 2):
            if disagree(one, other) or disagree(other, one):
                found.append(
                    f"{place_of(one)}: {one.contender} says {interval(one)}, {other.contender} says "
                    f"{interval(other)}"
                )
    return found


def disagree(one: Measurement, other: Measurement) -> bool:
    """Whether one found an image where the other has proven that there is none."""
    if one.distance is None or one.left_out or other.left_out or other.outcome == "failed":
        return False
    if one.pixels is None and other.pixels is not None:
        return False  # an image between those of 8 bits says nothing of these
    if other.outcome == "robust":
        return True
    return other.lower is not None and one.distance < other.lower * (1 - AGREEING) - 1e-6


def interval(measurement: Measurement) -> str:
    """What is known of the distance, such as `3.61 … 4.29`."""
    if measurement.outcome == "robust":
        return "none"
    low = "?" if measurement.lower is None else f"{measurement.lower:.5g}"
    high = "?" if measurement.distance is None else f"{measurement.distance:.5g}"
    return low if low == high else f"{low} … {high}"


def kind_of(m: Measurement) -> str:
    """The question in a few words."""
    if m.target == "vnnlib":
        return "VNN-LIB"
    norm = {"l1": "L1", "l2": "L2", "linf": "L∞", "l0": "L0"}[m.norm]
    words = [norm] if m.target == "any" else [norm, f"target {m.target}"]
    if m.cap is not None:
        words.append(f"cap {m.cap:g}")
    if m.radius is not None:
        words.append(f"radius {m.radius:g}")
    return ", ".join(words)


def place_of(m: Measurement) -> str:
    image = m.image if isinstance(m.image, str) else f"image {m.image}"
    return f"{m.yardstick}, {m.network}, {image}, {kind_of(m)}"


def named(measurement: Measurement) -> tuple[str, float]:
    return measurement.contender, measurement.limit


def auto_first(measurement: Measurement) -> tuple[bool, bool]:
    """`auto` comes first, and of its two ways the one that is asked about special images."""
    return measurement.method != "auto", measurement.pixels is None
