"""Every command prints one JSON object and nothing else on stdout, and is quiet when asked to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.main import get_command

from closecall import consoles
from closecall.cli import app
from closecall.cli.progress import showing_interval


@pytest.fixture(autouse=True)
def _shown_again() -> None:
    consoles.ask_for_quiet(False)


def commands() -> dict[str, object]:
    top = get_command(app).commands
    groups = {name: top[name].commands for name in ("batch", "capsules")}
    below = {f"{name} {part}": one for name, parts in groups.items() for part, one in parts.items()}
    return {name: one for name, one in top.items() if name != "capsules"} | below


@pytest.mark.parametrize("name", commands())
def test_every_command_takes_json_and_quiet(name: str) -> None:
    flags = {flag for option in commands()[name].params for flag in option.opts}
    assert {"--json", "--quiet"} <= flags


def only_object(text: str) -> dict[str, object]:
    assert text.count("\n") == 1
    answer = json.loads(text)
    assert isinstance(answer, dict)
    return answer


def test_zoo(run) -> None:
    from closecall.models import describe

    listed = only_object(run("zoo", "--json").out)["models"]
    names = [entry["name"] for entry in listed]
    assert "zoo:mnist-dnn1" in names
    assert all(entry["accuracy"] == describe(entry["name"])["accuracy"] for entry in listed)


def test_train_and_what_it_says_of_a_folder_of_pictures(run: Callable, tmp_path: Path) -> None:
    """Class folders give their names to the model, to its answers and to the data set's answers."""
    random = np.random.default_rng(0)
    for name, low in (("frog", 0), ("ship", 128)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(20):
            pixels = random.integers(low, low + 128, (4, 4), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{number}.png")
    model, data = tmp_path / "model", tmp_path / "pictures"
    given = ("--sizes", 6, "--dataset", data, "--epochs", 30, "--learning-rate", 0.02, "--threads", 1)
    trained = run("train", *given, "--out", model, "--json", "--quiet")
    assert (trained.code, trained.err) == (0, "")
    assert only_object(trained.out)["class_names"] == ["frog", "ship"]

    question = ("--model", model, "--dataset", data, "--index", 0)
    said = run("predict", *question).out
    assert said.startswith(f"Image 0 of {data} is a 0 (frog), says {model}; its label is 0 (frog).\n")
    assert "  class 1 (ship): probability 0." in said
    answer = only_object(run("predict", *question, "--json").out)
    assert (answer["label"], answer["true_label"], answer["class_names"]) == (0, 0, ["frog", "ship"])
    assert answer["origin"] == {"dataset": str(data), "split": "test", "index": 0}

    assert " turns 0 (frog) into 1 (ship); " in run("nearest", *question).out
    assert run("ideal", "--model", model, "--target", 1).out.startswith(
        "Ideal image of class 1 (ship): lead "
    )
    picture = data / "ship" / "3.png"
    assert " turns 1 (ship) into 0 (frog); " in run("nearest", "--model", model, "--image", picture).out


def test_quiet_trains_without_a_line_but_the_last(run: Callable, tmp_path: Path) -> None:
    ran = run("train", "--sizes", 4, "--epochs", 2, "--threads", 1, "--quiet", "--out", tmp_path / "model")
    assert ran.code == 0, ran.err
    assert ran.out.count("\n") == 1
    assert "of the test images are classified correctly" in ran.out


def test_quiet_holds_for_one_command(run: Callable, brightest, pixels) -> None:
    question = ("--model", brightest, "--image", pixels(0.9, 0.5, 0.1, 0.0))
    ran = run("nearest", *question, "--quiet")
    assert consoles.stderr_console().quiet
    assert ran.out.startswith("Nearest: ")
    assert run("nearest", *question).code == 0
    assert not consoles.stderr_console().quiet


def test_vnncomp(run: Callable, brightest, tmp_path: Path) -> None:
    declared = [f"(declare-const {kind}_{i} Real)" for kind in "XY" for i in range(4)]
    box = [f"(assert (>= X_{i} 0)) (assert (<= X_{i} 1))" for i in range(4)]
    (tmp_path / "p.vnnlib").write_text("\n".join([*declared, *box, "(assert (<= Y_0 Y_1))"]))
    given = ("vnncomp", brightest, tmp_path / "p.vnnlib", "--result", tmp_path / "deep" / "result.txt")
    ran = run(*given, "--json")
    answer = only_object(ran.out)
    assert answer["answer"] == "sat"
    pixels = np.array(answer["inputs"]).ravel()
    assert pixels[0] <= pixels[1]
    np.testing.assert_allclose(answer["outputs"], pixels, atol=1e-6)
    assert (tmp_path / "deep" / "result.txt").read_text() == run(*given).out


@pytest.mark.parametrize("drawn", ["perturb", "reconstruct", "routing"])
def test_capsules(run: Callable, tmp_path: Path, drawn: str) -> None:
    from closecall.models import CapsNet, save_model

    save_model(CapsNet((1, 8, 8), 10, preset="small"), tmp_path / "model", dataset="digits")
    file = tmp_path / "deep" / "drawn.png"
    ran = run("capsules", drawn, "--model", tmp_path / "model", "--out", file, "--json")
    assert ran.code == 0, ran.err
    answer = only_object(ran.out)
    assert (answer["file"], answer["dataset"]) == (str(file), "digits")
    assert file.stat().st_size > 1000


def test_demo(run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    import closecall.demo.run

    short = replace(closecall.demo.run.PLAN, epochs=4, batch=128, threads=1)
    monkeypatch.setitem(closecall.demo.run.run_demo.__kwdefaults__, "plan", short)
    monkeypatch.setitem(closecall.demo.run.run_demo.__kwdefaults__, "images", 1)
    ran = run("demo", "--out", tmp_path, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert only_object(ran.out) == {"page": str(tmp_path / "report.html"), "folder": str(tmp_path)}
    assert (tmp_path / "report.html").is_file()


def test_progress_of_a_quiet_command_is_not_even_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    consoles.ask_for_quiet(True)
    with showing_interval() as report:
        report(1.0, 2.0, 3, 4.0)
