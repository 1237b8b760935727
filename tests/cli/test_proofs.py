"""`--proof` and `closecall check` as a user meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from closecall import certify, nearest
from closecall.errors import QueryError


@pytest.fixture(scope="module")
def two_layers() -> torch.nn.Module:
    torch.manual_seed(3)
    layers = [
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(12, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3),
    ]  # fmt: skip
    return torch.nn.Sequential(*layers).eval()


def test_an_answer_is_proven_checked_and_replayed(run, brightest, pixels, tmp_path: Path) -> None:
    folder, image = tmp_path / "answer", pixels(0.9, 0.4, 0.1, 0.3)
    proof = folder / "proof.ccp"
    asked = ("--model", brightest, "--image", image)
    ran = run("nearest", *asked, "--out", folder, "--proof", proof)
    assert ran.code == 0
    assert f"{proof} proves it" in ran.out
    ran = run("check", proof, "--model", brightest)
    assert ran.code == 0
    assert ran.out.startswith("Proven: no image within")
    assert json.loads(run("check", proof, "--json").out)["proven"] is True
    assert "proof.ccp proves, in whole numbers alone" in run("replay", folder).out
    other = pixels(0.9, 0.5, 0.1, 0.3)
    assert run("nearest", "--model", brightest, "--image", other, "--proof", proof).code == 0
    ran = run("replay", folder)
    assert ran.code == 1
    assert "proof.ccp answers another question: the image is another one" in ran.out
    broken = tmp_path / "broken.ccp"
    broken.write_bytes(proof.read_bytes()[:-9])
    ran = run("check", broken)
    assert (ran.code, ran.out) == (1, "Refused: the file ends in the middle.\n")
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--norm", "l2", "--proof", "x.ccp"), "no proof can be written in l2"),
        (("--confidence", "0.9", "--proof", "x.ccp"), "no proof can be written with confidence"),
        (("--also", "l1:0.5", "--norm", "linf", "--proof", "x.ccp"), "a budget in l1"),
        (("--deployed",), "name a file for it"),
    ],
)
def test_what_cannot_be_proven_is_said_at_once(
    run,
    brightest,
    pixels,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("nearest", "--model", brightest, "--image", pixels(0.9, 0.4, 0.1, 0.3), *options)
    assert ran.code == 2
    assert words in ran.err
    assert not (tmp_path / "x.ccp").exists()


def test_there_is_no_such_proof(run) -> None:
    ran = run("check", "nowhere.ccp")
    assert ran.code == 2
    assert "nowhere.ccp cannot be read" in ran.err


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_convolution_and_pooling(run, two_layers: torch.nn.Module, norm: str, tmp_path: Path) -> None:
    image = np.random.default_rng(5).random((1, 4, 4), dtype=np.float32)
    path, other = tmp_path / "proof.ccp", tmp_path / "deployed.ccp"
    verdict = nearest(two_layers, image, norm=norm, proof=path, time_limit=3)
    assert "proves it" in verdict.notes[-1]
    said = json.loads(run("check", path, "--json").out)
    assert said["radius"] == pytest.approx(verdict.lower_bound, rel=2e-6)
    radius = 0.9 * verdict.lower_bound
    verdict = certify(two_layers, image, radius=radius, norm=norm, proof=other, deployed=True)
    assert verdict.outcome == "robust"
    said = json.loads(run("check", other, "--json").out)
    assert (said["proven"], said["radius"]) == (True, radius)
    assert "in float32" in said["sentence"]


def test_python_refuses_before_it_searches(two_layers: torch.nn.Module, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="no proof"):
        nearest(two_layers, np.zeros((1, 4, 4)), norm="l0", proof=tmp_path / "proof.ccp")
