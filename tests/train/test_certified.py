"""Training for proofs: its bounds against samples and the package's own, and what it brings on the digits."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typer.testing import CliRunner

from closecall import data
from closecall.bounds import all_excluded, interval_bounds, linear_bounds
from closecall.cli import app
from closecall.data import Dataset
from closecall.errors import InputError, ModelError
from closecall.models import CNN, DNN, build
from closecall.question.domain import Domain
from closecall.question.norms import NORMS
from closecall.question.question import Question
from closecall.readers import read
from closecall.train import EpochRecord, TrainingPlan, evaluate_proven, train
from closecall.train.certified import count_proven, grown, worst_leads, worst_loss
from closecall.train.evaluation import check_plan

from .conftest import pixels_for, with_biases

RADIUS = 0.1
MODELS = {
    "dnn": lambda: DNN([7, 5], (1, 6, 6), 3),
    "dnn with relu outputs": lambda: DNN([7], (1, 6, 6), 3, outputs="relu", bias=False),
    "cnn with padding": lambda: CNN(["3x4s2p1/0", "4x2p1/0"], [5], (1, 6, 6), 3, strict=False),
    "cnn with pooling": lambda: CNN(["3x3p1/2", "4x2/2s1"], [5], (2, 6, 6), 3, strict=False),
    "paper cnn": lambda: CNN(["2x3/2", "2x2/0"], [4], (1, 6, 6), 3, convolution="paper", strict=False),
}


def model_of(name: str) -> nn.Module:
    return with_biases(MODELS[name])


def some_images(model: nn.Module, count: int) -> tuple[Tensor, Tensor]:
    return pixels_for(model, count), torch.arange(count) % 3


def ball(image: Tensor, radius: float) -> Domain:
    pixels = image.double().numpy().ravel()
    return Domain(pixels, np.zeros_like(pixels), np.ones_like(pixels), NORMS["linf"], radius)


def leads_of(scores: Tensor, label: int) -> Tensor:
    return scores[:, label : label + 1] - scores


@pytest.mark.parametrize("name", sorted(MODELS))
def test_no_sample_leads_by_less(name: str) -> None:
    model = model_of(name)
    images, labels = some_images(model, 3)
    with torch.no_grad():
        least = worst_leads(model, images, labels, RADIUS)
        for image, label, bound in zip(images, labels.tolist(), least, strict=True):
            noise = (torch.rand(2000, *image.shape) * 2 - 1) * RADIUS
            noise[:1000] = noise[:1000].sign() * RADIUS
            seen = leads_of(model((image + noise).clamp(0, 1)), label)
            assert (seen >= bound - 1e-5).all()
            assert bound[label] == 0
        exact = worst_leads(model, images, labels, 0.0)
        scores = model(images)
        wanted = scores.gather(1, labels[:, None]) - scores
    torch.testing.assert_close(exact, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_bounds_agree_with_the_package(name: str) -> None:
    """The last layer is a linear map of units with known bounds: the lead's least value has a closed form."""
    model = model_of(name)
    images, labels = some_images(model, 3)
    network = read(model).network
    *_, last = model.layers
    least = worst_leads(model, images, labels, RADIUS).detach().double().numpy()
    for image, label, bound in zip(images, labels.tolist(), least, strict=True):
        known = interval_bounds(network, ball(image, RADIUS))
        if isinstance(last, nn.Linear):
            low, high = known.lower[network.nodes[-1].inputs[0]], known.upper[network.nodes[-1].inputs[0]]
            weight, bias = (p.detach().double().numpy() for p in (last.weight, last.bias))
            rows, offsets = weight[label] - weight, bias[label] - bias
            wanted = offsets + np.where(rows > 0, rows * low, rows * high).sum(1)
        else:
            wanted = known.lower[-1][label] - known.upper[-1]
            wanted[label] = 0
        np.testing.assert_allclose(bound, wanted, atol=1e-5)


