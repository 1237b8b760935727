"""The pictures of a performance page: a cactus plot, and how time grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, MaxNLocator

from closecall.bench.record import Measurement
from closecall.bench.summary import Summary, kind_of, median
from closecall.pictures import new_figure, png_bytes

COLOURS = ("#4c78a8", "#e45756", "#54a24b", "#b279a2", "#f58518", "#72b7b2")
PANELS_IN_A_ROW = 3


def cactus_picture(summaries: Sequence[Summary]) -> bytes:
    """For each yardstick: within how many seconds each contender solves how many questions."""
    columns = min(len(summaries), PANELS_IN_A_ROW)
    rows = math.ceil(len(summaries) / columns)
    figure = new_figure((4.6 * columns, 3.8 * rows))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, summary in zip(panels, summaries, strict=False):
        draw_cactus(axes, summary)
    for axes in panels[len(summaries) :]:
        axes.set_axis_off()
    return png_bytes(figure)


def draw_cactus(axes: Any, summary: Summary) -> None:
    for colour, (name, measurements) in zip(cycle_of_colours(), series(summary).items(), strict=False):
        times = sorted(m.seconds for m in measurements if m.solved)
        axes.step(
            range(1, len(times) + 1), times, where="post", marker=".", color=colour,
            label=f"{name}: {len(times)} of {len(measurements)}",
        )  # fmt: skip
    axes.set_title(summary.yardstick, fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0, len(summary.measurements) / len(summary.overall.standings) + 0.5)
    axes.set_xlabel("questions solved")
    axes.set_ylabel("within seconds")
    tidy(axes)


def series(summary: Summary) -> dict[str, list[Measurement]]:
    """The measurements by contender; by network and question where there is one contender only."""
    alone = len(summary.overall.standings) == 1
    found: dict[str, list[Measurement]] = {}
    for m in summary.measurements:
        if not m.left_out:
            name = (
                f"{short(m.network)} {'' if m.target == 'vnnlib' else kind_of(m)}" if alone else m.contender
            )
            found.setdefault(name.strip(), []).append(m)
    return dict(sorted(found.items()))


def growth_picture(measurements: Sequence[Measurement]) -> bytes:
    """Seconds of proofs against undecided units, and of all answers against the radius."""
    figure = new_figure((11.5, 4.4))
    by_units, by_radius = figure.subplots(1, 2)
    networks: dict[str, list[Measurement]] = {}
    for m in measurements:
        networks.setdefault(short(m.network), []).append(m)
    for colour, (name, own) in zip(cycle_of_colours(), networks.items(), strict=False):
        for solved in (True, False):
            dots = [m for m in own if m.undecided is not None and m.solved == solved and not by_luck(m)]
            by_units.plot(
                [m.undecided for m in dots], [m.counted for m in dots], "o", color=colour, markersize=5,
                fillstyle="full" if solved else "none", label=name if solved else None,
            )  # fmt: skip
        radii = sorted({m.radius for m in own if m.radius is not None})
        middle = [median(sorted(m.counted for m in own if m.radius == radius)) for radius in radii]
        by_radius.plot(radii, middle, ".-", color=colour, label=name)
    by_units.set_xlabel("undecided units (proofs only; hollow: not solved within the limit)")
    by_radius.set_xlabel("L∞ radius (medians, a time-out counts as its limit)")
    for axes in (by_units, by_radius):
        axes.set_ylabel("seconds")
        tidy(axes)
    return png_bytes(figure)


def by_luck(m: Measurement) -> bool:
    """Whether a witness answered it, which takes no proof."""
    return m.outcome == "adversarial" and m.radius is not None


def plain_number(value: float, _position: int | None) -> str:
    """0.1, 0.2, 0.5, 1, 2, 5, …; the numbers between them are left out."""
    text = f"{value:g}"
    return text if text.strip("0.") in ("1", "2", "5") else ""


def cycle_of_colours() -> list[str]:
    return [*COLOURS] * 4


def short(network: str) -> str:
    """A network's name without where it comes from."""
    return network.removeprefix("zoo:").removesuffix(".onnx")


def tidy(axes: Any) -> None:
    """Seconds on a logarithmic scale with plain numbers, no box, a small legend."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(plain_number))
    axes.yaxis.set_minor_formatter(FuncFormatter(plain_number))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8)
