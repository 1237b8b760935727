"""A whole bench on a network whose distances are known: measured once, gone on with, written down."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from closecall.bench import RECORD, measure_all
from closecall.bench.measure import raising_every_interrupt
from closecall.bench.record import Measurement, Record
from closecall.bench.yardsticks import Contender, Family, Yardstick
from closecall.errors import InputError

torch.set_num_threads(1)

# By hand: the two brightest pixels must change places, and the margin of 0.001 comes on top.
DISTANCES = {0: 153 / 255 + 0.001, 2: 51 / 255 + 0.001, 3: 102 / 255 + 0.001}


def test_the_first_correct_images_are_asked_and_the_answers_recorded(tiny: Yardstick, tmp_path: Path) -> None:
    said: list[str] = []
    assert measure_all([tiny], "full", tmp_path, {}, said.append) == []
    record = list(Record(tmp_path / RECORD))
    assert sorted((m.image, m.method) for m in record) == [
        (image, method) for image in DISTANCES for method in ("auto", "milp")
    ]
    for m in record:
        assert m.outcome == "nearest"
        assert m.distance == pytest.approx(DISTANCES[m.image], rel=2e-4)
        assert m.seconds > 0
        assert m.solved
        assert len(m.network_sha256) == 64
    assert len(said) == 6
    assert {m.undecided is None for m in record if m.method == "auto"} == {False}


def test_contenders_take_turns_in_beginning(tiny: Yardstick, tmp_path: Path) -> None:
    measure_all([tiny], "full", tmp_path, {}, str)
    methods = [m.method for m in Record(tmp_path / RECORD)]
    assert methods == ["auto", "milp", "milp", "auto", "auto", "milp"]


def test_a_rerun_measures_only_what_is_not_there(tiny: Yardstick, tmp_path: Path) -> None:
    measure_all([tiny], "full", tmp_path, {}, str)
    file = tmp_path / RECORD
    whole = file.read_bytes()
    said: list[str] = []
    measure_all([tiny], "full", tmp_path, {}, said.append)
    assert file.read_bytes() == whole
    assert said == []
    # As after a crash: the last line was not written to its end. Its question is asked again side by side.
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    measure_all([tiny], "full", tmp_path, {}, said.append)
    assert len(said) == 2
    again = file.read_bytes().splitlines(keepends=True)
    assert again[:5] == lines[:5]
    assert [json.loads(line)["image"] for line in again[5:]] == [json.loads(lines[-1])["image"]] * 2
    assert len(list(Record(file))) == 6


def test_quick_and_full_are_not_mixed(tiny: Yardstick, tmp_path: Path) -> None:
    measure_all([tiny], "full", tmp_path, {}, str)
    said: list[str] = []
    measure_all([tiny], "quick", tmp_path, {}, said.append)
    assert len(said) == 2
    summary = json.loads((tmp_path / "performance.json").read_text())["yardsticks"][0]
    assert summary["run"] == "quick"
    assert len(summary["measurements"]) == 2
    assert "1 of 1" in (tmp_path / "PERFORMANCE.md").read_text()


def test_ctrl_c_keeps_what_is_finished_and_no_half_answer(tiny: Yardstick, tmp_path: Path) -> None:
    def stop_in_the_third(said: str) -> None:
        if len(list(Record(tmp_path / RECORD))) == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        measure_all([tiny], "full", tmp_path, {}, stop_in_the_third)
    assert len(list(Record(tmp_path / RECORD))) == 2
    assert "All 2 measurements" in (tmp_path / "PERFORMANCE.md").read_text()
    said: list[str] = []
    measure_all([tiny], "full", tmp_path, {}, said.append)
    assert len(said) == 4


def test_a_solver_that_is_not_there_is_left_out_until_it_is(
    tiny: Yardstick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from closecall.solvers import SOLVERS

    yardstick = replace(
        tiny, contenders=(Contender("auto", "highs", 20, 10), Contender("milp", "scip", 20, 10))
    )
    with monkeypatch.context() as absent:
        absent.setitem(SOLVERS, "scip", "no_such_package")
        measure_all([yardstick], "quick", tmp_path, {}, str)
    summary = json.loads((tmp_path / "performance.json").read_text())["yardsticks"][0]
    assert [s["left_out"] for s in summary["overall"]["standings"]] == [0, 1]
    assert summary["overall"]["standings"][1]["speedup"] is None
    page = (tmp_path / "PERFORMANCE.md").read_text()
    assert "1 question was left out of the means of milp (scip)" in page
    assert 'pip install "closecall[scip]"' in page
    pytest.importorskip("pyscipopt")
    said: list[str] = []
    measure_all([yardstick], "quick", tmp_path, {}, said.append)
    assert len(said) == 2
    summary = json.loads((tmp_path / "performance.json").read_text())["yardsticks"][0]
    assert [s["solved"] for s in summary["overall"]["standings"]] == [1, 1]


def test_a_network_that_is_not_in_the_zoo_is_left_out_with_a_sentence(
    tiny: Yardstick, tmp_path: Path
) -> None:
    absent = Family(("zoo:no-such-network",), dataset=tiny.families[0].dataset)
    said: list[str] = []
    measure_all([replace(tiny, families=(absent,))], "quick", tmp_path, {}, said.append)
    assert said == ["tiny: zoo:no-such-network is not in this version's zoo, so it is left out."]
    assert said[0] in (tmp_path / "PERFORMANCE.md").read_text()


def test_questions_with_a_radius_become_the_growth_picture(tiny: Yardstick, tmp_path: Path) -> None:
    family = tiny.families[0]
    radii = (0.1, 0.5)  # in L∞ the nearest is at half of (0.6 + 0.001)
    yardstick = replace(
        tiny,
        contenders=tiny.contenders[:1],
        families=tuple(replace(family, norm="linf", radius=radius) for radius in radii),
    )
    measure_all([yardstick], "quick", tmp_path, {}, str)
    assert [m.outcome for m in Record(tmp_path / RECORD)] == ["robust", "adversarial"]
    assert all(m.solved for m in Record(tmp_path / RECORD))
    assert (tmp_path / "images" / "performance-growth.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "images" / "performance-cactus.png").exists()


def test_what_is_written_by_hand_survives(tiny: Yardstick, tmp_path: Path) -> None:
    measure_all([tiny], "quick", tmp_path, {}, str)
    page = tmp_path / "PERFORMANCE.md"
    added = "| a better bound | 12 s | 3 s |\n"
    page.write_text(page.read_text().replace("|---|---|---|\n", "|---|---|---|\n" + added, 1))
    measure_all([tiny], "full", tmp_path, {}, str)
    assert page.read_text().count(added) == 1
    assert "full run" in page.read_text()


def test_a_page_of_someone_else_is_not_overwritten(tiny: Yardstick, tmp_path: Path) -> None:
    page = tmp_path / "PERFORMANCE.md"
    page.write_text("# My own\n")
    with pytest.raises(InputError, match="was not written by closecall bench"):
        measure_all([tiny], "quick", tmp_path, {}, str)
    assert page.read_text() == "# My own\n"
    assert not (tmp_path / RECORD).exists()


def test_a_record_of_another_kind_is_refused_by_its_line(
    made_up: Callable[..., Measurement], tmp_path: Path
) -> None:
    record = Record(tmp_path / RECORD)
    record.append(made_up())
    with record.path.open("a") as file:
        file.write('{"speed": 3}\n')
    with pytest.raises(InputError, match="line 2 is not a measurement"):
        Record(record.path)


def test_ctrl_c_in_a_search_is_not_taken_for_its_answer() -> None:
    before = signal.getsignal(signal.SIGINT)
    gone_on = []

    def search() -> None:
        with raising_every_interrupt():
            with suppress(KeyboardInterrupt):  # as a search that gives its best answer so far
                signal.raise_signal(signal.SIGINT)
            gone_on.append(True)

    with pytest.raises(KeyboardInterrupt):
        search()
    assert gone_on
    assert signal.getsignal(signal.SIGINT) is before
