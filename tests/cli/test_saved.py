"""`closecall replay` believes nothing, and `closecall export-milp` writes what the solvers are given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import highspy
import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def saved(run, brightest, pixels, tmp_path: Path) -> Path:
    folder = tmp_path / "verdict"
    ran = run(
        "nearest", "--model", brightest, "--image", pixels(0.9, 0.5, 0.1, 0.0), "--norm", "linf",
        "--cap", 0.25, "--out", folder,
    )  # fmt: skip
    assert ran.code == 0
    assert "Its PNG (8 bit) still fools the model: it is seen as 1." in ran.out.splitlines()
    return folder


def test_an_honest_verdict_holds(run, saved: Path) -> None:
    ran = run("replay", saved)
    assert ran.code == 0
    assert "FAILS" not in ran.out
    assert "onnxruntime sees class 0 in the original, as claimed" in ran.out
    assert "onnxruntime sees class 1 in the witness, as claimed" in ran.out
    assert "the linf distance is 0.2005, 0.2005 was claimed" in ran.out
    assert "no pixel changes by more than 0.2005, the cap is 0.25" in ran.out
    answer = json.loads(run("replay", saved, "--json").out)
    assert answer["holds"] is True
    assert all(check["holds"] for check in answer["checks"])


def test_the_png_is_checked_too(run, saved: Path) -> None:
    """The brightest pixel is 0.7005 and the second 0.6995: 178.6 and 178.4 of 255 steps."""
    assert np.asarray(Image.open(saved / "witness.png"))[0].tolist() == [178, 179]
    with Image.open(saved / "witness-enlarged.png") as enlarged:
        assert enlarged.size == (280, 280)
    assert "witness.png still fools the model: class 1 is seen in it, as claimed" in run("replay", saved).out
    content = (saved / "witness.png").read_bytes()
    (saved / "witness.png").write_bytes((saved / "witness-enlarged.png").read_bytes())
    ran = run("replay", saved)
    assert ran.code == 1
    assert "FAILS  witness.png is not the file that was saved." in ran.out
    assert "FAILS  witness.png does not hold the witness rounded to 8 bits." in ran.out
    (saved / "witness.png").write_bytes(content)
    (saved / "witness-enlarged.png").unlink()
    assert "FAILS  witness-enlarged.png is not the file that was saved." in run("replay", saved).out


def test_a_tampered_witness_fails(run, saved: Path) -> None:
    witness = np.load(saved / "witness.npy")
    witness.ravel()[3] += (
        1e-3  # still an adversarial, at the same distance, in the box: but not the one saved
    )
    np.save(saved / "witness.npy", witness)
    ran = run("replay", saved)
    assert ran.code == 1
    assert "FAILS  witness.npy is not the file that was saved." in ran.out
    assert "The verdict does not hold" in ran.out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"distance": 0.19, "lower_bound": 0.19}, "the linf distance is 0.2005, 0.19 was claimed"),
        ({"predicted_after": 2}, "onnxruntime sees class 1 in the witness, but class 2 was claimed"),
        ({"predicted_before": 3}, "onnxruntime sees class 0 in the original, but class 3 was claimed"),
        ({"target": 2}, "class 1 was claimed, the target class 2 was asked for"),
        ({"label": 1}, "class 1 was claimed, anything but class 1 was asked for"),
        ({"lower_bound": 0.1}, "the outcome 'nearest' does not agree with its numbers (lower bound 0.1)"),
        ({"outcome": "robust"}, "the outcome 'robust' does not agree with its numbers"),
        ({"radius": 0.1}, "the outcome 'nearest' does not agree with its numbers"),
        ({"cap": 0.1}, "no pixel changes by more than 0.2005, the cap is 0.1"),
        ({"pixel_range": [0.0, 0.5]}, "the witness's pixels run from 0 to 0.7"),
        ({"network_sha256": "0" * 64}, "the network is another one"),
        ({"png": {"fools": False, "predicted": 0}}, "class 1 is seen in it, but something else was claimed"),
        ({"png": {}}, "class 1 is seen in it, but something else was claimed"),
        ({"pixel_range": [1.0, 1.0]}, "the pixel range from 1 to 1 cannot be cut into 255 steps"),
    ],
)
def test_a_tampered_claim_fails(run, saved: Path, changes: dict[str, object], words: str) -> None:
    record = json.loads((saved / "verdict.json").read_text())
    (saved / "verdict.json").write_text(json.dumps({**record, **changes}))
    ran = run("replay", saved, "--json")
    assert ran.code == 1
    answer = json.loads(ran.out)
    assert answer["holds"] is False
    assert any(words in check["sentence"] for check in answer["checks"] if not check["holds"]), answer


def test_another_model_fails(run, saved: Path, tmp_path: Path) -> None:
    from closecall.models import build, save_model

    save_model(build("dnn", {"sizes": [4], "input_shape": (1, 2, 2), "classes": 4}), tmp_path / "other")
    ran = run("replay", saved, "--model", tmp_path / "other")
    assert ran.code == 1
    assert "FAILS  the network is another one" in ran.out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("verdict.json", "{", "cannot be read as JSON"),
        ("verdict.json", "{}", "has no usable 'outcome': it is not a whole verdict"),
        ("verdict.json", "[1]", "has no usable 'outcome'"),
        ("witness.npy", "nonsense", "cannot be read as an array of numbers"),
    ],
)
def test_a_broken_folder_is_bad_input(run, saved: Path, name: str, content: str, words: str) -> None:
    (saved / name).write_text(content)
    ran = run("replay", saved)
    assert ran.code == 2
    assert words in ran.err


def test_no_verdict_at_all(run, tmp_path: Path) -> None:
    ran = run("replay", tmp_path)
    assert ran.code == 2
    assert "has no verdict.json: give a folder that was written with --out" in ran.err


def test_replay_loads_no_solver(saved: Path) -> None:
    program = (
        "import sys\nfrom closecall.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    loaded = [m for m in sys.modules if m.startswith(('closecall.solvers', 'highspy'))]\n"
        "    print('solvers:', loaded)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "replay", str(saved)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("solvers: []")


@pytest.mark.parametrize("form", ["tight", "paper"])
@pytest.mark.parametrize("name", ["model.mps", "model.lp", "new/modèle.mps.gz"])
def test_the_exported_milp_has_the_known_optimum(
    run, brightest, pixels, tmp_path: Path, form: str, name: str
) -> None:
    """Read back by HiGHS itself: the L1 distance of the nearest image of any other class is 0.401."""
    file = tmp_path / name
    image = pixels(0.9, 0.5, 0.1, 0.0)
    ran = run("export-milp", "--model", brightest, "--image", image, "--form", form, "--out", file, "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(file))
    assert (solver.getNumCol(), solver.getNumRow()) == (said["columns"], said["rows"])
    solver.run()
    assert solver.getObjectiveValue() == pytest.approx(0.401, abs=1e-5)
