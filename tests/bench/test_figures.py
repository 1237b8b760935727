"""The pictures of the performance page say what they show, on axes that fit what was measured."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from closecall.bench import RECORD, summarise_record
from closecall.bench.figures import MODELS, TITLES, cactus_figure, growth_figure, networks_of, series
from closecall.bench.record import Measurement, Record
from closecall.bench.summary import Summary, summarise
from closecall.bench.yardsticks import YARDSTICKS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def published() -> list[Summary]:
    """The measurements that are published, read from their record."""
    return summarise_record(Record(DOCS / RECORD), {})


@pytest.fixture(scope="module")
def raced(published: list[Summary]) -> list[Summary]:
    return [summary for summary in published if not summary.growing]


@pytest.fixture(scope="module")
def cactus(raced: list[Summary]) -> Any:
    return drawn(cactus_figure(raced))


@pytest.fixture(scope="module")
def growth(published: list[Summary]) -> Any:
    return drawn(growth_figure([m for s in published for m in s.measurements if s.growing]))


def drawn(figure: Any) -> Any:
    figure.canvas.draw()
    return figure


def panels(figure: Any) -> list[Any]:
    return [axes for axes in figure.axes if axes.axison]


def test_every_contender_has_a_name_in_words() -> None:
    methods = {c.method for yardstick in YARDSTICKS.values() for c in yardstick.contenders}
    assert methods - {"auto"} == MODELS.keys()


def test_every_race_has_a_title_in_words() -> None:
    raced = [name for name, yardstick in YARDSTICKS.items() if name != "growth" and yardstick]
    assert list(TITLES) == raced
    for title in TITLES.values():
        assert len(title.split()) > 4


@pytest.mark.parametrize("name", ["cactus", "growth"])
def test_titles_units_and_no_text_over_another(name: str, request: pytest.FixtureRequest) -> None:
    figure = request.getfixturevalue(name)
    for axes in panels(figure):
        assert len(axes.get_title(loc="left").split()) > 4
        assert "seconds" in axes.get_ylabel()
        assert axes.get_xlabel()
        for axis in (axes.xaxis, axes.yaxis):
            shown = [label for label in axis.get_ticklabels() if label.get_text()]
            low, high = sorted(axis.get_view_interval())
            boxes = [
                label.get_window_extent()
                for label, place in zip(shown, axis.get_majorticklocs(), strict=True)
                if low <= place <= high
            ]
            assert len(boxes) >= 2
            assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_a_race_ends_with_its_last_question(cactus: Any, raced: list[Summary]) -> None:
    for axes, summary in zip(panels(cactus), raced, strict=True):
        asked = max(len(measurements) for measurements in series(summary).values())
        assert asked < axes.get_xlim()[1] < 1.06 * asked
        alike = [other for other in raced if networks_of(other) == networks_of(summary)]
        times = [m.seconds for other in alike for m in other.measurements if m.solved]
        low, high = axes.get_ylim()
        assert min(times) / 2 < low < min(times)
        assert max(times) < high < 2 * max(times)


def test_legends_say_who_and_how_many(cactus: Any, raced: list[Summary]) -> None:
    names = {"milp-basic (highs)": "paper's basic model in HiGHS", "milp (scip)": "tight model in SCIP"}
    for axes, summary in zip(panels(cactus), raced, strict=True):
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        for who in summary.overall.standings:
            if who.contender in names:
                asked = who.asked - who.left_out
                assert f"{names[who.contender]}: {who.solved} of {asked} in {who.limit:g} s" in texts


def test_lines_differ_in_more_than_colour(cactus: Any, growth: Any) -> None:
    for axes in [*panels(cactus), panels(growth)[1]]:
        lines = axes.get_lines()
        assert len({line.get_marker() for line in lines}) == min(len(lines), 5)
        assert len({(line.get_marker(), line.get_color()) for line in lines}) == len(lines)


def test_growth_ends_with_its_data(growth: Any, published: list[Summary]) -> None:
    measured = [m for s in published for m in s.measurements if s.growing]
    by_units, by_radius = panels(growth)
    most = max(m.undecided for m in measured if m.undecided is not None)
    assert by_units.get_xlim()[0] < 0
    assert most < by_units.get_xlim()[1] < 1.5 * most
    furthest = max(m.radius for m in measured if m.radius is not None)
    assert furthest < by_radius.get_xlim()[1] < 1.1 * furthest
    assert len(growth.legends[0].get_texts()) == len({m.network for m in measured})


def test_nothing_solved_is_drawn_too(made_up: Callable[..., Measurement]) -> None:
    lost = summarise([made_up(outcome="unresolved"), made_up(method="milp", outcome="unresolved")])
    figure = drawn(cactus_figure([lost]))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "auto: 0 of 1 in 100 s",
        "tight model in HiGHS: 0 of 1 in 100 s",
    ]
