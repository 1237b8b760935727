"""Losses and schedules against their formulas; one step of each optimiser against torch or by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closecall.errors import InputError
from closecall.models import DNN
from closecall.train.plan import TrainingPlan, squared_error


def test_squared_error_is_the_papers_sum() -> None:
    scores = torch.tensor([[0.5, -1.0, 2.0], [0.0, 3.0, 1.0]])
    labels = torch.tensor([2, 0])
    wanted = 0.0
    for row, label in zip(scores.tolist(), labels.tolist(), strict=True):
        for column, score in enumerate(row):
            wanted += ((1.0 if column == label else 0.0) - score) ** 2
    assert squared_error(scores, labels).item() == pytest.approx(wanted / (2 * 2))


def test_default_loss_is_cross_entropy() -> None:
    model = DNN((4,), input_shape=(1, 2, 2), classes=3)
    images, labels = torch.rand(5, 1, 2, 2), torch.tensor([0, 1, 2, 1, 0])
    loss, scores = TrainingPlan().loss_function(model)(model, images, labels)
    probabilities = scores.softmax(1)[range(5), labels]
    assert loss.item() == pytest.approx(-probabilities.log().mean().item(), rel=1e-5)


def test_a_model_may_bring_its_own_loss() -> None:
    class Own(DNN):
        def training_loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
            return torch.tensor(42.0), self(images)

    model = Own((4,), input_shape=(1, 2, 2), classes=3)
    images, labels = torch.rand(2, 1, 2, 2), torch.tensor([0, 1])
    assert TrainingPlan().loss_function(model)(model, images, labels)[0].item() == 42
    assert TrainingPlan(loss="mse").loss_function(model)(model, images, labels)[0].item() != 42


def test_cosine_goes_from_one_to_zero() -> None:
    plan = TrainingPlan(learning_rate=0.2, schedule="cosine")
    rates = [plan.learning_rate_at(step, 100) for step in (0, 25, 50, 100)]
    np.testing.assert_allclose(rates, [0.2, 0.1 * (1 + math.sqrt(0.5)), 0.1, 0.0], atol=1e-12)
    assert TrainingPlan(learning_rate=0.2).learning_rate_at(70, 100) == 0.2


@pytest.mark.parametrize(("optimizer", "rate"), [("adam", 1e-3), ("sgd", 0.1)])
def test_optimizer_takes_the_step_it_says(optimizer: str, rate: float) -> None:
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    layer.weight.grad, layer.bias.grad = torch.randn(2, 3), torch.zeros(2)
    TrainingPlan(optimizer=optimizer).make_optimizer(layer).step()
    # Adam's first step is the gradient's sign times the rate.
    wanted = before - rate * (layer.weight.grad.sign() if optimizer == "adam" else layer.weight.grad)
    torch.testing.assert_close(layer.weight.detach(), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epochs": 0}, "epochs of a training must be a whole number ≥ 1, not 0"),
        ({"epochs": 2**20}, "epochs of a training must be below"),
        ({"batch": -1}, "batch"),
        ({"batch": 2.5}, "batch"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**40}, "seed of a training must be below"),
        ({"threads": 0}, "threads"),
        ({"validation": 0}, "validation"),
        ({"optimizer": "lbfgs"}, "optimizer is one of adam, sgd, not 'lbfgs'"),
        ({"loss": "hinge"}, "loss is one of cross-entropy, mse"),
        ({"schedule": "step"}, "schedule is one of constant, cosine"),
        ({"learning_rate": 0.0}, "learning rate must be positive"),
        ({"learning_rate": math.nan}, "learning rate must be positive"),
        ({"weight_decay": -1.0}, "weight decay"),
    ],
)
def test_bad_plans(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TrainingPlan(**arguments)  # type: ignore[arg-type]
