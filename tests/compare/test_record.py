"""Measurements: made once, kept through a crash, and never mistaken for another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from closecall.compare.record import Record
from closecall.errors import InputError


def counted(calls: list[int]) -> dict[str, int]:
    calls.append(1)
    return {"found": len(calls)}


def test_nothing_is_measured_twice(tmp_path: Path) -> None:
    path, calls = tmp_path / "kept.jsonl", []
    record = Record(path)
    assert record.measured({"what": "a", "index": 1}, lambda: counted(calls)) == {"found": 1}
    assert record.measured({"index": 1, "what": "a"}, lambda: counted(calls)) == {"found": 1}
    again = Record(path)
    assert again.has({"what": "a", "index": 1})
    assert again.measured({"what": "a", "index": 1}, lambda: counted(calls)) == {"found": 1}
    assert again.measured({"what": "a", "index": 2}, lambda: counted(calls)) == {"found": 2}
    assert len(path.read_text().splitlines()) == len(calls) == 2


def test_only_what_was_asked_for_is_used(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    Record(path).measured({"what": "old"}, lambda: {"x": 1})
    record = Record(path)
    record.measured({"what": "new"}, lambda: {"x": 2})
    assert [measurement.value for measurement in record.used] == [{"x": 2}]
    assert len(list(record)) == 2


def test_an_interrupted_measurement_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> dict[str, int]:
        raise KeyboardInterrupt

    record = Record(tmp_path / "kept.jsonl")
    with pytest.raises(KeyboardInterrupt):
        record.measured({"what": "a"}, interrupted)
    assert not record.has({"what": "a"})
    assert not (tmp_path / "kept.jsonl").exists()


def test_a_line_cut_off_by_a_crash_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    record = Record(path)
    record.measured({"what": "a"}, lambda: {"x": 1})
    record.measured({"what": "b"}, lambda: {"x": 2})
    path.write_bytes(path.read_bytes()[:-5])
    again = Record(path)
    assert again.has({"what": "a"})
    assert not again.has({"what": "b"})
    assert again.measured({"what": "b"}, lambda: {"x": 3}) == {"x": 3}
    assert [json.loads(line)["value"]["x"] for line in path.read_text().splitlines()] == [1, 3]


@pytest.mark.parametrize("line", ["[]", "{", '{"key": 1}', '{"key": {}, "value": {}, "seconds": "1"}'])
def test_damage_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "kept.jsonl"
    Record(path).measured({"what": "a"}, lambda: {"x": 1})
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match="line 2"):
        Record(path)
