"""The figures of a comparison as files, PNG and SVG, drawn from the same charts as the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from closecall.compare.page.curves import few_chart, moved_charts
from closecall.compare.page.distances import distance_charts
from closecall.compare.page.known import Known, known_of
from closecall.compare.page.milps import milp_charts
from closecall.compare.page.names import title_of
from closecall.compare.page.sheets import dimension_sheet, gallery_sheet, overlap_sheet, reconstruction_sheet
from closecall.compare.results import Results
from closecall.files import prepare_folder, write_whole
from closecall.report import Axis, Chart, Curve
from closecall.report.numbers import NORM_NAMES
from closecall.report.style import SERIES
from closecall.verdict.picture import new_figure

FAINT = "#666b73"
IN_A_ROW = 2
INSET = 0.025  # of an axis, beyond its ends


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Write every figure that there is something to draw for."""
    prepare_folder(folder)
    written = []
    for name, draw in drawings(results).items():
        figure = draw()
        for kind in ("png", "svg"):
            path = folder / f"{name}.{kind}"
            write_whole(path, content_of(figure, kind))
            written.append(path)
    return written


def drawings(results: Results) -> dict[str, Callable[[], Any]]:
    """What to draw, by the name of its file."""
    known = [part for part in known_of(results) if part.rows]
    found: dict[str, Callable[[], Any]] = {}
    if known:
        found["medians"] = partial(medians_figure, results, known)
        found["distances"] = partial(charts_figure, distance_charts(results, known))
    if any(row.nearest is not None for row in results.distances):
        found["gallery"] = partial(gallery_sheet, results, known)
    if results.transformed:
        found["moved"] = partial(charts_figure, moved_charts(results))
    if results.few:
        found["few"] = partial(charts_figure, [few_chart(results)])
    milps = milp_charts(results) if results.encodings else []
    if milps:
        found["milps"] = partial(charts_figure, milps)
    for row in results.overlapping:
        if row.shots:
            found[f"overlapping-{row.model}"] = partial(overlap_sheet, results, row)
    for capsules in results.capsules:
        if capsules.reconstructions:
            found[f"reconstructions-{capsules.model}"] = partial(reconstruction_sheet, results, capsules)
        for one in capsules.dimensions:
            found[f"dimensions-{capsules.model}-{one.index}"] = partial(dimension_sheet, results, one)
    return found


def content_of(figure: Any, kind: str) -> bytes:
    """The file's content; the same results give the same file."""
    import io

    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "closecall", "svg.fonttype": "none"}):
        figure.savefig(content, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()


def charts_figure(charts: Sequence[Chart]) -> Any:
    """Charts side by side, two in a row."""
    columns = min(IN_A_ROW, len(charts))
    rows = math.ceil(len(charts) / columns)
    figure = new_figure((5.2 * columns, 3.5 * rows))
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, shown in zip(places, charts, strict=False):
        draw_chart(axes, shown)
    for axes in places[len(charts) :]:
        axes.set_axis_off()
    return figure


def draw_chart(axes: Any, shown: Chart) -> None:
    for curve in shown.curves:
        draw_curve(axes, curve)
    set_scale(axes, shown.across, "x")
    set_scale(axes, shown.up, "y")
    axes.set_title(shown.title, fontsize=11, loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def draw_curve(axes: Any, curve: Curve) -> None:
    colour = SERIES[curve.tone - 1]
    if curve.band is not None:
        axes.fill_between(curve.across, *curve.band, color=colour, alpha=0.22, linewidth=0)
    style, mark = "--" if curve.dashed else "-", "o" if curve.marks else None
    axes.plot(
        curve.across, curve.up, style, color=colour, marker=mark, markersize=4, label=curve.name,
        linewidth=4 if curve.wide else 1.5,
    )  # fmt: skip


def set_scale(axes: Any, axis: Axis, which: str) -> None:
    """The ends, ticks and words of one axis, as on the page; a line along an end is not cut off."""
    low, high = axis.low, axis.high
    if axis.logarithmic:
        axes.set(**{f"{which}scale": "log"})
        room = (high / low) ** INSET
        ends = low / room, high * room
    else:
        ends = low - INSET * (high - low), high + INSET * (high - low)
    axes.set(**{f"{which}lim": ends, f"{which}label": axis.label})
    getattr(axes, f"set_{which}ticks")(axis.ticks, [axis.written(tick) for tick in axis.ticks])
    axes.minorticks_off()


def medians_figure(results: Results, known: Sequence[Known]) -> Any:
    """A bar for each model from the proven lower end of its median to the upper one."""
    shown = [part for part in known if math.isfinite(part.lower)]
    figure = new_figure((7.4, 0.9 + 0.45 * len(shown)))
    axes = figure.subplots()
    furthest = max([part.upper for part in shown if math.isfinite(part.upper)], default=1.0) or 1.0
    for place, part in enumerate(shown):
        colour = SERIES[part.tone - 1]
        right = min(part.upper, 1.02 * furthest)
        width = max(right - part.lower, 0.006 * furthest)
        unproven = part.state == "open"
        axes.barh(
            place, width, left=part.lower, height=0.55, edgecolor=colour, linestyle="--" if unproven else "-",
            facecolor="none" if unproven else colour,
        )  # fmt: skip
        beside = axes.get_yaxis_transform()
        axes.text(1.02, place, part.written(), transform=beside, va="center", fontsize=9, color=FAINT)
    axes.set_yticks(range(len(shown)), [title_of(part.model.name) for part in shown])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02 * furthest)
    axes.set_xlabel(
        f"median {NORM_NAMES[results.norm]} distance; filled: proven; dashed: at most this, not proven"
    )
    axes.spines[["top", "right"]].set_visible(False)
    return figure
