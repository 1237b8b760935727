"""Intervals side by side on one scale, as bars that fit any width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from closecall.report.axes import Axis


@dataclass(frozen=True)
class Range:
    """What is known of one quantity: it lies between `lower` and `upper` (None: without end).

    `state` is "closed" (the two agree), "bounded" (both ends are proven) or "open" (the lower end is not).
    """

    name: str
    lower: float
    upper: float | None
    written: str
    state: str
    tone: int


def ranges(shown: Sequence[Range], axis: Axis, spoken: str) -> str:
    """A bar for each interval, and the scale below them."""
    lines = "".join(line(part, axis) for part in shown)
    ticks = "".join(
        f'<span style="left:{100 * axis.place(tick):.2f}%">{axis.written(tick)}</span>' for tick in axis.ticks
    )
    return (
        f'<figure class="ranges" role="img" aria-label="{escape(spoken)}">{lines}'
        f'<span></span><div class="scale">{ticks}</div><span></span></figure>'
        f'<p class="note scale-name">{escape(axis.label)}</p>'
    )


def line(shown: Range, axis: Axis) -> str:
    left = 100 * axis.place(shown.lower)
    right = 100.0 if shown.upper is None else 100 * axis.place(shown.upper)
    return (
        f'<span class="who"><i class="swatch tone{shown.tone}"></i>{escape(shown.name)}</span>'
        f'<div class="track"><i class="{shown.state} tone{shown.tone}" '
        f'style="left:{left:.2f}%;width:{right - left:.2f}%"></i></div>'
        f'<span class="far">{escape(shown.written)}</span>'
    )
