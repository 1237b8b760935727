"""The two axes of a chart: where they end, what is written at them, and where a value lies on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from closecall.report.numbers import APART, percent, rounded_near

TICKS = 4
MOST_POWERS = 6  # more round numbers on a logarithmic axis than this are thinned out


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with values written at `ticks`; `logarithmic` axes have a positive `low`.

    `digits` are those of a share in percent, the same as in the tables of the page.
    """

    low: float
    high: float
    ticks: Sequence[float]
    label: str = ""
    percent: bool = False
    logarithmic: bool = False
    digits: int = 1

    def place(self, value: float) -> float:
        """Where a value lies, from 0 at `low` to 1 at `high`; values beyond the ends stay at them."""
        held = min(max(value, self.low), self.high)
        if self.logarithmic:
            return math.log(held / self.low) / math.log(self.high / self.low)
        return (held - self.low) / (self.high - self.low)

    def written(self, value: float) -> str:
        """A tick as it is written at the axis: round, so that nothing of it is lost."""
        if self.percent:
            return f"{100 * value:.6g}{APART}%"
        return f"{value:.6g}".replace("-", "−")

    def said(self, value: float) -> str:
        """Any value, as a table or a sentence would write it."""
        return percent(value, self.digits) if self.percent else rounded_near(value)


def shares_axis(values: Sequence[float], label: str = "", *, digits: int = 1) -> Axis:
    """From a round share below the lowest one to 100 %."""
    lowest = min([0.96, *values]) if values else 0.0
    step = round_step((1.0 - lowest) / TICKS)
    count = math.ceil((1.0 - lowest) / step - 1e-9)
    low = max(0.0, 1.0 - count * step)
    ticks = [max(0.0, 1.0 - number * step) for number in range(count, -1, -1)]
    return Axis(low, 1.0, ticks, label, percent=True, digits=digits)


def plain_axis(values: Sequence[float], label: str = "") -> Axis:
    """Round ends that hold 0 and all values, with about five round steps between them."""
    low, high = min([0.0, *values]), max([0.0, *values])
    step = round_step((high - low) / (TICKS + 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return Axis(first * step, last * step, [number * step for number in range(first, last + 1)], label)


def fixed_axis(ticks: Sequence[float], label: str = "", *, logarithmic: bool = False) -> Axis:
    """From the first to the last of given ticks; room is made around a single one."""
    low, high = min(ticks), max(ticks)
    if low == high:
        low, high = (low / 2, high * 2) if logarithmic else (low - 1, high + 1)
    return Axis(low, high, ticks, label, logarithmic=logarithmic)


def span_axis(values: Sequence[float], label: str = "") -> Axis:
    """From 0 to the furthest value and not beyond it, with about five round steps on the way."""
    high = max([0.0, *values]) or 1.0
    step = round_step(high / (TICKS + 1))
    return Axis(0.0, high, [number * step for number in range(math.floor(high / step + 1e-9) + 1)], label)


def powers_axis(values: Sequence[float], label: str = "") -> Axis:
    """From a round number to the furthest of positive values and not beyond it, on a logarithmic scale."""
    low, high = min(values), max(values)
    start = max(number for number in round_numbers(low, low) if number <= low)
    ticks = [number for number in round_numbers(start, high) if start <= number <= high]
    if len(ticks) < 2:  # no round number but the first lies within
        high = min(number for number in round_numbers(start, high) if number > start)
        ticks = [start, high]
    if len(ticks) > MOST_POWERS:
        powers = [number for number in round_numbers(start, high, (1,)) if start <= number <= high]
        ticks = powers[:: math.ceil(len(powers) / MOST_POWERS)]
    return Axis(start, high, ticks, label, logarithmic=True)


def round_numbers(low: float, high: float, factors: Sequence[int] = (1, 2, 5)) -> list[float]:
    """Some times every power of ten from below one positive value to above another."""
    first, last = math.floor(math.log10(low)) - 1, math.floor(math.log10(high)) + 1
    return [float(f"{factor}e{power}") for power in range(first, last + 1) for factor in factors]


def round_step(wanted: float) -> float:
    """The first of 1, 2, 2.5, 5, 10 times a power of ten that is not below `wanted`."""
    if wanted <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted * (1 - 1e-9))
