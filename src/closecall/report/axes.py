"""The two axes of a chart: where they end, what is written at them, and where a value lies on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TICKS = 4


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with values written at `ticks`; `logarithmic` axes have a positive `low`."""

    low: float
    high: float
    ticks: Sequence[float]
    label: str = ""
    percent: bool = False
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value lies, from 0 at `low` to 1 at `high`; values beyond the ends stay at them."""
        held = min(max(value, self.low), self.high)
        if self.logarithmic:
            return math.log(held / self.low) / math.log(self.high / self.low)
        return (held - self.low) / (self.high - self.low)

    def written(self, value: float) -> str:
        """A value as it is written at the axis."""
        if self.percent:
            return f"{100 * value:.3g} %"
        return f"{value:.6g}".replace("-", "−")


def shares_axis(values: Sequence[float], label: str = "") -> Axis:
    """From a round share below the lowest one to 100 %."""
    lowest = min(0.96, *values) if values else 0.0
    step = round_step((1.0 - lowest) / TICKS)
    count = math.ceil((1.0 - lowest) / step - 1e-9)
    low = max(0.0, 1.0 - count * step)
    ticks = [max(0.0, 1.0 - number * step) for number in range(count, -1, -1)]
    return Axis(low, 1.0, ticks, label, percent=True)


def plain_axis(values: Sequence[float], label: str = "") -> Axis:
    """Round ends that hold 0 and all values, with about five round steps between them."""
    low, high = min(0.0, *values), max(0.0, *values)
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


def powers_axis(values: Sequence[float], label: str = "") -> Axis:
    """Whole powers of ten around positive values, on a logarithmic scale."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = max(last, first + 1)
    every = math.ceil((last - first) / (TICKS + 1))
    ticks = [10.0**power for power in range(first, last + 1, every)]
    return Axis(10.0**first, 10.0**last, ticks, label, logarithmic=True)


def round_step(wanted: float) -> float:
    """The first of 1, 2, 2.5, 5, 10 times a power of ten that is not below `wanted`."""
    if wanted <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted * (1 - 1e-9))
