"""The pictures of a performance page: how many questions are solved in how much time, and how time grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, cycle, repeat
from typing import Any

from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from closecall.bench.record import Measurement
from closecall.bench.summary import Summary, kind_of, median
from closecall.report.numbers import SOLVER_NAMES
from closecall.report.style import SERIES
from closecall.verdict.picture import new_figure, png_bytes

PANELS_IN_A_ROW = 3
MARKERS = ("o", "s", "^", "D", "v")  # with the colours every pair comes once in thirty
FEW_DECADES = 300  # times; a scale that spans less has numbers between the powers of ten
ROOM = 1.4  # times; beyond the shortest and the longest time
TITLES = {
    "paper": "The paper's networks, L1:\nauto and the paper's two models",
    "gurobi": "The same questions:\nauto and the tight model in Gurobi",
    "highs": "The same questions:\nauto and the tight model in free solvers",
    "norms": "The paper's smallest networks, L2 and L0:\nauto and the tight model in HiGHS and Gurobi",
    "cnn": "Convolutional networks:\nauto, the nearest image of any other class",
    "robust": "A CNN trained to be proven, L∞:\nauto and Gurobi on the same boxes",
    "wide": "mnistfc of VNN-COMP, 256 units a layer:\nauto, two threads",
    "oval21": "oval21 of VNN-COMP, CNNs on CIFAR-10:\nauto, two threads",
    "pixels": "The nearest image of 8 bits,\nbeside the nearest of all, L∞ and L1",
}
MODELS = {
    "milp": "tight model",
    "milp-basic": "paper's basic model",
    "milp-improved": "paper's improved model",
}
UNITS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def cactus_picture(summaries: Sequence[Summary]) -> bytes:
    """For each yardstick: within how many seconds each contender solves how many questions."""
    return png_bytes(cactus_figure(summaries))


def cactus_figure(summaries: Sequence[Summary]) -> Any:
    """One panel for each yardstick; those that ask about the same networks have the same seconds."""
    columns = min(len(summaries), PANELS_IN_A_ROW)
    rows = math.ceil(len(summaries) / columns)
    figure = new_figure((4.8 * columns, 4.0 * rows))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    times: dict[frozenset[str], list[float]] = {}
    for summary in summaries:
        found = times.setdefault(networks_of(summary), [])
        found += [m.seconds for m in summary.measurements if m.solved]
    for axes, summary in zip(panels, summaries, strict=False):
        draw_cactus(axes, summary)
        scale_seconds(axes, times[networks_of(summary)])
    for axes in panels[len(summaries) :]:
        axes.set_axis_off()
    return figure


def networks_of(summary: Summary) -> frozenset[str]:
    return frozenset(m.network for m in summary.measurements)


def draw_cactus(axes: Any, summary: Summary) -> None:
    named = series(summary)
    # Markers become smaller, so that none is hidden by a later one.
    for size, (colour, marker), (name, measurements) in zip(sizes(), looks(), named.items(), strict=False):
        times = sorted(m.seconds for m in measurements if m.solved)
        limit = max(m.limit for m in measurements)
        axes.step(
            range(1, len(times) + 1), times, where="post", marker=marker, markersize=size, color=colour,
            label=f"{name}: {len(times)} of {len(measurements)} in {limit:g} s",
        )  # fmt: skip
    axes.set_title(TITLES.get(summary.yardstick, summary.yardstick), fontsize=10, loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=True))
    longest = max((len(measurements) for measurements in named.values()), default=1)
    axes.set_xlim(0, longest + max(0.5, 0.02 * longest))
    axes.set_xlabel("questions solved")
    axes.set_ylabel("within seconds (logarithmic)")
    axes.legend(frameon=False, fontsize=8)


def series(summary: Summary) -> dict[str, list[Measurement]]:
    """The measurements by contender; by network and question where there is one contender only."""
    alone = len(summary.overall.standings) == 1
    found: dict[str, list[Measurement]] = {}
    for m in summary.measurements:
        if not m.left_out:
            name = f"{short(m.network)} {'' if m.target == 'vnnlib' else kind_of(m)}" if alone else called(m)
            found.setdefault(name.strip(), []).append(m)
    return dict(sorted(found.items()))


def called(m: Measurement) -> str:
    """Who answered, in words."""
    named = m.method if m.method == "auto" else f"{MODELS[m.method]} in {SOLVER_NAMES[m.solver]}"
    return named if m.pixels is None else f"{named}, {m.pixels}"


def growth_picture(measurements: Sequence[Measurement]) -> bytes:
    """Seconds of proofs against undecided units, and of all answers against the radius."""
    return png_bytes(growth_figure(measurements))


def growth_figure(measurements: Sequence[Measurement]) -> Any:
    """Two panels with the same networks, named once below both."""
    figure = new_figure((11.5, 5.0))
    by_units, by_radius = figure.subplots(1, 2)
    networks: dict[str, list[Measurement]] = {}
    for m in measurements:
        networks.setdefault(short(m.network), []).append(m)
    for look, (name, own) in zip(looks(), networks.items(), strict=False):
        draw_units(by_units, own, look)
        draw_radii(by_radius, own, look, name)
    limit = max(m.limit for m in measurements)
    by_units.set_title(
        f"Proofs by undecided units (hollow: not solved in {limit:g} s)", fontsize=10, loc="left"
    )
    by_units.set_xlabel("units that linear bounds leave undecided (logarithmic)")
    scale_units(by_units, [m.undecided for m in measurements if m.undecided is not None])
    by_radius.set_title(
        "All answers by radius (medians; a time-out counts as its limit)", fontsize=10, loc="left"
    )
    by_radius.set_xlabel("L∞ radius (1 is from black to white)")
    for axes in (by_units, by_radius):
        axes.set_ylabel("seconds (logarithmic)")
        scale_seconds(axes, [m.counted for m in measurements])
    figure.legend(
        *by_radius.get_legend_handles_labels(), frameon=False, fontsize=9, ncols=6, loc="outside lower center"
    )
    return figure


def draw_units(axes: Any, own: Sequence[Measurement], look: tuple[str, str]) -> None:
    """A dot for each proof, hollow for each that was not finished."""
    colour, marker = look
    for solved in (True, False):
        dots = [m for m in own if m.undecided is not None and m.solved == solved and not by_luck(m)]
        axes.plot(
            [m.undecided for m in dots], [m.counted for m in dots], marker, color=colour, markersize=5,
            fillstyle="full" if solved else "none",
        )  # fmt: skip


def draw_radii(axes: Any, own: Sequence[Measurement], look: tuple[str, str], name: str) -> None:
    colour, marker = look
    radii = sorted({m.radius for m in own if m.radius is not None})
    middle = [median(sorted(m.counted for m in own if m.radius == radius)) for radius in radii]
    axes.plot(radii, middle, "-", marker=marker, markersize=5, color=colour, label=name)


def by_luck(m: Measurement) -> bool:
    """Whether a witness answered it, which takes no proof."""
    return m.outcome == "adversarial" and m.radius is not None


def looks() -> Iterator[tuple[str, str]]:
    """Colours with markers, so that lines are told apart without colours, too."""
    return zip(cycle(SERIES), cycle(MARKERS), strict=False)


def sizes() -> Iterator[float]:
    return chain((5.5, 4.5), repeat(3.5))


def short(network: str) -> str:
    """A network's name without where it comes from."""
    return network.removeprefix("zoo:").removesuffix(".onnx")


def scale_seconds(axes: Any, times: Iterable[float]) -> None:
    """From the shortest to the longest time, with a plain number at round ones; no box."""
    found = [*times] or [1.0]
    axes.set_yscale("log")
    axes.set_ylim(min(found) / ROOM, max(found) * ROOM)
    few = max(found) < FEW_DECADES * min(found)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(plain_number))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def scale_units(axes: Any, counts: Sequence[int]) -> None:
    """From 0 to the most units: even steps up to 1, equal ratios beyond it."""
    most = max([1, *counts])
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.set_xlim(-0.15, most * ROOM)
    axes.xaxis.set_major_locator(FixedLocator([count for count in UNITS if count <= most * ROOM]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(plain_number))


def plain_number(value: float, _position: int | None) -> str:
    return f"{value:g}"
