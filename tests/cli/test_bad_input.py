"""Every mistake on the command line: one sentence that says what came and what to do, exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import closecall.solvers


@pytest.fixture
def refuse(run, brightest, pixels) -> Callable[..., str]:
    """Run a command that must be refused; give the sentence. `IMAGE` stands for a good image."""
    good = pixels(0.9, 0.5, 0.1, 0.0)

    def call(*arguments: object) -> str:
        given = [good if argument == "IMAGE" else argument for argument in arguments]
        if "--model" not in given:
            given += ["--model", brightest]
        ran = run(*given)
        assert ran.code == 2, ran
        assert ran.out == ""
        assert ran.err.startswith("closecall: ")
        assert ran.err.count("\n") == 1
        return ran.err

    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nearest", "Give the image by --dataset and --index, or by --image: neither was given."),
        ("nearest --dataset digits --image IMAGE", "both were given"),
        ("nearest --dataset digits", "Which image of digits? Add --index"),
        ("nearest --dataset digits --index 360", "its 360 images are numbered 0 to 359"),
        ("nearest --dataset digits --index 0", "takes images of shape (1, 2, 2), not (1, 8, 8)"),
        ("nearest --dataset digits --index 0 --split valid", "the splits train and test, not 'valid'"),
        ("nearest --dataset digits --index 0 --label 1", "leave --label out beside --dataset"),
        ("nearest --dataset letters --index 0", "'letters' is neither a known data set nor a path"),
        ("nearest --image IMAGE --index 0", "leave it out beside --image"),
        (
            "nearest --image IMAGE --input-shape 1,2,x",
            "--input-shape takes positive whole numbers such as 3,32,32",
        ),
        ("nearest --image IMAGE --label 4", "the label must be from 0 to 3, got 4"),
        ("nearest --image nowhere.png", "There is no image file nowhere.png"),
        ("nearest --image IMAGE --target 0", "the target 0 is the label itself"),
        ("nearest --image IMAGE --target 4", "the target must be from 0 to 3, got 4"),
        ("nearest --image IMAGE --target cat", "--target takes any, paper, the number of a class or several"),
        ("nearest --image IMAGE --target 1,", "the number of a class or several such as 3,8, not '1,'"),
        ("nearest --image IMAGE --target 0,1", "the label 0 is in the group of targets"),
        ("nearest --image IMAGE --out-of-top 4", "one can drop out of the top 1 to 3, got 4"),
        ("nearest --image IMAGE --out-of-top 2 --target 1", "has no target and no confidence"),
        ("nearest --image IMAGE --mask nowhere.png", "there is no image file nowhere.png"),
        ("nearest --image IMAGE --mask nowhere.npy", "the mask cannot be read as an array of numbers"),
        ("nearest --image IMAGE --also l2:1", "a second budget is in l1, linf, l0, got l2"),
        ("nearest --image IMAGE --pixels 4bit", "pixels must be '8bit' or left out, got '4bit'"),
        ("nearest --image IMAGE --pixels 8bit --unit-cost 1", "between the 8-bit ones, too: leave one out"),
        (
            "nearest --image IMAGE --pixels 8bit --proof p.jsonl",
            "no proof can be written with pixels: leave the proof or pixels out",
        ),
        ("nearest --image IMAGE --change contrast --pixels 8bit", "leave out the pixels beside it"),
        ("nearest --image IMAGE --patch 3", "3 x 3 pixels does not fit into the image: it has 2 x 2"),
        ("nearest --image IMAGE --patch 1 --unit-cost 1", "which a patch is compared by: leave one out"),
        ("nearest --image IMAGE --change hue", "unknown change 'hue': choose one of brightness, contrast"),
        ("nearest --image IMAGE --change contrast --cap 0.1", "leave out the cap beside it"),
        ("certify --image IMAGE --change contrast --radius 1 --norm l0", "l1, l2 or linf, not l0"),
        ("nearest --image IMAGE --confidence 1", "larger than 0.5 and smaller than 1, got 1.0"),
        ("nearest --image IMAGE --confidence 0.9 --ratio 2", "--ratio and --confidence all say how clear"),
        ("nearest --image IMAGE --norm l3", "unknown norm 'l3': choose one of l1, l2, linf, l0"),
        ("nearest --image IMAGE --method fast", "unknown method 'fast': choose one of auto, milp"),
        ("nearest --image IMAGE --solver excel", "unknown solver 'excel': choose one of highs, scip"),
        (
            "nearest --image IMAGE --time-limit 0",
            "the time limit must be a positive number of seconds, got 0",
        ),
        ("nearest --image IMAGE --time-limit nan", "must be a positive number of seconds, got nan"),
        ("nearest --image IMAGE --threads 0", "threads must be at least 1, got 0"),
        ("nearest --image IMAGE --gap 1", "the gap must be at least 0 and below 1, got 1"),
        ("nearest --image IMAGE --cap -1", "the cap must be positive, got -1"),
        ("nearest --image IMAGE --margin 0", "the margin must be positive, got 0"),
        ("nearest --image IMAGE --ratio 1", "the ratio must be larger than 1, got 1"),
        ("nearest --image IMAGE --margin 0.1 --ratio 1.2", "give one of them"),
        ("nearest --image IMAGE --outputs softmax", "outputs must be 'logits' or 'relu', got 'softmax'"),
        ("nearest --image IMAGE --preset article", "There is no preset 'article': the only one is paper"),
        ("nearest --image IMAGE --unit-cost nan", "the costs must be finite numbers"),
        ("certify --image IMAGE --radius -0.1", "the radius must be positive, got -0.1"),
        ("certify --image IMAGE --radius nan", "the radius must be positive, got nan"),
        ("certify --image IMAGE --radius 8/0", "'8/0' divides by zero"),
        ("certify --image IMAGE --radius a/255", "'a/255' is neither a number nor a fraction such as 8/255"),
        ("nearest --image IMAGE --radius 0", "the radius must be positive, got 0"),
        ("nearest --image IMAGE --cap nan", "the cap must be positive, got nan"),
        ("nearest --dataset digits --index -1", "its 360 images are numbered 0 to 359"),
        ("nearest --image .", ". is a folder, not an image"),
        ("nearest --image IMAGE --index one", "Invalid value for '--index'"),
        ("certify --image IMAGE", "Missing option '--radius'; see `"),
        ("nearest --image IMAGE --raduis 1", "No such option"),
        ("curve --image IMAGE --radii 0.1,x", "'x' is neither a number nor a fraction such as 8/255"),
        ("curve --image IMAGE --radii 0.1,-1", "the radii must be positive and finite, got -1 to 0.1"),
        ("curve --image IMAGE --radii 0.1 --radius 0.1", "give the largest radius or all radii, not both"),
        ("curve --image IMAGE --radius 0", "the radius must be positive, got 0"),
        ("curve --image IMAGE --points 0", "a curve has 1 to 1,000 points, got 0"),
        ("curve --image IMAGE --gap 2", "the gap must be at least 0 and below 1, got 2"),
        ("curve --image IMAGE --target 0", "the target 0 is the label itself"),
        ("curve --image IMAGE --patch 1", "No such option"),
        ("predict --dataset digits", "Which image of digits? Add --index"),
        ("predict", "Give the image by --dataset and --index, or by --image: neither was given."),
        ("predict --dataset digits --index 0", "takes images of shape (1, 2, 2), got (1, 8, 8)"),
        ("ideal --target 4", "the target must be from 0 to 3, got 4"),
        ("ideal --target x", "--target takes the number of a class, several such as 3,8, or all, not 'x'"),
        ("ideal --target 0,4", "the target must be from 0 to 3, got 4"),
        ("ideal --target 0 --smooth -1", "the weight smooth must be 0 or a positive number, got -1"),
        ("ideal --target 0 --time-limit -1", "must be a positive number of seconds, got -1"),
        (
            "export-milp --image IMAGE --out x.mps --form loose",
            "the form must be tight or paper, got 'loose'",
        ),
        ("export-milp --image IMAGE --out x.mps --unit-cost 1", "they need the form paper"),
        ("export-milp --image IMAGE --out x.txt", "A MILP is written as .mps, .mps.gz, .lp"),
        ("export-milp --image IMAGE --out x.lp.gz", "not as 'x.lp.gz'"),
        ("export-milp --image IMAGE --out /dev/null/x.mps", "Cannot write /dev/null/x.mps: Not a directory"),
        ("nearest --model zoo:lion --dataset digits --index 0", "There is no zoo model 'lion'; the zoo has"),
        ("nearest --model nowhere.onnx --dataset digits --index 0", "Cannot read nowhere.onnx: No such file"),
        ("nearest --model nowhere --dataset digits --index 0", "nowhere is not a model: give an .onnx file"),
        ("nearest --model stranger.pt --dataset digits --index 0", "stranger.pt is a pickle"),
        ("nearest --model zoo:mnist-dnn1 --dataset digits --index 0", "(1, 28, 28), got (1, 8, 8)"),
    ],
)
def test_one_sentence(refuse, arguments: str, words: str) -> None:
    assert words in refuse(*arguments.split())


@pytest.mark.parametrize(
    ("pixels_given", "words"),
    [
        (np.full((1, 2, 2), 1.5, np.float32), "pixels run from 0 to 1.5, floats must be in [0, 1]"),
        (np.full((1, 2, 2), np.nan, np.float32), "a pixel is NaN"),
        (np.zeros((1, 3, 3), np.float32), "has shape (1, 3, 3) but the network takes (1, 2, 2)"),
        (np.zeros((1, 2, 2), np.int64), "pixels must be uint8, or floats in [0, 1], not int64"),
    ],
)
def test_an_image_file_that_cannot_be_used(refuse, tmp_path: Path, pixels_given, words: str) -> None:
    np.save(tmp_path / "image.npy", pixels_given)
    assert words in refuse("nearest", "--image", tmp_path / "image.npy")


def test_a_layer_that_is_not_supported_is_named(refuse, brightest, tmp_path: Path) -> None:
    model = onnx.load(brightest)
    model.graph.node[2].op_type = "Tanh"
    onnx.save(model, tmp_path / "tanh.onnx")
    said = refuse("nearest", "--model", tmp_path / "tanh.onnx", "--image", "IMAGE")
    assert "operator Tanh" in said
    assert "it reads affine layers, ReLU and its relatives, and max pooling" in said


def test_weights_that_are_not_numbers(refuse, brightest, tmp_path: Path) -> None:
    model = onnx.load(brightest)
    for tensor in model.graph.initializer:
        if tensor.name == "half":
            tensor.CopyFrom(numpy_helper.from_array(np.full(4, np.nan, np.float32), "half"))
    onnx.save(model, tmp_path / "nan.onnx")
    said = refuse("nearest", "--model", tmp_path / "nan.onnx", "--image", "IMAGE")
    assert "hold NaN or infinity: train or export the model again" in said


def test_a_solver_that_is_not_installed(refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(closecall.solvers.SOLVERS, "scip", "a_package_that_nobody_has")
    said = refuse("nearest", "--image", "IMAGE", "--solver", "scip")
    assert 'The scip solver needs an optional package: pip install "closecall[scip]".' in said


@pytest.mark.parametrize("command", ["nearest", "certify --radius 0.1"])
def test_a_folder_that_cannot_be_written(refuse, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("in the way")
    said = refuse(*command.split(), "--image", "IMAGE", "--out", tmp_path / "file" / "deeper")
    assert f"Cannot write into the folder {tmp_path / 'file' / 'deeper'}: Not a directory" in said


def test_debug_shows_where_an_error_came_from(brightest, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from closecall.cli import main
    from closecall.errors import InputError

    monkeypatch.setattr(sys, "argv", ["closecall", "--debug", "nearest", "--model", str(brightest)])
    with pytest.raises(InputError, match="neither was given"):
        main()
