"""Line charts as inline SVG, in the colours of the page they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from closecall.report.axes import Axis

WIDTH, HEIGHT = 340, 214
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 24, 40  # around the plot area
INSET = 5  # between the edges of the plot area and the ends of the axes: a line along an end stays in sight


@dataclass(frozen=True)
class Line:
    """One line of a chart by epoch; `tone` is one of the page's series colours."""

    name: str
    values: Sequence[float]
    tone: int = 1


@dataclass(frozen=True)
class Curve:
    """A line through points, with a shaded band around it where `band` gives (lower, upper) values.

    `tone` is one of the page's series colours, 1 to 6. With `marks` every point is a dot that says its value.
    A `wide` line is still seen where a later one runs over it.
    """

    name: str
    across: Sequence[float]
    up: Sequence[float]
    tone: int = 1
    dashed: bool = False
    marks: bool = False
    wide: bool = False
    band: tuple[Sequence[float], Sequence[float]] | None = None


@dataclass(frozen=True)
class Chart:
    """Curves over two axes; `spoken` is read aloud in place of the picture."""

    title: str
    across: Axis
    up: Axis
    curves: Sequence[Curve]
    spoken: str


def line_chart(title: str, lines: Sequence[Line], up: Axis) -> str:
    """Values by epoch, as an SVG with a title that is read aloud."""
    count = max(len(line.values) for line in lines)
    across = Axis(1, max(2, count), sorted({1, count}), "epoch")
    said = "; ".join(f"{line.name} ends at {up.said(line.values[-1])}" for line in lines)
    curves = [Curve(line.name, range(1, len(line.values) + 1), line.values, line.tone) for line in lines]
    return chart(Chart(title, across, up, curves, f"{title} by epoch: {said}"))


def chart(shown: Chart, *, keys: bool = True) -> str:
    """A chart under its title; without `keys` the colours are explained elsewhere, by `legend`."""
    svg = "".join(
        [
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(shown.spoken, quote=True)}">',
            *grid(shown),
            *(part for curve in shown.curves for part in band(shown, curve)),
            *(part for curve in shown.curves for part in stroke(shown, curve)),
            "</svg>",
        ]
    )
    explained = "".join(map(key, shown.curves)) if keys else ""
    return f"<figure><figcaption><b>{escape(shown.title)}</b> {explained}</figcaption>{svg}</figure>"


def legend(curves: Sequence[Curve]) -> str:
    """What the colours of several charts mean, said once."""
    return f'<p class="legend">{"".join(map(key, curves))}</p>'


def key(curve: Curve) -> str:
    kind = " dashed" if curve.dashed else ""
    return f'<span class="key tone{curve.tone}{kind}">{escape(curve.name)}</span>'


def point(shown: Chart, across: float, up: float) -> tuple[float, float]:
    x = LEFT + INSET + (WIDTH - LEFT - RIGHT - 2 * INSET) * shown.across.place(across)
    y = TOP + INSET + (HEIGHT - TOP - BOTTOM - 2 * INSET) * (1 - shown.up.place(up))
    return x, y


def points(shown: Chart, across: Sequence[float], up: Sequence[float]) -> str:
    drawn = (point(shown, x, y) for x, y in zip(across, up, strict=True))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)


def band(shown: Chart, curve: Curve) -> list[str]:
    if curve.band is None:
        return []
    lower, upper = curve.band
    around = [*curve.across, *reversed(curve.across)]
    outline = points(shown, around, [*upper, *reversed(lower)])
    return [f'<polygon points="{outline}" class="band tone{curve.tone}"/>']


def stroke(shown: Chart, curve: Curve) -> list[str]:
    kind = (" dashed" if curve.dashed else "") + (" wide" if curve.wide else "")
    parts = [
        f'<polyline points="{points(shown, curve.across, curve.up)}" class="line tone{curve.tone}{kind}"/>'
    ]
    if curve.marks:
        for across, up in zip(curve.across, curve.up, strict=True):
            x, y = point(shown, across, up)
            said = f"{curve.name}, {shown.across.written(across)}: {shown.up.said(up)}"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="mark tone{curve.tone}">'
                f"<title>{escape(said)}</title></circle>"
            )
    return parts


def grid(shown: Chart) -> list[str]:
    floor = HEIGHT - BOTTOM
    parts = [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}" class="edge"/>']
    for value in shown.up.ticks:
        _, y = point(shown, shown.across.low, value)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" class="tick" text-anchor="end">'
            f"{shown.up.written(value)}</text>"
        )
    for value in shown.across.ticks:
        x, _ = point(shown, value, shown.up.low)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}" class="edge"/>'
            f'<text x="{x:.1f}" y="{floor + 15}" class="tick" text-anchor="middle">'
            f"{shown.across.written(value)}</text>"
        )
    return parts + axis_names(shown)


def axis_names(shown: Chart) -> list[str]:
    """What runs up, above the axis, and what runs across, below it."""
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        f'<text x="2" y="11" class="tick" text-anchor="start">{escape(shown.up.label)}</text>',
        f'<text x="{middle:.1f}" y="{HEIGHT - 8}" class="tick" text-anchor="middle">'
        f"{escape(shown.across.label)}</text>",
    ]
