"""`closecall nearest`, `certify` and `ideal` on a network whose answers are known by hand."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

WANTED_KEYS = {
    "outcome", "distance", "lower_bound", "norm", "label", "predicted_before", "predicted_after", "target",
    "margin", "seconds", "seconds_by_stage", "nodes", "solver", "method", "witness", "replayed",
    "network_sha256", "version", "radius", "cap", "ratio", "outputs", "gap", "notes", "tolerances",
}  # fmt: skip


@pytest.mark.parametrize(
    ("norm", "target", "distance"),
    [
        ("l1", "any", 0.401),
        ("linf", "any", 0.2005),
        ("l2", "any", 0.401 / math.sqrt(2)),
        ("l0", "any", 1.0),
        ("l1", "3", 0.901),
        ("l1", "paper", 0.801),
    ],
)
def test_nearest_finds_the_known_distance(run, brightest, pixels, norm, target, distance) -> None:
    image = pixels(0.9, 0.5, 0.1, 0.0)
    ran = run("nearest", "--model", brightest, "--image", image, "--norm", norm, "--target", target, "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert set(answer) >= WANTED_KEYS
    assert answer["outcome"] == "nearest"
    assert answer["distance"] == pytest.approx(distance, rel=1e-3)
    assert answer["lower_bound"] <= answer["distance"]
    assert (answer["label"], answer["predicted_before"]) == (0, 0)
    assert answer["target"] == {"any": None, "3": 3, "paper": 2}[target]
    assert answer["replayed"] is True
    assert answer["saved"] is None
    witness = np.array(answer["witness"])
    assert witness.shape == (1, 2, 2)
    moved = (witness - np.load(image)).ravel()
    measures = {"l1": np.abs(moved).sum(), "linf": np.abs(moved).max(), "l2": np.sqrt((moved**2).sum())}
    assert measures.get(norm, np.count_nonzero(moved)) == pytest.approx(answer["distance"], rel=1e-6)
    # The scores of this network are the pixels themselves.
    np.testing.assert_allclose(answer["scores_before"], [0.9, 0.5, 0.1, 0.0], atol=1e-6)
    np.testing.assert_allclose(answer["scores_after"], witness.ravel(), atol=1e-6)
    assert answer["class_names"] == ["0", "1", "2", "3"]


def test_margin_ratio_and_cap_reach_the_question(run, brightest, pixels) -> None:
    image = pixels(0.9, 0.5, 0.1, 0.0)
    common = ("nearest", "--model", brightest, "--image", image, "--json")
    assert json.loads(run(*common, "--margin", 0.1).out)["distance"] == pytest.approx(0.5, rel=1e-3)
    # A probability ratio is a margin of its logarithm.
    ratio = json.loads(run(*common, "--ratio", 1.2).out)
    assert ratio["distance"] == pytest.approx(0.4 + math.log(1.2), rel=1e-3)
    capped = json.loads(run(*common, "--cap", 0.15).out)
    assert (capped["outcome"], capped["distance"], capped["lower_bound"]) == ("robust", None, None)


def test_the_paper_preset(run, brightest, pixels) -> None:
    """Target 2 with y₂ ≥ 1.2·y₀ from (0.5, 0.2, 0.45, 0): cheapest is to lower y₀ to 0.375."""
    common = ("nearest", "--model", brightest, "--image", pixels(0.5, 0.2, 0.45, 0.0), "--json", "--preset")
    answer = json.loads(run(*common, "paper").out)
    assert answer["distance"] == pytest.approx(0.125, rel=1e-3)
    asked = [answer[key] for key in ("norm", "target", "ratio", "outputs", "cap")]
    assert asked == ["l1", 2, 1.2, "relu", 0.2]
    changed = json.loads(run(*common, "paper", "--margin", 0.01, "--target", "any", "--cap", "0.3").out)
    asked = [changed[key] for key in ("norm", "target", "ratio", "margin", "outputs", "cap")]
    assert asked == ["l1", None, None, 0.01, "relu", 0.3]


def test_costs_change_what_is_optimal_and_say_so(run, brightest, pixels) -> None:
    image = pixels(0.9, 0.5, 0.1, 0.0)
    common = ("nearest", "--model", brightest, "--image", image, "--target", 1, "--json")
    ran = run(*common, "--unit-cost", 5, "--inactive-penalty", 0.1, "--class-cost", 0.5)
    answer = json.loads(ran.out)
    assert ran.code == 0
    assert answer["outcome"] == "adversarial"
    assert "optimal for the given costs, which is not the same as nearest" in answer["notes"]


@pytest.mark.parametrize("method", ["auto", "milp", "milp-basic"])
@pytest.mark.parametrize(("radius", "found"), [(0.19, False), (0.21, True)])
def test_certify_on_both_sides_of_the_known_distance(run, brightest, pixels, method, radius, found) -> None:
    image = pixels(0.9, 0.5, 0.1, 0.0)
    common = ("certify", "--model", brightest, "--image", image, "--json", "--method", method)
    ran = run(*common, "--radius", radius)
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert answer["outcome"] in (("adversarial", "nearest") if found else ("robust",))
    assert (answer["norm"], answer["radius"]) == ("linf", radius)
    assert (answer["distance"] is not None) == found
    assert not found or 0.2 < answer["distance"] <= radius


@pytest.mark.parametrize(
    ("command", "engine", "tolerance"),
    [
        (("nearest",), "highs", "mip_feasibility_tolerance 1e-09"),
        (("certify", "--radius", 0.19), "linear bounds", "outward_rounding 1e-11"),
    ],
)
def test_verbose_says_on_stderr_what_answered(
    run, brightest, pixels, command, engine: str, tolerance: str
) -> None:
    common = (*command, "--model", brightest, "--image", pixels(0.9, 0.5, 0.1, 0.0), "--method", "milp")
    quiet, verbose = run(*common, "--json"), run(*common, "--json", "--verbose")
    assert quiet.err == ""
    answer = json.loads(verbose.out)
    assert answer["engine"] == engine
    lines = verbose.err.splitlines()
    assert lines[0] == f"Answered by {engine}."
    exact = ", ".join(f"{name} {value:g}" for name, value in answer["tolerances"].items())
    assert f"Exact to {exact}." in lines
    assert tolerance in exact
    assert lines[-1].startswith("Seconds by stage: read ")


def test_an_image_that_is_already_wrong(run, brightest, pixels) -> None:
    image = pixels(0.9, 0.5, 0.1, 0.0)
    ran = run("nearest", "--model", brightest, "--image", image, "--label", 3)
    assert ran.code == 0
    assert "Already misclassified: the image of label 3 is seen as a 0, so the distance is 0." in ran.out


def test_a_data_set_brings_its_labels_and_class_names(run, brightest, tmp_path: Path) -> None:
    images = np.array([[[230, 20], [10, 0]], [[20, 230], [10, 0]]], dtype=np.uint8)
    labels = np.array([0, 1])
    np.savez(tmp_path / "own.npz", x_train=images, y_train=labels, x_test=images[::-1], y_test=labels[::-1])
    common = ("nearest", "--model", brightest, "--dataset", tmp_path / "own.npz", "--index", 0, "--json")
    test = json.loads(run(*common).out)
    train = json.loads(run(*common, "--split", "train").out)
    assert (test["label"], train["label"]) == (1, 0)
    for answer in (test, train):
        assert answer["distance"] == pytest.approx(210 / 255 + 0.001, rel=1e-3)
    assert train["origin"] == {"dataset": str(tmp_path / "own.npz"), "split": "train", "index": 0}


def test_out_writes_the_answer_and_a_picture(run, brightest, pixels, tmp_path: Path) -> None:
    from PIL import Image

    image, out = pixels(0.9, 0.5, 0.1, 0.0), tmp_path / "deep" / "answer"
    ran = run("nearest", "--model", brightest, "--image", image, "--out", out, "--json")
    answer, saved = json.loads(ran.out), json.loads((out / "verdict.json").read_text())
    assert answer["saved"] == str(out)
    np.testing.assert_array_equal(np.load(out / "witness.npy"), np.array(answer["witness"], np.float32))
    assert saved["distance"] == answer["distance"]
    assert np.abs(np.load(out / "witness.npy") - np.load(image)).sum() == pytest.approx(answer["distance"])
    np.testing.assert_array_equal(np.load(out / "original.npy"), np.load(image))
    with Image.open(out / "picture.png") as picture:
        assert picture.width > 2 * picture.height
    plain = run("nearest", "--model", brightest, "--image", image, "--out", out)
    assert plain.out.startswith("Nearest: l1 distance 0.401")
    assert plain.out.rstrip().endswith(f"saved in {out}")


def test_ideal_leads_by_as_much_as_pixels_allow(run, brightest, tmp_path: Path) -> None:
    common = ("ideal", "--model", brightest, "--target", 2, "--json")
    ran = run(*common, "--out", tmp_path)
    answer = json.loads(ran.out)
    assert (ran.code, answer["outcome"]) == (0, "ideal")
    assert answer["lead"] == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(np.array(answer["image"]), [[[0, 0], [1, 0]]], atol=1e-4)
    np.testing.assert_allclose(answer["scores"], [0, 0, 1, 0], atol=1e-4)
    np.testing.assert_array_equal(np.load(tmp_path / "image.npy"), np.array(answer["image"], np.float32))
    assert json.loads((tmp_path / "ideal.json").read_text())["target"] == 2
    assert (tmp_path / "picture.png").stat().st_size > 1000
    costs = json.loads(run(*common, "--unit-cost", 1).out)
    assert (costs["outcome"], costs["lead_bound"], costs["saved"]) == ("optimal for costs", None, None)


def test_a_sheet_of_ideal_images(run, brightest, tmp_path: Path) -> None:
    from PIL import Image

    ran = run(
        "ideal", *("--model", brightest) * 2, "--target", "all", "--smooth", 0.1, "--out", tmp_path, "--json"
    )
    answer = json.loads(ran.out)
    assert (ran.code, answer["outcome"], answer["targets"]) == (0, "ideal", [0, 1, 2, 3])
    # One white pixel in a corner of 2 x 2 has a variation of 2, and leads by 1.
    assert [cell["objective"] for cell in answer["images"][1]] == pytest.approx([0.8] * 4, abs=1e-3)
    np.testing.assert_allclose(np.load(tmp_path / "images-2.npy")[3], [[[0, 0], [0, 1]]], atol=1e-3)
    assert json.loads((tmp_path / "ideals.json").read_text())["files"] == ["images-1.npy", "images-2.npy"]
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.width > 1.3 * picture.height
    assert (
        "8 of 8 found, 8 of them proven best"
        in run("ideal", *("--model", brightest) * 2, "--target", "all").out
    )


def test_too_little_time_is_unresolved(run, tmp_path: Path) -> None:
    """No search ends in a millionth of a second; what was proven until then is still printed."""
    from closecall.models import build, save_model

    save_model(build("dnn", {"sizes": [30, 30], "input_shape": (1, 8, 8), "classes": 10}), tmp_path / "model")
    common = (
        "--model",
        tmp_path / "model",
        "--dataset",
        "digits",
        "--index",
        0,
        "--time-limit",
        1e-6,
        "--json",
    )
    label = json.loads(run("nearest", *common[:-3], "--time-limit", 5, "--json").out)["predicted_before"]
    np.save(tmp_path / "image.npy", digit())
    common = (
        "--model",
        tmp_path / "model",
        "--image",
        tmp_path / "image.npy",
        "--label",
        label,
        *common[-3:],
    )
    ran = run("certify", *common, "--radius", 0.3, "--method", "milp-basic")
    assert ran.code == 3, ran
    assert json.loads(ran.out)["outcome"] == "unresolved"


def digit() -> np.ndarray:
    from closecall import data

    return data.load_dataset("digits", "test").image(0)


def test_ctrl_c_before_anything_is_known(brightest, pixels) -> None:
    """A signal while the model is still being read: exit code 130, no traceback."""
    arguments = ["nearest", "--model", str(brightest), "--image", str(pixels(0.9, 0.5, 0.1, 0.0)), "--json"]
    program = (
        "import os, signal, sys, closecall.readers\n"
        "closecall.readers.read = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "from closecall.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 128 + signal.SIGINT
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_json_alone_on_stdout_of_a_real_process(brightest, pixels) -> None:
    command = [sys.executable, "-m", "closecall", "nearest", "--model", str(brightest), "--json"]
    command += ["--image", str(pixels(0.9, 0.5, 0.1, 0.0))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcome"] == "nearest"
    assert done.stdout.count("\n") == 1


def test_open_sizes_are_given_on_the_command_line(run, brightest, pixels, tmp_path: Path) -> None:
    model = onnx.load(brightest)
    for side in model.graph.input[0].type.tensor_type.shape.dim[1:]:
        side.ClearField("dim_value")
        side.dim_param = f"side{side.dim_param}"
    onnx.save(model, tmp_path / "open.onnx")
    image = pixels(0.9, 0.5, 0.1, 0.0)
    given = ("--model", tmp_path / "open.onnx", "--input-shape", "1,2,2")
    assert run("nearest", *given, "--image", image).code == 0
    assert run("certify", *given, "--image", image, "--radius", "0.01").code == 0
    assert run("predict", *given, "--image", image).code == 0
    assert run("ideal", *given, "--target", "1").code == 0
    assert run("export-milp", *given, "--image", image, "--out", tmp_path / "question.mps").code == 0


def test_a_curve_falls_as_far_as_pixels_allow(run, brightest, pixels, tmp_path: Path) -> None:
    """The brightest pixel leads the next by 0.4, less twice the radius."""
    image = pixels(0.9, 0.5, 0.1, 0.0)
    asked = ("curve", "--model", brightest, "--image", image, "--radii", "1/10,0.3", "--out", tmp_path)
    ran = run(*asked, "--json")
    answer = json.loads(ran.out)
    assert (ran.code, ran.err, answer["outcome"]) == (0, "", "closed")
    scale = answer["margin"] / 0.4
    for point, radius in zip(answer["points"], (0, 0.1, 0.3), strict=True):
        assert point["radius"] == pytest.approx(radius)
        truth = scale * (0.4 - 2 * radius)
        assert point["lower"] - 1e-6 <= truth <= point["upper"] + 1e-6
        assert point["changes"] == (radius == 0.3)
    assert answer["lost"] == pytest.approx(0.2, abs=0.002)
    assert {file.name for file in tmp_path.iterdir()} >= {"curve.json", "images.npy", "picture.png"}
    said = run(*asked, "--quiet")
    assert said.out.startswith("Worst margin of 0: ")
    assert f"saved in {tmp_path}" in said.out
