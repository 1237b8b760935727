"""`closecall universal` on a network whose answers are known by hand: the brightest of four pixels wins."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def images(tmp_path: Path) -> Path:
    pixels = np.array([[[255, 51], [0, 0]], [[51, 255], [0, 0]]], dtype=np.uint8)
    path = tmp_path / "own.npz"
    np.savez(path, x_train=pixels, y_train=[0, 1], x_test=pixels, y_test=[0, 1])
    return path


def test_the_smallest_for_two_images(run, brightest, images, tmp_path: Path) -> None:
    out = tmp_path / "out"
    common = ("universal", "--model", brightest, "--dataset", images, "--indices", "0,1")
    ran = run(*common, "--out", out, "--json")
    answer = json.loads(ran.out)
    assert (ran.code, answer["outcome"], answer["flipped"]) == (0, "smallest", [True, True])
    # One of the black pixels rises as far as both bright ones fall: ε ≥ 1 − ε + 0.001.
    assert answer["distance"] == pytest.approx(0.5005, abs=1e-4)
    delta = np.load(out / "delta.npy")
    np.testing.assert_array_equal(delta, np.array(answer["delta"], dtype=np.float32))
    before, after = np.load(out / "originals.npy"), np.load(out / "perturbed.npy")
    np.testing.assert_array_equal(np.clip(before + delta, np.float32(0), np.float32(1)), after)
    assert (after.reshape(2, 4).argmax(axis=1) != [0, 1]).all()
    saved = json.loads((out / "universal.json").read_text())
    assert saved["origin"] == {"dataset": str(images), "split": "test", "indices": [0, 1]}
    assert saved["files"] == ["originals.npy", "delta.npy", "perturbed.npy"]
    assert (out / "picture.png").stat().st_size > 1000
    # In L1 a black pixel rises to white, and both white ones fall by the margin.
    assert json.loads(run(*common, "--norm", "l1", "--json").out)["distance"] == pytest.approx(
        1.002, abs=1e-3
    )
    assert run(*common, "--radius", 0.4).out.startswith("None: proven that no perturbation within linf dist")


def test_the_most_within_a_radius(run, brightest, images) -> None:
    common = ("universal", "--model", brightest, "--dataset", images, "--indices", "0:2", "--most")
    ran = run(*common, "--radius", 0.45)
    assert ran.code == 0
    assert "within linf distance 0.45 turns 1 of 2 images; proven that none turns more." in ran.out
    assert "turns 2 of 2 images; proven that none turns more." in run(*common, "--radius", "51/100").out
    assert "turns 0 of 2 images; proven that none turns more." in run(*common, "--radius", 0.1).out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--indices", "0,x"), "--indices takes numbers and ranges"),
        (("--indices", "0:99999999999"), "--indices counts up to 100,000,000"),
        (("--indices", "0:11"), "for 1 to 10 images, got 11: choose some of them"),
        (("--indices", "7"), "has no image 7"),
        (("--indices", "0", "--most"), "the most images within which radius? Give one beside most."),
        (("--indices", "0", "--radius", "0"), "the radius must be positive, got 0"),
        (("--indices", "0", "--target", "4"), "the target must be from 0 to 3, got 4"),
        (("--indices", "0", "--target", "0"), "the target 0 is the label itself"),
        (("--indices", "0", "--norm", "l3"), "unknown norm 'l3'"),
        ((), "Missing option '--indices'"),
    ],
)
def test_bad_input_is_one_sentence(run, brightest, images, arguments: tuple[str, ...], sentence: str) -> None:
    ran = run("universal", "--model", brightest, "--dataset", images, *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert sentence in ran.err
