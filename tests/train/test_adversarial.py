"""Training on images that were moved against the model: where they go, and what it brings on the digits."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from closecall import attack, data
from closecall.cli import app
from closecall.data import Dataset
from closecall.errors import InputError
from closecall.models import DNN, build, load_model
from closecall.train import EpochRecord, TrainingPlan, evaluate_proven, train
from closecall.train.adversarial import moved_against
from closecall.train.certified import grown

from .conftest import pixels_for, with_biases

MOVED = TrainingPlan(epochs=12, learning_rate=4e-3, schedule="cosine", threads=1, adversarial=0.1)


def test_images_move_uphill_within_the_radius() -> None:
    model = with_biases(lambda: DNN([12, 8], (1, 6, 6), 3))
    images, labels = pixels_for(model, 40), torch.arange(40) % 3

    def loss(near: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(near), labels)

    moved = moved_against(images, 0.1, loss, seed=3)
    assert (moved - images).abs().max() <= 0.1 + 1e-6
    assert moved.min() >= 0
    assert moved.max() <= 1
    random = (images + 0.2 * torch.rand_like(images) - 0.1).clamp(0, 1)
    with torch.no_grad():
        assert loss(moved) > max(loss(random), loss(images))
    assert torch.equal(moved, moved_against(images, 0.1, loss, seed=3))
    assert not torch.equal(moved, moved_against(images, 0.1, loss, seed=4))


def test_the_scores_are_those_of_the_images_as_they_are() -> None:
    model = with_biases(lambda: DNN([12], (1, 6, 6), 3))
    images, labels = pixels_for(model, 10), torch.arange(10) % 3
    with torch.no_grad():
        value, scores = MOVED.loss_function(model)(model, images, labels)
        assert torch.equal(scores, model(images))
        assert value > TrainingPlan().loss_function(model)(model, images, labels)[0]


def test_stability_grows_with_the_radius() -> None:
    """Ramps that end at different times: the penalty is complete with the last of them."""
    plan = TrainingPlan(adversarial=0.1, adversarial_ramp=0.2, certified=0.1, certified_ramp=0.8)
    assert plan.ramp == 0.8
    assert TrainingPlan(stable=0.5).ramp == 0
    model = with_biases(lambda: DNN([12], (1, 6, 6), 3))
    images, labels = pixels_for(model, 10), torch.arange(10) % 3
    moving = TrainingPlan(adversarial=0.1, adversarial_ramp=0.5)
    both = replace(moving, stable=2.0, stable_radius=0.2, l1=0.0)
    with torch.no_grad():
        extra = {
            done: float(both.loss_function(model, done)(model, images, labels)[0])
            - float(moving.loss_function(model, done)(model, images, labels)[0])
            for done in (0.0, 0.25, 1.0)
        }
    assert extra[0.0] == 0
    assert abs(extra[0.25]) > 0
    assert extra[0.25] != pytest.approx(grown(0.25, 0.5) * extra[1.0])  # the radius grows as well


def test_images_of_digits_get_further_from_others(digits: Dataset) -> None:
    test = data.load_dataset("digits", "test")
    images = np.stack([test.image(index) for index in range(60)])
    medians = []
    for plan in (replace(MOVED, adversarial=None, adversarial_ramp=None), MOVED):
        model = build("dnn", {"sizes": [32], "input_shape": [1, 8, 8], "classes": 10})
        train(model, digits, plan)
        distances = attack(model, images, test.labels[:60].tolist(), norm="linf").distances
        medians.append(float(np.median(distances)))
    assert medians[1] > 1.3 * medians[0]


def test_resumed_ends_as_if_never_interrupted(stripes: Dataset, tmp_path: Path) -> None:
    class StopAfterTwo:
        def during_epoch(self, *_: object) -> None:
            pass

        def after_epoch(self, record: EpochRecord) -> None:
            if record.epoch == 2:
                raise KeyboardInterrupt

    plan = replace(MOVED, epochs=4, schedule="constant")
    config = {"sizes": [6], "input_shape": [1, 6, 6], "classes": 3}
    straight, resumed = build("dnn", config), build("dnn", config, seed=9)
    train(straight, stripes, plan)
    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(build("dnn", config), stripes, plan, checkpoint=checkpoint, listener=StopAfterTwo())
    train(resumed, stripes, plan, checkpoint=checkpoint, resume=True)
    for got, want in zip(resumed.state_dict().values(), straight.state_dict().values(), strict=True):
        assert torch.equal(got, want)
    with pytest.raises(InputError, match=r"another epochs \(4, now 6\)"):
        train(resumed, stripes, replace(plan, epochs=6), checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize("model", ["dnn", "caps"])
def test_from_the_command_line_into_the_recipe(model: str, tmp_path: Path) -> None:
    arguments = f"--model {model} --epochs 1 --threads 1 --adversarial 8/255 --adversarial-ramp 0.25"
    done = CliRunner().invoke(app, ["train", *arguments.split(), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    recipe = json.loads((tmp_path / "model.json").read_text())["recipe"]
    assert [recipe["adversarial"], recipe["adversarial_ramp"]] == [8 / 255, 0.25]
    assert not {"stable", "l1", "certified", "certified_ramp"} & recipe.keys()


def test_made_to_be_proven_says_how_much_is(tmp_path: Path) -> None:
    arguments = "--sizes 16 --epochs 2 --threads 1 --adversarial 0.02 --stable 1"
    done = CliRunner().invoke(app, ["train", *arguments.split(), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    described = json.loads((tmp_path / "model.json").read_text())
    assert f"{described['proven']:.2%} of the test images are proven within 0.02" in done.output
    model = load_model(tmp_path)
    assert described["proven"] == evaluate_proven(model, data.load_dataset("digits", "test"), 0.02)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"adversarial": 0.0}, "--adversarial takes a radius above 0 and up to 1"),
        ({"adversarial": math.nan}, "not nan"),
        ({"adversarial": 0.1, "adversarial_ramp": 1.5}, "--adversarial-ramp must be from 0 to 1, not 1.5"),
        ({"adversarial_ramp": 0.5}, "--adversarial-ramp needs a radius to move images in: add --adversarial"),
    ],
)
def test_bad_options(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TrainingPlan(**arguments)  # type: ignore[arg-type]
