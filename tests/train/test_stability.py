"""The stability penalty: its intervals against samples and the package's own, its value against a hand's."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from closecall import data, models
from closecall.bounds import interval_bounds, linear_bounds
from closecall.cli import app
from closecall.data import Dataset
from closecall.errors import InputError, ModelError
from closecall.models import CNN, DNN, build
from closecall.network.layers import Relu
from closecall.question.domain import Domain
from closecall.question.norms import NORMS
from closecall.readers import read
from closecall.train import TrainingPlan, train
from closecall.train.batches import split
from closecall.train.stability import (
    drop_tiny_weights,
    l1_size,
    relu_intervals,
    stability_penalty,
)

from .conftest import pixels_for, with_biases

RADIUS = 0.1
MODELS = {
    "dnn": lambda: DNN([7, 5], (1, 6, 6), 3),
    "dnn with relu outputs": lambda: DNN([7], (1, 6, 6), 3, outputs="relu", bias=False),
    "cnn": lambda: CNN(["3x3p1/2", "4x2/2s1"], [5], (1, 6, 6), 3, strict=False),
    "cnn without pooling": lambda: CNN(["3x3s2/0", "4x2/0"], [], (2, 7, 7), 3),
    "paper cnn": lambda: CNN(["2x3/2", "2x2/0"], [4], (1, 6, 6), 3, convolution="paper", strict=False),
}


def model_of(name: str) -> nn.Module:
    return with_biases(MODELS[name])


def read_by_relus(model: nn.Module, images: Tensor) -> list[Tensor]:
    seen: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _layer, inputs: seen.append(inputs[0]))
        for layer in model.modules()
        if isinstance(layer, nn.ReLU)
    ]
    with torch.no_grad():
        model(images)
    for hook in hooks:
        hook.remove()
    return seen


def ball(image: Tensor, radius: float) -> Domain:
    pixels = image.double().numpy().ravel()
    return Domain(pixels, np.zeros_like(pixels), np.ones_like(pixels), NORMS["linf"], radius)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_intervals_contain_what_samples_do(name: str) -> None:
    model = model_of(name)
    image = pixels_for(model, 1)
    intervals = relu_intervals(model, image, RADIUS)
    noise = (torch.rand(2000, *image.shape[1:]) * 2 - 1) * RADIUS
    noise[:1000] = noise[:1000].sign() * RADIUS
    seen = read_by_relus(model, (image + noise).clamp(0, 1))
    assert len(seen) == len(intervals) > 0
    for values, (lower, upper) in zip(seen, intervals, strict=True):
        assert (values >= lower - 1e-5).all()
        assert (values <= upper + 1e-5).all()
    first, (lower, upper) = seen[0], intervals[0]
    assert (first.amax(0) - first.amin(0)).mean() > 0.5 * (upper - lower).mean()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_intervals_agree_with_the_package(name: str) -> None:
    model = model_of(name)
    images = pixels_for(model, 3)
    network = read(model).network
    sources = [node.inputs[0] for node in network.nodes if isinstance(node.layer, Relu)]
    intervals = relu_intervals(model, images, RADIUS)
    assert len(sources) == len(intervals)
    for index, image in enumerate(images):
        known = interval_bounds(network, ball(image, RADIUS))
        for source, (lower, upper) in zip(sources, intervals, strict=True):
            np.testing.assert_allclose(lower[index].detach().ravel(), known.lower[source], atol=1e-5)
            np.testing.assert_allclose(upper[index].detach().ravel(), known.upper[source], atol=1e-5)


def hand_made() -> DNN:
    """Two units reading two pixels, one unit reading both, one score per class."""
    model = DNN([2, 1], (1, 1, 2), 2)
    with torch.no_grad():
        for parameter, values in zip(
            model.parameters(),
            ([[1.0, -2.0], [0.5, 0.5]], [0.5, -2.0], [[1.0, 3.0]], [-1.0], [[1.0], [-1.0]], [0.0, 0.0]),
            strict=True,
        ):
            parameter.copy_(torch.tensor(values))
    return model


def test_penalty_by_hand() -> None:
    model = hand_made()
    # Pixels in [0.4, 0.6] and, cut at 1, [0.85, 1]:
    # first unit x − 2y + 0.5 in [−1.1, −0.6], second (x + y)/2 − 2 in [−1.375, −1.2], third −1 exactly.
    decided = [(-1.1, -0.6), (-1.375, -1.2), (-1.0, -1.0)]
    # Pixels in [0.4, 0.6] and, cut at 0, [0, 0.15]: first unit in [0.6, 1.1], second negative,
    # third a − 1 in [−0.4, 0.1].
    undecided = [(0.6, 1.1), (-1.8, -1.625), (-0.4, 0.1)]
    images = torch.tensor([[[[0.5, 0.95]]], [[[0.5, 0.05]]]])
    wanted = sum(-math.tanh(1 + low * high) for low, high in decided + undecided) / 6
    assert stability_penalty(model, images, 0.1).item() == pytest.approx(wanted, rel=1e-5)
    assert l1_size(model).item() == pytest.approx(1 + 2 + 0.5 + 0.5 + 1 + 3 + 1 + 1)


def test_the_loss_is_the_sum_of_its_parts() -> None:
    model = model_of("cnn")
    images, labels = pixels_for(model, 4), torch.tensor([0, 1, 2, 1])
    plan = TrainingPlan(stable=0.7, stable_radius=RADIUS, l1=0.01)
    loss, scores = plan.loss_function(model)(model, images, labels)
    plain, plain_scores = TrainingPlan().loss_function(model)(model, images, labels)
    wanted = plain + 0.7 * stability_penalty(model, images, RADIUS) + 0.01 * l1_size(model)
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-6)
    assert torch.equal(scores, plain_scores)


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_gradients_are_finite_and_reach_all_layers(name: str, size: float) -> None:
    model = model_of(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(size)
    stability_penalty(model, pixels_for(model, 8), RADIUS).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    if size == 1:
        assert all(gradient.abs().sum() > 0 for gradient in gradients if gradient.ndim > 1)


@pytest.mark.parametrize("which", ["accuracy", "proven"])
def test_tiny_weights_are_dropped_until_it_shows(which: str) -> None:
    """That more is proven does not make up for less that is right."""
    model = hand_made()
    with torch.no_grad():
        model.layers[1].weight[0] = torch.tensor([1e-4, 0.02])

    def shares() -> list[float]:
        fallen = model.layers[1].weight[0, 1] == 0
        return [0.998, 0.9] if which == "accuracy" and fallen else [1.0, 0.4 if fallen else 0.5]

    pruning = drop_tiny_weights(model, shares)
    assert model.layers[1].weight[0].tolist() == [0, pytest.approx(0.02)]
    assert 1e-4 < pruning.threshold <= 0.02
    assert (pruning.zeros, pruning.weights, pruning.validation_accuracy) == (1, 8, 1.0)
    assert model.layers[1].bias.tolist() == [0.5, -2.0]


PLAN = TrainingPlan(epochs=20, batch=32, learning_rate=4e-3, schedule="cosine", seed=1, threads=1)
STABLE = replace(PLAN, stable=0.5, stable_radius=0.05)


def mean_undecided(model: nn.Module, dataset: Dataset, radius: float) -> float:
    network = read(model).network.simplified()
    images = torch.from_numpy(dataset.images[:20]).float() / 255
    return float(np.mean([linear_bounds(network, ball(x, radius)).undecided(network) for x in images]))


def test_fewer_undecided_units_on_the_digits(digits: Dataset) -> None:
    config = {"sizes": [24, 24], "input_shape": [1, 8, 8]}
    plain, stable = build("dnn", config, seed=1), build("dnn", config, seed=1)
    train(plain, digits, PLAN)
    run = train(stable, digits, STABLE)
    test = data.load_dataset("digits", "test")
    assert mean_undecided(stable, test, 0.1) < 0.5 * mean_undecided(plain, test, 0.1)
    assert run.validation_accuracy > 0.9
    assert run.pruning is not None
    _, held_out = split(digits, STABLE)
    right = (stable(held_out.pixels.float() / 255).argmax(1) == held_out.labels).double().mean().item()
    assert right == pytest.approx(run.validation_accuracy)
    before = run.history[run.best_epoch - 1].validation_accuracy
    assert right >= before - 0.001
    weights = torch.cat([p.detach().flatten() for p in stable.parameters() if p.ndim > 1])
    assert int((weights == 0).sum()) == run.pruning.zeros
    assert weights[weights != 0].abs().min() >= run.pruning.threshold


def test_resumed_ends_as_if_never_interrupted(stripes: Dataset, tmp_path: Path) -> None:
    plan = replace(STABLE, epochs=4, schedule="constant")
    config = {"blocks": ["3x3/2"], "hidden": [6], "input_shape": [1, 6, 6], "classes": 3}
    straight, resumed = build("cnn", config), build("cnn", config, seed=9)
    wanted = train(straight, stripes, plan)
    checkpoint = tmp_path / "checkpoint.safetensors"
    train(build("cnn", config), stripes, replace(plan, epochs=2), checkpoint=checkpoint)
    run = train(resumed, stripes, plan, checkpoint=checkpoint, resume=True)
    assert run.pruning == wanted.pruning
    for got, want in zip(resumed.state_dict().values(), straight.state_dict().values(), strict=True):
        assert torch.equal(got, want)
    with pytest.raises(InputError, match=r"another stable \(0.5, now 0.3\)"):
        train(resumed, stripes, replace(plan, stable=0.3), checkpoint=checkpoint, resume=True)


def test_from_the_command_line_into_the_recipe(tmp_path: Path) -> None:
    arguments = "--sizes 8 --epochs 1 --threads 1 --stable 0.5 --stable-radius 0.03 --l1 1e-4"
    done = CliRunner().invoke(app, ["train", *arguments.split(), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    described = json.loads((tmp_path / "model.json").read_text())
    assert [described["recipe"][name] for name in ("stable", "stable_radius", "l1")] == [0.5, 0.03, 1e-4]
    assert described["pruning"]["weights"] == 8 * 64 + 80
    assert described["pruning"]["validation_accuracy"] == described["validation_accuracy"]
    zeros = sum(int((p == 0).sum()) for p in models.load_model(tmp_path).parameters() if p.ndim > 1)
    assert zeros == described["pruning"]["zeros"]


def test_the_recipe_names_the_usual_values() -> None:
    plan = TrainingPlan(stable=1.0)
    assert plan.stable_radius is not None
    assert plan.l1 is not None
    assert replace(plan, epochs=3).l1 == plan.l1
    assert TrainingPlan().l1 is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"stable": -1.0}, "--stable must be finite and not negative, not -1.0"),
        ({"stable": math.inf}, "--stable must be finite"),
        ({"stable": 1.0, "stable_radius": 1.5}, "--stable-radius must be from 0 to 1, not 1.5"),
        ({"stable": 1.0, "stable_radius": math.nan}, "--stable-radius"),
        ({"stable": 1.0, "l1": -1e-5}, "--l1 must be finite and not negative"),
        ({"stable_radius": 0.1}, "add --stable"),
        ({"l1": 0.1}, "add --stable"),
    ],
)
def test_bad_options(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TrainingPlan(**arguments)  # type: ignore[arg-type]


def test_capsules_have_no_intervals(digits: Dataset) -> None:
    capsules = build("capsnet", {"preset": "small", "input_shape": [1, 8, 8]})
    with pytest.raises(ModelError, match="needs a dnn or a cnn"):
        train(capsules, digits, STABLE)
