"""`closecall bench` on a folder of instances whose answers are known by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def property_text(lower: float) -> str:
    """Pixel 0 is at least `lower` and the others at most ½: can the first class lose?"""
    declared = [f"(declare-const {kind}_{i} Real)" for kind in "XY" for i in range(4)]
    box = [
        f"(assert (>= X_{i} {lower if i == 0 else 0})) (assert (<= X_{i} {1 if i == 0 else 0.5}))"
        for i in range(4)
    ]
    goal = "(assert (or (and (<= Y_0 Y_1)) (and (<= Y_0 Y_2)) (and (<= Y_0 Y_3))))"
    return "\n".join([*declared, *box, goal])


@pytest.fixture
def folder(brightest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The command pins these for good, which other tests should not notice.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    made = tmp_path / "instances"
    made.mkdir()
    shutil.copy(brightest, made / "net.onnx")
    for name, lower in {"safe": 0.75, "unsafe": 0.25}.items():
        (made / f"{name}.vnnlib").write_text(property_text(lower))
    (made / "all_instances.csv").write_text("net.onnx,safe.vnnlib,120\nnet.onnx,unsafe.vnnlib,120\n")
    return made


def answers(out: Path) -> dict[str, str]:
    lines = (out / "performance.jsonl").read_text().splitlines()
    return {content["image"]: content["outcome"] for content in map(json.loads, lines)}


def test_wide_answers_and_a_rerun_adds_nothing(run: Callable, folder: Path, tmp_path: Path) -> None:
    (folder / "expected.csv").write_text("net.onnx,safe.vnnlib,unsat\nnet.onnx,unsafe.vnnlib,sat\n")
    out = tmp_path / "docs"
    ran = run("bench", "wide", "--full", "--mnistfc", folder, "--out", out)
    assert ran.code == 0, ran.err
    assert answers(out) == {"safe.vnnlib": "unsat", "unsafe.vnnlib": "sat"}
    assert "2 of 2" in (out / "PERFORMANCE.md").read_text()
    before = (out / "performance.jsonl").read_bytes()
    assert run("bench", "wide", "--full", "--mnistfc", folder, "--out", out).code == 0
    assert (out / "performance.jsonl").read_bytes() == before


def test_quick_takes_every_fifth_instance(run: Callable, folder: Path, tmp_path: Path) -> None:
    assert run("bench", "wide", "--mnistfc", folder, "--out", tmp_path / "docs").code == 0
    assert answers(tmp_path / "docs") == {"safe.vnnlib": "unsat"}


def test_a_wrong_answer_is_loud(run: Callable, folder: Path, tmp_path: Path) -> None:
    (folder / "expected.csv").write_text("net.onnx,safe.vnnlib,sat\n")
    ran = run("bench", "wide", "--quick", "--mnistfc", folder, "--out", tmp_path / "docs")
    assert ran.code == 1
    assert "WRONG ANSWER: wide, net.onnx, safe.vnnlib" in ran.err
    assert "auto says unsat, expected is sat" in (tmp_path / "docs" / "PERFORMANCE.md").read_text()


def test_wide_without_its_folder_is_left_out_with_a_sentence(
    run: Callable, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOSECALL_MNISTFC", raising=False)
    ran = run("bench", "wide", "--out", tmp_path / "docs")
    assert ran.code == 0
    assert "wide: left out, since no folder of instances was given" in ran.out


def test_an_unknown_yardstick_is_refused(run: Callable, folder: Path, tmp_path: Path) -> None:
    ran = run("bench", "papers", "--out", tmp_path / "docs")
    assert ran.code == 2
    assert "choose from paper, gurobi, highs, norms, cnn, robust, wide, oval21, pixels, growth" in ran.err
    assert not (tmp_path / "docs").exists()
