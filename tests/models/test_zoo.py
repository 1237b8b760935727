"""The shipped weights: their shapes, their size, and their accuracy measured again."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from closecall import certify, data, nearest
from closecall.bounds import all_excluded, linear_bounds
from closecall.data import Dataset, PairDataset
from closecall.errors import ModelError
from closecall.models import CNN, DNN, build, count_parameters, count_units, describe, load_model, zoo_names
from closecall.models.store import description_bytes
from closecall.models.zoo import WEIGHTS
from closecall.question.domain import Domain
from closecall.question.norms import NORMS
from closecall.question.question import Question
from closecall.readers import read
from closecall.train import TrainingPlan, evaluate_proven

SIZES = {
    "mnist-dnn1": (8, 8, 8),
    "mnist-dnn2": (8, 8, 8, 8, 8, 8),
    "mnist-dnn3": (20, 10, 8, 8),
    "mnist-dnn4": (20, 10, 8, 8, 8),
    "mnist-dnn5": (20, 20, 10, 10, 10),
    "mnist-50x2": (50, 50),
}
LEAST_ACCURACY = {
    **dict.fromkeys(SIZES, 0.90),
    "mnist-50x2": 0.97,
    "mnist-cnn": 0.988,
    "mnist-cnn-paper": 0.95,
    "mnist-cnn-stable": 0.983,
    "mnist-cnn-certified": 0.98,
    "mnist-cnn-robust": 0.97,
    "mnist-caps": 0.993,
    "cifar-cnn-robust": 0.54,
    "multimnist-caps": 0.82,
}


@pytest.fixture(scope="module")
def test_images() -> Dataset:
    return data.load_dataset("mnist", "test")


@pytest.fixture(scope="module")
def retraining() -> ModuleType:
    """The script that trains the zoo, as a module."""
    path = Path(__file__).parents[2] / "scripts" / "retrain_zoo.py"
    spec = importlib.util.spec_from_file_location("retrain_zoo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "retrain_zoo", module)  # its dataclasses look themselves up
        spec.loader.exec_module(module)
    return module


def test_the_promised_names_are_there() -> None:
    assert set(LEAST_ACCURACY) <= set(zoo_names())


@pytest.mark.parametrize("name", sorted(LEAST_ACCURACY))
def test_accuracy_is_as_recorded(name: str) -> None:
    model, described = load_model(f"zoo:{name}"), describe(f"zoo:{name}")
    assert described["dataset"] == {"cifar": "cifar10"}.get(name.split("-")[0], name.split("-")[0])
    test_images = data.load_dataset(described["dataset"], "test")
    labels = test_images.labels[:, None]
    if isinstance(test_images, PairDataset):
        labels = np.sort(test_images.both_labels(), axis=1)
    with torch.no_grad():
        images = torch.from_numpy(test_images.images.astype(np.float32) / np.float32(255))
        best = np.concatenate(
            [model(part).topk(labels.shape[1]).indices.numpy() for part in images.split(1000)]
        )
        right = (np.sort(best, axis=1) == labels).all(axis=1).mean()
    # A tie in the last bit on another machine may move an image or two of the 10,000.
    assert right == pytest.approx(described["accuracy"], abs=3e-4)
    assert right >= LEAST_ACCURACY[name]
    assert {"epochs", "batch", "seed", "learning_rate"} <= described["recipe"].keys()


@pytest.mark.parametrize("name", sorted(LEAST_ACCURACY))
def test_the_script_would_train_what_is_shipped(name: str, retraining: ModuleType) -> None:
    recipe, described = retraining.RECIPES[name], describe(f"zoo:{name}")
    trained = TrainingPlan(**described["recipe"])
    assert trained == replace(recipe.plan, seed=trained.seed)
    assert trained.seed in recipe.seeds
    shapes = {"cifar10": [3, 32, 32], "multimnist": [1, 36, 36]}
    shape = {"input_shape": shapes.get(recipe.dataset, [1, 28, 28])}
    built = json.loads(description_bytes(build(recipe.kind, recipe.config | shape), {}))
    assert {key: built[key] for key in ("kind", "config", "parameters")} == {
        key: described[key] for key in ("kind", "config", "parameters")
    }


@pytest.mark.parametrize("name", sorted(SIZES))
def test_shapes_of_the_dnns(name: str) -> None:
    model = load_model(f"zoo:{name}")
    assert isinstance(model, DNN)
    assert model.sizes == SIZES[name]
    assert model.outputs == "logits"


@pytest.mark.parametrize(("name", "convolution"), [("mnist-cnn", "standard"), ("mnist-cnn-paper", "paper")])
def test_shapes_of_the_cnns(name: str, convolution: str) -> None:
    model, described = load_model(f"zoo:{name}"), describe(f"zoo:{name}")
    assert isinstance(model, CNN)
    assert model.convolution == convolution
    assert len(model.blocks) == 2
    assert all(block.pool > 1 for block in model.blocks)
    assert count_units(model) == described["units"] <= 3000
    assert count_parameters(model) == described["parameters"]


def test_the_stable_one_leaves_few_units_undecided(test_images: Dataset) -> None:
    counts = {}
    for name in ("mnist-cnn", "mnist-cnn-stable"):
        network = read(f"zoo:{name}").network.simplified()
        counts[name] = 0
        for image in test_images.images[:3]:
            pixels = image.ravel() / 255
            ball = Domain(pixels, np.zeros_like(pixels), np.ones_like(pixels), NORMS["linf"], 0.05)
            counts[name] += linear_bounds(network, ball).undecided(network)
    assert counts["mnist-cnn-stable"] < 0.5 * counts["mnist-cnn"]
    described = describe("zoo:mnist-cnn-stable")
    assert described["recipe"]["stable"] > 0
    weights = [p for p in load_model("zoo:mnist-cnn-stable").parameters() if p.ndim > 1]
    assert sum(int((weight == 0).sum()) for weight in weights) == described["pruning"]["zeros"]
    assert count_units(load_model("zoo:mnist-cnn-stable")) == described["units"]


def test_the_certified_one_is_proven_within_its_radius(test_images: Dataset) -> None:
    described, model = describe("zoo:mnist-cnn-certified"), load_model("zoo:mnist-cnn-certified")
    assert described["recipe"]["certified"] == 0.1
    assert evaluate_proven(model, test_images, 0.1) == pytest.approx(described["proven"], abs=3e-4)
    assert evaluate_proven(model, test_images.subset(range(500)), 0.1) >= 0.92
    network = read(model).network.simplified()
    for index, label in enumerate(test_images.labels[:3].tolist()):
        pixels = test_images.image(index).astype(np.float64)
        question = Question(pixels, label, 10, norm="linf", radius=0.1)
        domain = question.domain()
        assert all_excluded(network, domain, question.goal(), linear_bounds(network, domain))


def test_the_robust_one_is_answered_at_once_within_a_tenth_and_has_its_nearest_images(
    test_images: Dataset,
) -> None:
    classifier, described = read("zoo:mnist-cnn-robust"), describe("zoo:mnist-cnn-robust")
    assert described["recipe"]["stable"] > 0
    outcomes = Counter[str]()
    for index in range(100):
        image, label = test_images.image(index), int(test_images.labels[index])
        right = classifier.predict(image) == label
        outcome = certify(classifier, image, label, radius=0.1, time_limit=30).outcome if right else "wrong"
        outcomes[outcome] += 1
    assert outcomes["unresolved"] == 0
    assert outcomes["robust"] >= 92
    found = nearest(classifier, test_images.image(0), norm="linf", time_limit=60)
    assert found.outcome == "nearest"
    assert found.distance is not None
    assert found.distance > 0.1


def test_the_one_for_colours_is_proven_within_two_steps_of_a_pixel() -> None:
    described, model = describe("zoo:cifar-cnn-robust"), load_model("zoo:cifar-cnn-robust")
    radius = described["recipe"]["certified"]
    assert radius == 2 / 255
    test_images = data.load_dataset("cifar10", "test")
    assert evaluate_proven(model, test_images, radius) == pytest.approx(described["proven"], abs=3e-4)
    assert described["proven"] >= 0.34


def test_all_weights_are_small() -> None:
    assert sum(path.stat().st_size for path in WEIGHTS.iterdir()) < 8_000_000


def test_an_unknown_name() -> None:
    with pytest.raises(
        ModelError, match="no zoo model 'mnist-dnn9'; the zoo has cifar-cnn-robust, mnist-50x2"
    ):
        load_model("zoo:mnist-dnn9")