def test_the_loss_grows_from_that_of_the_images_to_that_of_the_ball() -> None:
    model = model_of("cnn with padding")
    images, labels = some_images(model, 6)
    plan = TrainingPlan(certified=0.1, certified_reach=1.2, certified_weight=0.6, certified_ramp=0.5)
    plain = F.cross_entropy(model(images), labels)
    for done, radius, share in [(0.0, 0.0, 0.0), (0.25, 0.06, 0.3), (0.5, 0.12, 0.6), (1.0, 0.12, 0.6)]:
        loss, scores = plan.loss_function(model, done)(model, images, labels)
        wanted = (1 - share) * plain + share * worst_loss(model, images, labels, radius)
        assert loss.item() == pytest.approx(wanted.item(), rel=1e-5)
        assert torch.equal(scores, model(images))
    assert plan.loss_function(model)(model, images, labels)[0].item() == loss.item()
    assert worst_loss(model, images, labels, 0.12) > plain
    assert [grown(done, 0.0) for done in (0.0, 1.0)] == [1.0, 1.0]


def test_counted_as_proven_is_what_the_package_proves(digits: Dataset) -> None:
    model = build("dnn", {"sizes": [12], "input_shape": [1, 8, 8]}, seed=1)
    train(model, digits, replace(PLAN, epochs=10))
    images, labels = torch.from_numpy(digits.images[:60]).float() / 255, torch.from_numpy(digits.labels[:60])
    network = read(model).network
    proven = 0
    for image, label in zip(images, labels.tolist(), strict=True):
        counted = count_proven(model, image[None], torch.tensor([label]), 0.03)
        proven += counted
        question = Question(image.numpy(), label, 10, norm="linf", radius=0.03)
        domain, goal = question.domain(), question.goal()
        if counted:
            assert all_excluded(network, domain, goal, linear_bounds(network, domain))
    assert 5 < proven < 55
    assert count_proven(model, images, labels, 0.03) == proven


PLAN = TrainingPlan(epochs=20, batch=32, learning_rate=4e-3, schedule="cosine", seed=1, threads=1)
CERTIFIED = replace(PLAN, certified=0.05)


def test_more_is_proven_on_the_digits(digits: Dataset) -> None:
    config = {"sizes": [24], "input_shape": [1, 8, 8]}
    plain, certified = build("dnn", config, seed=1), build("dnn", config, seed=1)
    train(plain, digits, PLAN)
    run = train(certified, digits, CERTIFIED)
    test = data.load_dataset("digits", "test")
    shares = {model: evaluate_proven(model, test, 0.05) for model in (plain, certified)}
    assert shares[certified] > max(0.6, 2 * shares[plain])
    assert run.validation_accuracy > 0.85
    assert run.best_epoch > 10, "the full radius is reached after half of the epochs"
    assert run.validation_proven == run.history[run.best_epoch - 1].validation_proven
    assert run.history[0].validation_proven < 0.5 * run.validation_proven


def test_resumed_ends_as_if_never_interrupted(stripes: Dataset, tmp_path: Path) -> None:
    class StopAfterTwo:
        def during_epoch(self, *_: object) -> None:
            pass

        def after_epoch(self, record: EpochRecord) -> None:
            if record.epoch == 2:
                raise KeyboardInterrupt

    plan = replace(CERTIFIED, epochs=5, schedule="constant")
    config = {"blocks": ["3x3/2"], "hidden": [6], "input_shape": [1, 6, 6], "classes": 3}
    straight, resumed = build("cnn", config), build("cnn", config, seed=9)
    wanted = train(straight, stripes, plan)
    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(build("cnn", config), stripes, plan, checkpoint=checkpoint, listener=StopAfterTwo())
    run = train(resumed, stripes, plan, checkpoint=checkpoint, resume=True)
    assert [r.validation_proven for r in run.history] == [r.validation_proven for r in wanted.history]
    for got, want in zip(resumed.state_dict().values(), straight.state_dict().values(), strict=True):
        assert torch.equal(got, want)
    with pytest.raises(InputError, match=r"another epochs \(5, now 6\)"):
        train(resumed, stripes, replace(plan, epochs=6), checkpoint=checkpoint, resume=True)
    with pytest.raises(InputError, match=r"another certified \(0.05, now 0.2\)"):
        train(resumed, stripes, replace(plan, certified=0.2), checkpoint=checkpoint, resume=True)


