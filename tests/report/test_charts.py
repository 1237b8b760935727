"""Charts put every value where its axes say, and axes have round ends that hold all values."""

from __future__ import annotations

import math
import re

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
)
from closecall.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH

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


@given(st.lists(st.floats(1e-3, 1e4), min_size=1))
def test_powers_of_ten_are_around_every_value(values: list[float]) -> None:
    axis = powers_axis(values)
    assert axis.low <= min(values) * (1 + 1e-9)
    assert max(values) <= axis.high * (1 + 1e-9)
    assert all(math.log10(tick) == pytest.approx(round(math.log10(tick))) for tick in axis.ticks)
    assert len(axis.ticks) <= 7


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
    assert line == [(LEFT, TOP), middle, (WIDTH - RIGHT, HEIGHT - BOTTOM)]
    band = points_of(drawn, "band")
    assert band[:3] == [(LEFT, TOP), (middle[0], TOP), (WIDTH - RIGHT, middle[1])]
    assert band[3:] == [
        (WIDTH - RIGHT, HEIGHT - BOTTOM),
        (middle[0], 0.5 * (middle[1] + HEIGHT - BOTTOM)),
        (LEFT, middle[1]),
    ]


def test_dots_say_their_values_and_dashes_stay_dashed() -> None:
    curve = Curve("<c>", [0.0, 5.0], [1.0, 0.512], tone=3, dashed=True, marks=True)
    drawn = chart(Chart("t", ACROSS, UP, [curve], "spoken"))
    assert re.findall("<title>(.*?)</title>", drawn) == ["&lt;c&gt;, 0: 100 %", "&lt;c&gt;, 5: 51.2 %"]
    assert 'class="line tone3 dashed"' in drawn
    assert 'class="key tone3 dashed">&lt;c&gt;<' in drawn
    assert "key" not in chart(Chart("t", ACROSS, UP, [curve], "spoken"), keys=False)
    assert legend([curve]) == '<p class="legend"><span class="key tone3 dashed">&lt;c&gt;</span></p>'
