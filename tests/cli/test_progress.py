"""The interval while a search goes on, on a terminal and elsewhere."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path

import pytest
from rich.console import Console

import closecall
from closecall.cli.progress import STAGES, LiveLine, sentence, showing_interval, waiting
from closecall.clock import Clock


def test_the_interval_in_words() -> None:
    assert sentence("distance", 3.61, 4.29, 1204, 7.2) == "3.61 ≤ distance ≤ 4.29 · 1,204 nodes · 7 s"
    assert sentence("distance", 0.5, math.inf, 0, 0.1) == "0.5 ≤ distance ≤ ? · 0 s"
    assert sentence("lead", -math.inf, 2.0, 0, 0.1) == "? ≤ lead ≤ 2 · 0 s"
    assert sentence("lead", -math.inf, math.inf, 0, 3.1) == "looking for a first answer · 3 s"


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "quiet": True}], ids=["elsewhere", "quiet"])
def test_nothing_where_nobody_looks(options: dict[str, bool]) -> None:
    text = io.StringIO()
    console = Console(file=text, width=200, **options)
    with waiting("reading", console):
        pass
    with showing_interval(console=console) as report:
        for second in range(20):
            report(second / 100, 1.0, second, float(second))
    assert text.getvalue() == ""


def test_a_bound_that_was_shown_is_never_taken_back() -> None:
    """A method that hands over to another starts with looser bounds, which hold no less."""
    line = LiveLine("distance")
    for lower, upper in [(0.0, math.inf), (1.5, 4.0), (0.0, 3.0), (-math.inf, math.inf), (5.0, 6.0)]:
        line(lower, upper, 3, 0.1)
    assert (line.lower, line.upper) == (3.0, 3.0)


def test_on_a_terminal_the_line_is_live_and_leaves_nothing_behind() -> None:
    text = io.StringIO()
    console = Console(file=text, width=200, force_terminal=True)
    with waiting("reading", console):
        pass
    with showing_interval(console=console) as report:
        report(3.61, 4.29, 12, 0.5)
    shown = text.getvalue()
    assert "3.61 ≤ distance ≤ 4.29 · 12 nodes" in shown
    assert "reading" in shown
    erase_line = "\x1b[2K"
    assert "≤" not in shown[shown.rindex(erase_line) :]


def test_the_seconds_go_on_between_reports() -> None:
    line = LiveLine("distance")
    line.began -= 7.0
    assert line.__rich__().plain == "looking for a first answer · 7 s"
    line(1.0, math.inf, 0, 0.2)
    assert line.__rich__().plain == "1 ≤ distance ≤ ? · 7 s"
    line(1.0, 2.0, 3, 0.5)
    assert line.__rich__().plain == "1 ≤ distance ≤ 2 · 3 nodes · 7 s"


def test_what_is_being_done_is_shown_while_nothing_is_known_yet() -> None:
    clock = Clock(10.0)
    line = LiveLine("distance", clock)
    with clock.stage("bounds"):
        assert line.__rich__().plain == "looking for a first answer · bounding units · 0 s"
        line(0.5, math.inf, 0, 0.1)
        with clock.stage("tighten"):
            assert line.__rich__().plain == "0.5 ≤ distance ≤ ? · tightening bounds · 0 s"
        assert line.__rich__().plain == "0.5 ≤ distance ≤ ? · bounding units · 0 s"
    assert line.__rich__().plain == "0.5 ≤ distance ≤ ? · 0 s"


def test_every_stage_of_a_search_has_words() -> None:
    sources = [path.read_text("utf-8") for path in Path(closecall.__file__).parent.rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'stage\("(\w+)"\)', source)}
    assert named == set(STAGES)