def test_from_the_command_line_into_the_recipe(tmp_path: Path) -> None:
    arguments = "--sizes 16 --epochs 4 --threads 1 --certified 2/255 --certified-reach 1.2"
    done = CliRunner().invoke(app, ["train", *arguments.split(), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    described = json.loads((tmp_path / "model.json").read_text())
    recipe = [described["recipe"][f"certified{name}"] for name in ("", "_reach", "_weight", "_ramp")]
    assert recipe == [2 / 255, 1.2, 0.5, 0.5]
    assert "stable" not in described["recipe"]
    lines = done.output.splitlines()
    assert sum(f"proven {described['validation_proven']:.2%}" in line for line in lines[:4]) >= 1
    assert f"{described['proven']:.2%} of the test images are proven within 0.00784314" in done.output
    assert 0 < described["proven"] <= described["accuracy"]
    assert "validation_proven" in (tmp_path / "curves.csv").read_text().splitlines()[0]


def test_the_stability_penalty_comes_on_top() -> None:
    model = model_of("cnn with padding")
    images, labels = some_images(model, 6)
    both = {"stable": 0.3, "stable_radius": 0.2, "l1": 1e-3}
    certified, _ = TrainingPlan(certified=RADIUS).loss_function(model)(model, images, labels)
    plain, _ = TrainingPlan().loss_function(model)(model, images, labels)
    stable, _ = TrainingPlan(**both).loss_function(model)(model, images, labels)  # type: ignore[arg-type]
    together, _ = TrainingPlan(certified=RADIUS, **both).loss_function(model)(model, images, labels)  # type: ignore[arg-type]
    torch.testing.assert_close(together - certified, stable - plain)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"certified": 0.0}, "--certified takes a radius above 0 and up to 1, such as 0.1 or 2/255, not 0.0"),
        ({"certified": -0.1}, "above 0 and up to 1"),
        ({"certified": 1.5}, "not 1.5"),
        ({"certified": math.nan}, "not nan"),
        ({"certified": 0.1, "loss": "mse"}, "leave --loss mse out"),
        ({"certified": 0.1, "certified_reach": math.inf}, "--certified-reach must be finite"),
        ({"certified": 0.1, "certified_weight": 1.1}, "--certified-weight must be from 0 to 1, not 1.1"),
        ({"certified": 0.1, "certified_ramp": -0.5}, "--certified-ramp must be from 0 to 1, not -0.5"),
        ({"certified_ramp": 0.5}, "--certified-ramp needs a radius to prove: add --certified"),
    ],
)
def test_bad_options(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TrainingPlan(**arguments)  # type: ignore[arg-type]


def test_refused_before_anything_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("kept")
    for model in ("caps", "cnn-baseline"):
        arguments = ["--model", model, "--certified", "0.1", "--overwrite", "--out", str(tmp_path)]
        done = CliRunner().invoke(app, ["train", *arguments])
        assert isinstance(done.exception, ModelError)
        assert "Training for proofs (--certified) needs a dnn or a cnn" in str(done.exception)
    assert (tmp_path / "model.json").read_text() == "kept"


def test_images_of_two_classes_are_refused() -> None:
    pairs = data.PairDataset(
        "pairs", np.zeros((4, 1, 6, 6), np.uint8), np.arange(4), tuple("abcd"), np.arange(4)[::-1].copy(),
        np.zeros((4, 2, 6, 6), np.uint8),
    )  # fmt: skip
    with pytest.raises(InputError, match="--certified needs images of one class each, and those of pairs"):
        check_plan(DNN([4], (1, 6, 6), 4), pairs, CERTIFIED)
