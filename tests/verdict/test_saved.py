"""A verdict written and read back is the same verdict, and a robust one can be checked too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import closecall
from closecall.models import build
from closecall.readers import read
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict, save_verdict


@pytest.fixture(scope="module")
def classifier() -> closecall.readers.Classifier:
    return read(build("dnn", {"sizes": [6], "input_shape": (1, 3, 3), "classes": 3}, seed=1).eval())


IMAGE = np.random.default_rng(0).random((1, 3, 3))


def test_what_is_read_is_what_was_written(classifier, tmp_path: Path) -> None:
    verdict = closecall.nearest(classifier, IMAGE)
    record = save_verdict(verdict, tmp_path, model="somewhere", origin={"dataset": "mine", "index": 4})
    saved = load_verdict(tmp_path)
    assert saved.record == json.loads(json.dumps(record))
    assert saved.model == "somewhere"
    assert saved.record["origin"] == {"dataset": "mine", "index": 4}
    np.testing.assert_array_equal(saved.witness, verdict.witness)
    np.testing.assert_array_equal(saved.original, verdict.image)
    assert saved.record["scores_before"] == pytest.approx(verdict.scores_before)
    # An original in float64 differs from its float32 file by rounding, which is allowed for.
    assert [check.sentence for check in check_verdict(saved, classifier) if not check.holds] == []


def test_a_later_answer_leaves_no_old_witness(classifier, tmp_path: Path) -> None:
    save_verdict(closecall.nearest(classifier, IMAGE), tmp_path, model="m")
    robust = closecall.certify(classifier, IMAGE, radius=1e-5)
    assert robust.outcome == "robust"
    save_verdict(robust, tmp_path, model="m")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["original.npy", "picture.png", "verdict.json"]
    saved = load_verdict(tmp_path)
    assert saved.witness is None
    assert saved.record["lower_bound"] is None
    assert all(check.holds for check in check_verdict(saved, classifier))


def test_four_channels_have_no_png(tmp_path: Path) -> None:
    classifier = read(build("dnn", {"sizes": [6], "input_shape": (4, 3, 3), "classes": 3}, seed=1).eval())
    verdict = closecall.nearest(classifier, np.full((4, 3, 3), 0.5))
    record = save_verdict(verdict, tmp_path, model="m")
    reason = "a picture has 1 or 3 channels, the image has 4"
    assert record["png"] == {"fools": None, "predicted": None, "reason": reason}
    assert not list(tmp_path.glob("witness*.png"))
    checks = check_verdict(load_verdict(tmp_path), classifier)
    assert all(check.holds for check in checks)
    assert f"there is no witness.png: {reason}." in [check.sentence for check in checks]


def test_a_folder_without_png_files_can_still_be_checked(classifier, tmp_path: Path) -> None:
    record = save_verdict(closecall.nearest(classifier, IMAGE), tmp_path, model="m")
    hashes = {name: record["sha256"][name] for name in ("original.npy", "witness.npy")}
    older = {**{key: value for key, value in record.items() if key != "png"}, "sha256": hashes}
    (tmp_path / "verdict.json").write_text(json.dumps(older))
    for png in tmp_path.glob("witness*.png"):
        png.unlink()
    assert all(check.holds for check in check_verdict(load_verdict(tmp_path), classifier))


def test_a_witness_of_another_size_is_said(classifier, tmp_path: Path) -> None:
    save_verdict(closecall.nearest(classifier, IMAGE), tmp_path, model="m")
    np.save(tmp_path / "witness.npy", np.zeros((1, 2, 2), np.float32))
    failed = [
        check.sentence for check in check_verdict(load_verdict(tmp_path), classifier) if not check.holds
    ]
    assert failed[-1] == "witness.npy has shape (1, 2, 2), the model takes (1, 3, 3)."


def test_a_path_is_kept_so_that_it_is_found_from_anywhere(
    classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_text("")
    verdict = closecall.certify(classifier, IMAGE, radius=1e-5)
    assert save_verdict(verdict, "out", model="model.onnx")["model"] == str(tmp_path / "model.onnx")
    assert save_verdict(verdict, "out", model="zoo:mnist-dnn1")["model"] == "zoo:mnist-dnn1"


def test_a_record_from_before_engines_were_named_can_still_be_checked(classifier, tmp_path: Path) -> None:
    record = save_verdict(closecall.nearest(classifier, IMAGE), tmp_path, model="m")
    newer = ("engine", "why", "time_limit", "threads")
    assert set(newer) <= set(record)
    older = {key: value for key, value in record.items() if key not in newer}
    (tmp_path / "verdict.json").write_text(json.dumps(older))
    assert all(check.holds for check in check_verdict(load_verdict(tmp_path), classifier))
