"""The attack on a module: what it gives back really flips, and is no nearer than what is proven."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from closecall import data, nearest
from closecall.compare.torch_attack import ModuleLayer, attack_module, with_all_gradients
from closecall.models import CapsNet, build
from closecall.train import TrainingPlan, train

CAPSNET = {"input_shape": (1, 8, 8), "convolutions": ["4x3s2"], "primary_types": 2, "primary_size": 3,
           "decoder": []}  # fmt: skip


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load_dataset("digits", "train").subset(np.arange(300))


@pytest.fixture(scope="module")
def dnn(digits: data.Dataset) -> torch.nn.Module:
    model = build("dnn", {"sizes": [6, 6], "input_shape": (1, 8, 8)})
    train(model, digits, TrainingPlan(epochs=10, batch=32, learning_rate=1e-2, threads=1))
    return model


@pytest.fixture(scope="module")
def capsnet(digits: data.Dataset) -> torch.nn.Module:
    model = build("capsnet", CAPSNET)
    train(model, digits, TrainingPlan(epochs=3, batch=32, learning_rate=1e-2, threads=1))
    return model


def right_image(model: torch.nn.Module, dataset: data.Dataset) -> tuple[np.ndarray, int]:
    for index in range(len(dataset)):
        image, label = dataset.image(index), int(dataset.labels[index])
        if int(model(torch.from_numpy(image)[None]).argmax()) == label:
            return image, label
    raise AssertionError("no image is right")


@pytest.mark.parametrize("norm", ["linf", "l1", "l2", "l0"])
def test_no_nearer_than_the_nearest(dnn: torch.nn.Module, digits: data.Dataset, norm: str) -> None:
    image, label = right_image(dnn, digits)
    found = attack_module(dnn, image, label, norm=norm, seconds=20)
    assert found is not None
    moved, distance, became = found
    shift = np.abs(moved.astype(np.float64) - image).ravel()
    measured = {
        "linf": shift.max(),
        "l1": shift.sum(),
        "l2": np.sqrt((shift**2).sum()),
        "l0": (shift > 0).sum(),
    }
    assert distance == pytest.approx(measured[norm], abs=1e-9)
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert int(dnn(torch.from_numpy(moved)[None]).argmax()) == became != label
    proven = nearest(dnn, image, label, norm=norm, time_limit=20)
    assert distance >= proven.lower_bound - 1e-6
    if norm == "linf":
        assert distance <= 1.5 * proven.distance


def test_capsules_are_fooled_as_they_are(capsnet: torch.nn.Module, digits: data.Dataset) -> None:
    image, label = right_image(capsnet, digits)
    found = attack_module(capsnet, image, label, norm="linf", seconds=20)
    assert found is not None
    assert int(capsnet(torch.from_numpy(found[0])[None]).argmax()) == found[2] != label
    assert found[1] == pytest.approx(float(np.abs(found[0] - image).max()), abs=1e-6)


def test_gradients_through_all_iterations_are_those_of_the_function(capsnet: torch.nn.Module) -> None:
    twin = with_all_gradients(capsnet).double()
    assert isinstance(twin, CapsNet)
    assert twin.sizes.gradients == "all"
    image = torch.rand(1, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.autograd.gradcheck(lambda x: twin(x), (image.requires_grad_(),), atol=1e-4)
    torch.testing.assert_close(twin.float()(image.detach().float()), capsnet(image.detach().float()))


def test_the_layer_runs_and_differentiates_the_module(dnn: torch.nn.Module) -> None:
    layer = ModuleLayer(dnn, (1, 8, 8), 10)
    points, slopes = np.random.default_rng(0).random((3, 64)), np.random.default_rng(1).normal(size=(3, 10))
    images = torch.from_numpy(points.reshape(3, 1, 8, 8)).float().requires_grad_()
    scores = dnn(images)
    np.testing.assert_allclose(layer.forward(points), scores.detach().numpy(), atol=1e-6)
    (scores * torch.from_numpy(slopes).float()).sum().backward()
    assert images.grad is not None
    np.testing.assert_allclose(layer.gradient(slopes, points)[0], images.grad.flatten(1).numpy(), atol=1e-5)


def test_a_wrong_search_finds_nothing() -> None:
    """A network that always says the same cannot be fooled."""
    model = build("dnn", {"sizes": [2], "input_shape": (1, 2, 2), "classes": 3}).eval()
    for parameter in model.parameters():
        parameter.data.zero_()
    model.layers[-1].bias.data[1] = 5.0  # type: ignore[index, union-attr]
    assert attack_module(model, np.full((1, 2, 2), 0.5, np.float32), 1, norm="linf", seconds=5) is None
