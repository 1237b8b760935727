"""The losses against values computed by hand."""

from __future__ import annotations

import pytest
import torch

from closecall.models.capsules.losses import margin_loss, presence, reconstruction_error, spread_loss


def test_presence_of_one_class_and_of_two() -> None:
    assert presence(torch.tensor([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert presence(torch.tensor([[2, 0], [1, 2]]), 3).tolist() == [[1, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    ("lengths", "labels", "expected"),
    [
        ([0.9, 0.1, 0.05], [0], 0.0),
        ([1.0, 0.0, 0.1], [0], 0.0),
        ([0.5, 0.1, 0.1], [0], 0.4**2),
        ([0.5, 0.3, 0.7], [0], 0.4**2 + 0.5 * (0.2**2 + 0.6**2)),
        ([0.0, 0.0, 0.0], [1], 0.81),
        ([0.5, 0.3, 0.7], [0, 2], 0.4**2 + 0.2**2 + 0.5 * 0.2**2),
    ],
)
def test_margin_loss_by_hand(lengths: list[float], labels: list[int], expected: float) -> None:
    loss = margin_loss(torch.tensor([lengths]), presence(torch.tensor([labels]), 3))
    assert float(loss) == pytest.approx(expected, abs=1e-7)


def test_margin_loss_is_the_mean_over_images() -> None:
    lengths = torch.tensor([[0.5, 0.1, 0.1], [0.0, 0.0, 0.0]])
    assert float(margin_loss(lengths, presence(torch.tensor([0, 1]), 3))) == pytest.approx((0.16 + 0.81) / 2)


def test_reconstruction_error_is_summed_over_pixels() -> None:
    decoded = torch.tensor([[[[0.0, 0.5], [1.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0]]]])
    images = torch.tensor([[[[0.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.5]]]])
    assert float(reconstruction_error(decoded, images)) == pytest.approx((0.25 + 1 + 0.25) / 2)


def test_spread_loss_by_hand() -> None:
    activations = torch.tensor([[0.8, 0.5, 0.1]])
    loss = spread_loss(activations, presence(torch.tensor([0]), 3), 0.9)
    assert float(loss) == pytest.approx(0.6**2 + 0.2**2)
    both = spread_loss(activations, presence(torch.tensor([[0, 1]]), 3), 0.9)
    assert float(both) == pytest.approx(0.5**2)
