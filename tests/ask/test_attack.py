"""A batch of attacks against torch, against the proven nearest, and as the docs show it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import closecall
from closecall.errors import QueryError


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    torch.manual_seed(0)
    first, last = torch.nn.Linear(16, 12), torch.nn.Linear(12, 4, bias=False)
    with torch.no_grad():
        first.bias.copy_(-first.weight.sum(1) / 2)  # a grey image is a tie, so that every class is near
    return torch.nn.Sequential(torch.nn.Flatten(), first, torch.nn.ReLU(), last).eval()


@pytest.fixture(scope="module")
def batch(module: torch.nn.Module) -> tuple[np.ndarray, np.ndarray]:
    images = np.random.default_rng(1).random((6, 1, 4, 4), dtype=np.float32)
    with torch.no_grad():
        labels = module(torch.from_numpy(images)).argmax(1).numpy()
    return images, labels


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0"])
def test_every_success_fools_the_model_at_the_distance_given(
    module: torch.nn.Module, batch: tuple[np.ndarray, np.ndarray], norm: str
) -> None:
    images, labels = batch
    adversarials, distances, success = closecall.attack(module, images, labels, norm=norm)
    assert success.all()
    with torch.no_grad():
        assert (module(torch.from_numpy(adversarials)).argmax(1).numpy() != labels).all()
    shifts = (adversarials.astype(np.float64) - images).reshape(len(images), -1)
    lengths = {
        "l1": np.abs(shifts).sum(1),
        "l2": np.sqrt((shifts**2).sum(1)),
        "linf": np.abs(shifts).max(1),
        "l0": (np.abs(shifts) > 1e-6).sum(1),
    }
    np.testing.assert_allclose(distances, lengths[norm], rtol=1e-6)


def test_no_attack_beats_the_proven_nearest(
    module: torch.nn.Module, batch: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = batch
    distances = closecall.attack(module, images[:3], labels[:3], norm="linf").distances
    for image, label, distance in zip(images, labels, distances, strict=False):
        verdict = closecall.nearest(module, image, int(label), norm="linf", time_limit=30)
        assert verdict.outcome == "nearest"
        assert distance >= verdict.lower_bound


def test_a_misclassified_image_is_its_own_adversarial(
    module: torch.nn.Module, batch: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = batch
    found = closecall.attack(module, images[:1], (labels[:1] + 1) % 4)
    assert found.distances[0] == 0
    np.testing.assert_array_equal(found.images[0], images[0])


def test_none_within_a_tiny_radius_is_said_by_infinity(
    module: torch.nn.Module, batch: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = batch
    found = closecall.attack(module, images, labels, norm="linf", radius=1e-6)
    assert not found.success.any()
    assert np.isinf(found.distances).all()


def test_a_single_image_without_a_batch_is_one_sentence(module: torch.nn.Module) -> None:
    with pytest.raises(QueryError, match="batch of one"):
        closecall.attack(module, np.zeros((1, 4, 4)), 3)


@pytest.mark.parametrize("label", ["seven", 1.5])
def test_a_label_that_is_no_class_is_one_sentence(module: torch.nn.Module, label: object) -> None:
    with pytest.raises(QueryError, match="the label must be the number of a class, got"):
        closecall.attack(module, np.zeros((1, 1, 4, 4)), [label])


def test_the_example_in_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert program is not None
    exec(program.group(1), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("(4, 1, 8, 8)")
