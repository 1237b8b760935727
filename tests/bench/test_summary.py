"""Solved, means and speed-ups against figures computed by hand; wrong answers are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from closecall.bench import write_page
from closecall.bench.record import Measurement
from closecall.bench.summary import geometric_mean, summarise

Make = Callable[..., Measurement]


def test_a_geometric_mean() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10.0)
    assert geometric_mean([]) is None


def race(make: Make) -> list[Measurement]:
    """auto: 1, 2, 4 s; milp: 10 s, not within 50 s, refused."""
    found = {"distance": 3.0, "lower": 3.0}
    rival = {"method": "milp", "solver": "scip", "limit": 50.0}
    return [
        make(image=0, seconds=1.0, **found),
        make(image=1, seconds=2.0, **found),
        make(image=2, seconds=4.0, **found),
        make(image=0, seconds=10.0, **rival, **found),
        make(image=1, seconds=50.9, outcome="adversarial", **rival, lower=1.0, distance=5.0),
        make(image=2, seconds=0.1, outcome="refused", note="The licence is too small.", **rival),
    ]


def test_a_time_out_counts_as_its_limit_and_a_refusal_not_at_all(made_up: Make) -> None:
    auto, rival = summarise(race(made_up)).overall.standings
    assert (auto.asked, auto.solved, auto.left_out) == (3, 3, 0)
    assert auto.seconds == pytest.approx(2.0)  # the cube root of 1·2·4
    assert (rival.asked, rival.solved, rival.left_out) == (3, 1, 1)
    assert rival.seconds == pytest.approx(500**0.5)
    assert rival.compared == 2
    assert rival.speedup == pytest.approx(250**0.5)  # of 10/1 and 50/2


def test_an_answer_after_its_limit_is_not_solved(made_up: Make) -> None:
    late = made_up(seconds=100.5)
    assert not late.solved
    assert late.counted == 100.0


def test_a_witness_answers_only_a_question_with_a_radius(made_up: Make) -> None:
    assert made_up(outcome="adversarial", radius=0.1).solved
    assert not made_up(outcome="adversarial").solved


def test_only_the_latest_of_a_question_and_contender_counts(made_up: Make) -> None:
    summary = summarise([made_up(seconds=9.0, version="1"), made_up(seconds=3.0, version="2")])
    assert [m.seconds for m in summary.measurements] == [3.0]
    assert summary.overall.standings[0].asked == 1


@pytest.mark.parametrize(("expected", "wrong"), [("unsat", True), ("sat", False), ("unknown", False)])
def test_an_answer_that_is_not_the_expected_one_is_flagged(
    made_up: Make, tmp_path: Path, expected: str, wrong: bool
) -> None:
    answer = made_up(image="p.vnnlib", norm="box", target="vnnlib", outcome="sat", expected=expected)
    found = write_page([answer], tmp_path, {})
    assert len(found) == wrong
    page = (tmp_path / "PERFORMANCE.md").read_text()
    assert ("## Wrong answers" in page) == wrong
    assert (f"auto says sat, expected is {expected}" in page) == wrong


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ({"lower": 3.0, "distance": 3.0002}, False),
        ({"lower": 3.1, "distance": 3.2}, True),
        ({"lower": 2.0, "distance": 2.5}, True),
        ({"lower": 1.0, "distance": None, "outcome": "unresolved"}, False),
        ({"lower": 3.5, "distance": None, "outcome": "unresolved"}, True),
        ({"lower": None, "distance": None, "outcome": "robust"}, True),
        ({"outcome": "failed", "note": "ValueError: oh"}, True),
    ],
)
def test_contenders_that_contradict_each_other_are_flagged(
    made_up: Make, other: dict[str, object], wrong: bool
) -> None:
    pair = [made_up(lower=2.9999, distance=3.0), made_up(method="milp", **other)]
    assert bool(summarise(pair).contradictions) == wrong


@pytest.mark.parametrize(("real", "wrong"), [(2.9, False), (3.0, False), (3.2, True)])
def test_an_image_between_those_of_8_bits_contradicts_nothing(
    made_up: Make, real: float, wrong: bool
) -> None:
    """But none of 8 bits can be nearer than the nearest of all."""
    files = made_up(pixels="8bit", lower=3.0, distance=3.0)
    summary = summarise([made_up(lower=real, distance=real), files])
    assert bool(summary.contradictions) == wrong
    assert [standing.contender for standing in summary.overall.standings] == ["auto, 8bit", "auto"]
    assert files.key != made_up(lower=3.0, distance=3.0).key


def test_the_page_says_what_the_record_says(made_up: Make, tmp_path: Path) -> None:
    measurements = race(made_up)
    write_page(measurements, tmp_path, {})
    page = (tmp_path / "PERFORMANCE.md").read_text()
    figures, details = page.split("<details>")
    (row,) = [line for line in figures.splitlines() if line.startswith("| net ")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "net", "L1", "3 of 3", "2", "1 of 2", "22.4", "15.8×",
    ]  # fmt: skip
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in details.splitlines()
        if line.startswith("| net ")
    ]
    assert len(rows) == len(measurements)
    for row, m in zip(rows, measurements, strict=True):
        assert row[1:4] == [str(m.image), "L1", m.contender]
        assert row[4].startswith(m.outcome)
        assert row[5] == ("" if m.outcome == "refused" else f"{m.seconds:.3g}")
    assert re.search(
        r"1 question was left out of the means of milp \(scip\): The licence is too small\.", page
    )


def test_refusals_that_differ_in_numbers_alone_are_told_once(made_up: Make, tmp_path: Path) -> None:
    refused = {"method": "milp", "solver": "gurobi", "outcome": "refused"}
    sizes = [made_up(image=k, note=f"The model has {1000 + k} columns.", **refused) for k in range(3)]
    write_page([*race(made_up), *sizes], tmp_path, {})
    page = (tmp_path / "PERFORMANCE.md").read_text()
    assert page.count("left out of the means of milp (gurobi)") == 1
    assert "3 questions were left out of the means of milp (gurobi); it said of the first" in page
