"""Charts put every value where its axes say, and axes have round ends that hold all values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closecall.report import (
    Axis,
    Chart,
    Curve,
    chart,
    fixed_axis,
    legend,
    plain_axis,
    powers_axis,
    shares_axis,
    span_axis,
)
from closecall.report.charts import BOTTOM, HEIGHT, INSET, LEFT, RIGHT, TOP, WIDTH
from closecall.report.numbers import percent
from closecall.report.style import STYLE

ACROSS, UP = Axis(0.0, 10.0, [0.0, 5.0, 10.0], "radius"), Axis(0.0, 1.0, [0.0, 1.0], percent=True)


def points_of(drawn: str, kind: str) -> list[tuple[float, float]]:
    found = re.search(rf'points="([^"]+)" class="{kind}', drawn)
    assert found is not None
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in found.group(1).split())]


@given(st.lists(st.floats(-1e4, 1e4, allow_subnormal=False), min_size=1))
def test_plain_axes_hold_zero_and_every_value(values: list[float]) -> None:
    axis = plain_axis(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(0.0, *values)
    assert max(0.0, *values) <= axis.high + slack
    assert axis.low < axis.high
    assert 2 <= len(axis.ticks) <= 7


@given(st.lists(st.floats(0, 1), min_size=1))
def test_shares_end_at_all_of_them(values: list[float]) -> None:
    axis = shares_axis(values)
    assert 0.0 <= axis.low <= min(values) + 1e-9
    assert axis.ticks[-1] == axis.high == 1.0
    assert 2 <= len(axis.ticks) <= 6


@given(st.lists(st.floats(1e-9, 1e4), min_size=1))
def test_an_axis_ends_with_its_values(values: list[float]) -> None:
    axis = span_axis(values)
    assert (axis.low, axis.high) == (0.0, max(values))
    step = axis.ticks[1]
    assert axis.ticks[-1] <= axis.high * (1 + 1e-9) < axis.ticks[-1] + step * (1 + 1e-6)
    assert 3 <= len(axis.ticks) <= 6


def test_nothing_but_zeros_still_has_an_axis() -> None:
    assert (span_axis([0.0]).low, span_axis([]).high) == (0.0, 1.0)


@given(st.lists(st.floats(1e-3, 1e4), min_size=1))
def test_a_logarithmic_axis_holds_its_values_and_hardly_more(values: list[float]) -> None:
    axis = powers_axis(values)
    low, high = min(values), max(values)
    assert axis.low <= low < 2.6 * axis.low
    assert axis.high == high or (axis.high == axis.ticks[-1] and axis.high <= 2.6 * axis.low)
    assert all(f"{tick:e}".rstrip("0")[0] in "125" for tick in axis.ticks)
    assert axis.low <= axis.ticks[0] < axis.ticks[-1] <= axis.high
    assert 2 <= len(axis.ticks) <= 7


@pytest.mark.parametrize("kind", [plain_axis, span_axis, powers_axis, shares_axis])
@given(st.lists(st.floats(1e-3, 1.0), min_size=1))
def test_ticks_are_written_without_loss(kind: Callable[[Sequence[float]], Axis], values: list[float]) -> None:
    axis = kind(values)
    for tick in axis.ticks:
        written = axis.written(tick).replace("\N{NO-BREAK SPACE}%", "").replace("−", "-")
        assert float(written) / (100 if axis.percent else 1) == pytest.approx(tick, rel=1e-9)


def test_dots_are_said_as_tables_write_them() -> None:
    assert shares_axis([0.5], digits=2).said(0.98765) == percent(0.98765, 2)
    assert plain_axis([0.5]).said(0.12345) == "0.1234"


def deviating(colour: str, seen: list[list[float]]) -> np.ndarray:
    """A colour as someone sees it, in L*a*b*."""
    coded = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(np.array(seen) @ linear, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Machado, Oliveira and Fernandes (2009), at full severity.
SIGHT = {
    "usual": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("dark", [False, True])
def test_series_are_told_apart_by_everyone(sight: str, dark: bool) -> None:
    names = ("one", "two", "three", "four", "five", "six")
    found = [re.findall(rf"--{name}: (#[0-9a-f]{{6}});", STYLE)[int(dark)] for name in names]
    seen = [deviating(colour, SIGHT[sight]) for colour in found]
    apart = {
        (one, other): float(np.linalg.norm(seen[one] - seen[other]))
        for one, other in combinations(range(6), 2)
    }
    assert min(apart.values()) > 14
    assert min(far for (_, other), far in apart.items() if other < 4) > 19  # the models of a usual comparison


def test_a_logarithmic_axis_has_equal_steps_for_equal_ratios() -> None:
    axis = fixed_axis([1, 3, 10, 30, 100], logarithmic=True)
    assert [axis.place(value) for value in (1, 10, 100)] == pytest.approx([0, 0.5, 1])
    assert fixed_axis([5], logarithmic=True).place(5) == pytest.approx(0.5)
    assert fixed_axis([0.0]).place(0.0) == 0.5


def test_values_are_drawn_where_the_axes_say() -> None:
    curve = Curve("c", [0.0, 5.0, 10.0], [1.0, 0.5, 0.0], band=([0.5, 0.25, 0.0], [1.0, 1.0, 0.5]))
    drawn = chart(Chart("t", ACROSS, UP, [curve], "spoken"))
    middle = ((LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2)
    line = points_of(drawn, "line")
    left, right, top, floor = LEFT + INSET, WIDTH - RIGHT - INSET, TOP + INSET, HEIGHT - BOTTOM - INSET
    assert line == [(left, top), middle, (right, floor)]
    band = points_of(drawn, "band")
    assert band[:3] == [(left, top), (middle[0], top), (right, middle[1])]
    quarter = pytest.approx(0.5 * (middle[1] + floor), abs=0.06)
    assert band[3:] == [(right, floor), (middle[0], quarter), (left, middle[1])]


def test_a_line_along_zero_is_not_on_the_edge() -> None:
    flat = Curve("flat", [0.0, 10.0], [0.0, 0.0], wide=True)
    drawn = chart(Chart("t", ACROSS, UP, [flat], "spoken"))
    widest = 4.5
    edge = re.search(r'y1="([\d.]+)" y2="\1" class="edge"', drawn)
    assert edge is not None
    assert float(edge.group(1)) == HEIGHT - BOTTOM
    for x, y in points_of(drawn, "line"):
        assert TOP + widest / 2 < y < HEIGHT - BOTTOM - widest / 2
        assert LEFT + widest / 2 < x < WIDTH - RIGHT - widest / 2
    assert 'class="line tone1 wide"' in drawn
    assert f".line.wide {{ stroke-width: {widest}; }}" in STYLE


def test_both_axes_are_named() -> None:
    up = Axis(0.0, 1.0, [0.0, 1.0], "share <right>", percent=True)
    drawn = chart(Chart("t", ACROSS, up, [], "spoken"))
    assert ">radius</text>" in drawn
    assert ">share &lt;right&gt;</text>" in drawn


def test_dots_say_their_values_and_dashes_stay_dashed() -> None:
    curve = Curve("<c>", [0.0, 5.0], [1.0, 0.512], tone=3, dashed=True, marks=True)
    drawn = chart(Chart("t", ACROSS, UP, [curve], "spoken"))
    assert re.findall("<title>(.*?)</title>", drawn) == [
        "&lt;c&gt;, 0: 100.0\xa0%",
        "&lt;c&gt;, 5: 51.2\xa0%",
    ]
    assert 'class="line tone3 dashed"' in drawn
    assert 'class="key tone3 dashed">&lt;c&gt;<' in drawn
    assert "key" not in chart(Chart("t", ACROSS, UP, [curve], "spoken"), keys=False)
    assert legend([curve]) == '<p class="legend"><span class="key tone3 dashed">&lt;c&gt;</span></p>'
