"""Numbers are written so that nothing more is claimed than was proven."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from closecall.report.numbers import (
    count,
    duration,
    interval,
    listed,
    median,
    percent,
    rounded_down,
    rounded_near,
    rounded_up,
    spread,
)


@given(st.floats(0, 1e4, allow_subnormal=False))
def test_rounding_keeps_the_exact_value_inside(value: float) -> None:
    lower, upper = float(rounded_down(value)), float(rounded_up(value))
    assert lower <= value <= upper
    assert upper - lower <= (1.01e-4 if value < 1 else 1.01e-3)
    assert lower <= float(rounded_near(value)) <= upper


def test_a_value_that_needs_no_rounding_is_left_alone() -> None:
    assert rounded_up(0.0123) == rounded_down(0.0123) == "0.0123"  # 10000 times it is 123.00000000000001
    assert (rounded_down(3.9289), rounded_up(3.9289)) == ("3.928", "3.929")
    assert rounded_up(7.0) == rounded_down(7.0) == "7"
    assert rounded_up(math.inf) == "∞"


def test_intervals_say_where_they_end() -> None:
    assert interval(0.01234, 0.01236) == "0.0123 to 0.0124"
    assert interval(0.01234, math.inf) == "0.0123 or more"
    assert interval(math.inf, math.inf) == "none in the box"


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0, "0 s"), (1e-5, "< 0.001 s"), (0.0274, "0.0274 s"), (9.999, "10 s"), (45.25, "45.2 s"),
     (99.99, "1 min 40 s"), (3599.7, "1 h 0 min"), (7384, "2 h 3 min")],
)  # fmt: skip
def test_durations(seconds: float, written: str) -> None:
    assert duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == written


def test_the_rest() -> None:
    assert percent(0.98765, 2).replace("\N{NO-BREAK SPACE}", " ") == "98.77 %"
    assert spread([0.5]) == ""
    assert spread([0.5, 0.25, 0.75]).replace("\N{NO-BREAK SPACE}", " ") == "25.0 to 75.0 %"
    assert (count(1234567), count(93.5)) == ("1,234,567", "93.5")
    assert median([1.0, math.inf, math.inf]) == math.inf
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
