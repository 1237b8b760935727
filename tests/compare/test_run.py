"""A whole comparison, made tiny: every section, tables that agree, a rerun and an interruption."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from closecall.compare.how import describe_how
from closecall.compare.presets import Preset
from closecall.compare.progress import Progress
from closecall.compare.results import Results
from closecall.compare.run import Wishes, alone_in, compare
from closecall.errors import InputError
from closecall.models import load_model, save_model
from closecall.models.export import onnx_bytes

Compare = Callable[..., Results]


@pytest.fixture
def run(tiny: Preset, progress: Progress, tmp_path: Path) -> Compare:
    def call(out: str = "out", said: Progress = progress, **wishes: Any) -> Results:
        return compare(Wishes("digits", **wishes), tmp_path / out, said)

    return call


def measured(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]


def test_every_section_its_tables_and_a_rerun(run: Compare, tmp_path: Path) -> None:
    results = run(seeds=2)
    out = tmp_path / "out"
    assert Results.read(out / "results.json") == results
    names = [model.name for model in results.models]
    assert names == ["dnn", "cnn", "cnn-baseline", "capsnet"]
    assert [model.provable for model in results.models] == [True, True, True, True]
    assert all(len(model.accuracy) == len(model.training_seconds) == 2 for model in results.models)
    assert results.models[3].units is None
    assert "35,445,522" in results.models[2].note
    assert {row.model for row in results.distances} == {row.model for row in results.few} == set(names)
    assert {row.kind for row in results.transformed} == {"shift", "rotation", "scale", "shear"}
    assert len(results.encodings) == 6
    assert [row.model for row in results.capsules] == ["capsnet"]
    assert results.overlapping == []
    assert any("overlapping" in sentence for sentence in results.how.narrowed)
    assert any("256-256-128" in sentence for sentence in results.how.narrowed)
    check_tables(results, out / "csv")
    before = (out / "measurements.jsonl").read_bytes(), (out / "results.json").read_bytes()
    weights = (out / "models" / "dnn-seed1" / "model.safetensors").read_bytes()
    assert run(seeds=2) == results
    assert before == ((out / "measurements.jsonl").read_bytes(), (out / "results.json").read_bytes())
    assert weights == (out / "models" / "dnn-seed1" / "model.safetensors").read_bytes()


def check_tables(results: Results, folder: Path) -> None:
    """Every number of the tables is that of the results."""
    rows = {path.stem: list(csv.DictReader(path.read_text().splitlines())) for path in folder.iterdir()}
    assert set(rows) == {"models", "distances", "moved", "few", "encodings", "milps"}
    for row, model in zip(rows["models"], results.models, strict=True):
        assert [float(part) for part in row["accuracy"].split()] == model.accuracy
        assert int(row["parameters"]) == model.parameters
    for row, distance in zip(rows["distances"], results.distances, strict=True):
        assert (row["model"], int(row["index"]), row["outcome"]) == (
            distance.model, distance.index, distance.outcome,
        )  # fmt: skip
        assert (float(row["upper"]) if row["upper"] else None) == distance.upper
        assert "original" not in row
    assert len(rows["few"]) == len(results.few)
    assert len(rows["moved"]) == len(results.transformed)
    assert len(rows["milps"]) == sum(len(row.answers) for row in results.encodings)


class Impatient(Progress):
    """Presses Ctrl-C when a line with these words is said."""

    words = ""

    def say(self, line: str) -> None:
        if self.words in line:
            raise KeyboardInterrupt
        super().say(line)


@pytest.mark.parametrize("words", ["cnn, seed 0", "cnn, test image", "dnn, 2 images of each class"])
def test_interrupted_and_gone_on(run: Compare, progress: Progress, tmp_path: Path, words: str) -> None:
    impatient = Impatient(progress.console, progress.show_interval)
    object.__setattr__(impatient, "words", words)
    with pytest.raises(KeyboardInterrupt):
        run(said=impatient, models=["dnn", "cnn"])
    kept = (tmp_path / "out" / "measurements.jsonl").read_bytes()
    assert kept.count(b"\n") >= 1
    assert not (tmp_path / "out" / "results.json").exists()
    results = run(models=["dnn", "cnn"])
    after = (tmp_path / "out" / "measurements.jsonl").read_bytes()
    assert after.startswith(kept)
    keys = [json.dumps(line["key"], sort_keys=True) for line in measured(tmp_path / "out")]
    assert len(keys) == len(set(keys))
    whole = run("other", models=["dnn", "cnn"])
    timeless = [replace(model, training_seconds=[], milliseconds_single=0.0, milliseconds_batched=0.0)
                for part in (results, whole) for model in part.models]  # fmt: skip
    assert timeless[: len(results.models)] == timeless[len(results.models) :]
    assert results.few == whole.few
    assert results.transformed == whole.transformed


def test_more_can_be_asked_for_later(run: Compare, tmp_path: Path) -> None:
    run(models=["dnn"])
    before = (tmp_path / "out" / "measurements.jsonl").read_bytes()
    results = run(models=["dnn"], images=3, seeds=2)
    assert (tmp_path / "out" / "measurements.jsonl").read_bytes().startswith(before)
    assert len(results.distance_images) == len(results.distances) == 3
    assert len(results.models[0].accuracy) == 2


def test_models_that_are_brought(run: Compare, tmp_path: Path) -> None:
    trained = run(models=["dnn"])
    folder = tmp_path / "out" / "models" / "dnn-seed0"
    module = load_model(folder)
    save_model(module, tmp_path / "mine")
    (tmp_path / "net.onnx").write_bytes(onnx_bytes(module))
    given = {"dnn": str(tmp_path / "mine"), "file": str(tmp_path / "net.onnx")}
    results = run("other", models=["dnn"], given=given)
    assert [(m.name, m.kind, m.source) for m in results.models] == [
        ("dnn", "dnn", given["dnn"]),
        ("file", "other", given["file"]),
    ]
    for model in results.models:
        assert model.accuracy == trained.models[0].accuracy
        assert model.training_seconds == []
        assert (model.parameters, model.units) == (trained.models[0].parameters, trained.models[0].units)
        mine = [(r.index, r.proven) for r in results.distances if r.model == model.name]
        assert mine == [(r.index, r.proven) for r in trained.distances]
        for row, other in zip(
            [r for r in results.distances if r.model == model.name], trained.distances, strict=True
        ):
            assert math.isclose(row.upper or 0, other.upper or 0, rel_tol=1e-3, abs_tol=1e-6)
    assert {row.model for row in results.few} == {"dnn"}
    assert not (tmp_path / "other" / "models").exists()


def test_a_damaged_or_missing_training_is_made_again(run: Compare, tmp_path: Path) -> None:
    first = run(models=["dnn"])
    folder = tmp_path / "out" / "models" / "dnn-seed0"
    weights = (folder / "model.safetensors").read_bytes()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "checkpoint.safetensors").write_bytes(b"broken")
    again = run(models=["dnn"])
    assert (folder / "model.safetensors").read_bytes() == weights
    assert again.few == first.few


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"norm": "l3"}, "l3"),
        ({"seeds": 0}, "--seeds must be at least 1"),
        ({"images": -1}, "--images must be at least 1"),
        ({"threads": 0}, "--threads must be at least 1"),
        ({"time_limit": math.inf}, "--time-limit must be a positive number"),
        ({"preset": "slow"}, "choose quick or full"),
        ({"models": ["rnn"]}, "no model 'rnn'"),
    ],
)
def test_bad_wishes_cost_no_time(run: Compare, tmp_path: Path, wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(**wishes)
    assert not (tmp_path / "out" / "models").exists()


def test_a_folder_belongs_to_one_comparison(run: Compare, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "comparison.json").write_text('{"dataset": "mnist", "preset": "full"}')
    with pytest.raises(InputError, match="holds the comparison of mnist with the preset full"):
        run()
    (tmp_path / "out" / "comparison.json").write_text("{")
    with pytest.raises(InputError, match="choose another folder"):
        run()


def test_two_at_once_in_one_folder_are_refused(run: Compare, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with alone_in(tmp_path / "out"), pytest.raises(InputError, match="Another comparison is at work"):
        run(models=["dnn"])
    assert not (tmp_path / "out" / "models").exists()
    assert run(models=["dnn"]).models[0].name == "dnn"


def test_the_times_are_those_of_the_measurements(made: Callable[..., Any]) -> None:
    comparison = made("dnn")
    comparison.record.measured({"what": "training"}, lambda: {"seconds": 100.0})
    comparison.record.measured({"what": "other"}, lambda: {"seconds": 50.0})
    how = describe_how(comparison, [], len(comparison.train))
    assert 100 <= how.measured_seconds < 110
    assert how.training["dnn"].startswith("12 epochs of 300 images")


def test_what_was_narrowed_is_said_of_what_was_compared(made: Callable[..., Any]) -> None:
    few = describe_how(made("dnn", "cnn"), [], 1437).narrowed
    assert few[0] == "Training used 300 of 1,437 images."
    assert any(sentence.startswith("There is one seed") for sentence in few)
    assert any("matched on 25 held-out images" in sentence for sentence in few)
    assert not any("capsnet" in sentence or "baseline" in sentence for sentence in few)
    all_seeds = describe_how(made("capsnet", seeds=3), [], 300).narrowed
    assert any("8.2 M" in sentence for sentence in all_seeds)
    assert not any("seeds," in sentence or "MILPs" in sentence for sentence in all_seeds)
