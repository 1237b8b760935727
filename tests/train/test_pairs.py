"""Training on images of two things: labels, losses, shifts and accuracy, each against a plain count."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from closecall.data import Dataset, PairDataset
from closecall.data.multimnist import overlap_digits
from closecall.models import DNN, CapsNet
from closecall.train import TrainingPlan, evaluate, train
from closecall.train.batches import Images, shuffle
from closecall.train.evaluation import count_correct
from closecall.train.plan import cross_entropy, squared_error


@pytest.fixture(scope="module")
def pairs() -> PairDataset:
    """Three shapes, two at a time: a horizontal bar, a vertical bar and a block."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 180)
    images = np.zeros((180, 1, 6, 6), np.uint8)
    for index, label in enumerate(labels):
        images[index, 0][[(2, slice(None)), (slice(None), 3), (slice(1, 4), slice(1, 4))][label]] = 220
    return overlap_digits(Dataset("shapes", images, labels, ("row", "column", "block")), 3, "pairs")


def test_both_must_be_among_the_two_best() -> None:
    scores = torch.tensor([[0.9, 0.1, 0.8], [0.9, 0.1, 0.8], [0.2, 0.3, 0.1]])
    assert count_correct(scores, torch.tensor([[2, 0], [0, 1], [0, 1]])) == 2
    assert count_correct(scores, torch.tensor([0, 0, 0])) == 2


def test_losses_of_two_labels_by_hand() -> None:
    scores, labels = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([[2, 0]])
    softplus = [math.log1p(math.exp(value)) for value in (-2.0, -1.0, -0.5)]
    assert float(cross_entropy(scores, labels)) == pytest.approx(sum(softplus))
    assert float(squared_error(scores, labels)) == pytest.approx((1 + 1 + 0.25) / 2)


def test_parts_move_with_their_image(pairs: PairDataset) -> None:
    images = Images.of(pairs)
    epoch = shuffle(images, TrainingPlan(shift=2, seed=4), 1)
    pixels, labels, parts = epoch.batch(0, 50)
    torch.testing.assert_close(pixels[:, 0], parts.sum(1).clamp_max(1))
    assert torch.equal(labels, images.labels[epoch.order[:50]])
    assert epoch.moves is not None
    assert epoch.moves.unique().tolist() == [-2, -1, 0, 1, 2]


@pytest.mark.parametrize("kind", ["dnn", "capsnet"])
def test_it_learns_to_see_both(kind: str, pairs: PairDataset) -> None:
    torch.manual_seed(0)
    shape = (1, 14, 14)
    model = DNN((40,), shape, 3) if kind == "dnn" else CapsNet(shape, 3, decoder=[16])
    before, _ = evaluate(model, pairs)
    plan = TrainingPlan(epochs=12, batch=20, learning_rate=5e-3, validation=20, threads=1)
    train(model, pairs, plan)
    after, accuracy = evaluate(model, pairs)
    assert after < before / 2
    assert accuracy > 0.85  # a guess sees both with probability 1/3
