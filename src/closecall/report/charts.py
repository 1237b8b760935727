"""Line charts as inline SVG, in the colours of the page they stand on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 340, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 14, 30
TICKS = 4


@dataclass(frozen=True)
class Line:
    """One line of a chart; `tone` is one of the page's series colours, 1 or 2."""

    name: str
    values: Sequence[float]
    tone: int = 1


def line_chart(title: str, lines: Sequence[Line], *, percent: bool = False) -> str:
    """Values by epoch, as an SVG with a title that is read aloud."""
    low, high = extent([value for line in lines for value in line.values], percent)
    count = max(len(line.values) for line in lines)

    def x(index: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (index / max(1, count - 1))

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low))

    said = "; ".join(f"{line.name} ends at {label(line.values[-1], percent)}" for line in lines)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(f"{title} by epoch: {said}", quote=True)}">',
        *grid(low, high, y, percent),
        f'<text x="{x(0):.1f}" y="{HEIGHT - 10}" class="tick">1</text>',
        f'<text x="{x(count - 1):.1f}" y="{HEIGHT - 10}" class="tick" text-anchor="end">epoch {count}</text>',
    ]
    for line in lines:
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(line.values))
        parts.append(f'<polyline points="{points}" class="line tone{line.tone}"/>')
    legend = "".join(f'<span class="key tone{line.tone}">{escape(line.name)}</span>' for line in lines)
    heading = f"<figcaption><b>{escape(title)}</b> {legend}</figcaption>"
    return f"<figure>{heading}{''.join(parts)}</svg></figure>"


def grid(low: float, high: float, y: Callable[[float], float], percent: bool) -> list[str]:
    parts = []
    for step in range(TICKS + 1):
        value = low + (high - low) * step / TICKS
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 3.5:.1f}" class="tick" text-anchor="end">'
            f"{label(value, percent)}</text>"
        )
    return parts


def extent(values: Sequence[float], percent: bool) -> tuple[float, float]:
    """Round ends that hold all values: a whole number of percent, or of the leading digit."""
    low, high = min(values), max(values)
    if percent:
        return math.floor(10 * low) / 10, 1.0
    step = 10.0 ** math.floor(math.log10(max(high, 1e-9)))
    return 0.0, math.ceil(high / step) * step


def label(value: float, percent: bool) -> str:
    return f"{100 * value:.3g} %" if percent else f"{value:.3g}"
