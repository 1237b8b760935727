"""Bounds of many images at once hold, prove no more than the truth, and nothing where numbers overflow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from closecall.batches.together import carry, prove
from closecall.bounds import interval_bounds
from closecall.network import Network, Node
from closecall.network.layers import Affine, Relu
from closecall.question.question import Question
from closecall.readers import read

MODELS = {
    "dense": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(36, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)
    ),
    "pooled": lambda: nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 3)
    ),
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 3)),
}


def questions_about(network: Network, count: int, radius: float) -> list[Question]:
    random = np.random.default_rng(3)
    images = random.random((count, 36))
    scores = network.forward(images)
    return [
        Question(image, int(score.argmax()), 3, norm="linf", radius=radius)
        for image, score in zip(images, scores, strict=True)
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("radius", [0.001, 0.02, 0.3])
def test_boxes_are_those_of_single_images_and_hold(name: str, radius: float) -> None:
    torch.manual_seed(7)
    network = read(MODELS[name]().eval(), (1, 6, 6)).network.simplified()
    questions = questions_about(network, 20, radius)
    ends = [question.domain().box() for question in questions]
    boxes = carry(network, np.stack([low for low, _ in ends], 1), np.stack([high for _, high in ends], 1))
    random = np.random.default_rng(4)
    for k, question in enumerate(questions):
        alone = interval_bounds(network, question.domain())
        for (low, high), below, above in zip(boxes, alone.lower, alone.upper, strict=True):
            np.testing.assert_allclose(low[:, k], below, atol=1e-9)
            np.testing.assert_allclose(high[:, k], above, atol=1e-9)
        low, high = ends[k]
        points = low + random.random((50, 36)) * (high - low)
        for value, (lows, highs) in zip(network.values(points), boxes, strict=True):
            assert (value >= lows[:, k]).all()
            assert (value <= highs[:, k]).all()


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_proven_that_a_point_refutes(name: str) -> None:
    """Among boxes of many sizes some are proven; in none of those does any corner or point reach the goal."""
    torch.manual_seed(11)
    network = read(MODELS[name]().eval(), (1, 6, 6)).network.simplified()
    random = np.random.default_rng(5)
    seen = set()
    for radius in (0.0005, 0.005, 0.05, 0.3, 1.0):
        questions = questions_about(network, 12, radius)
        proven = prove(network, questions)
        seen |= set(proven.tolist())
        for question in (question for question, held in zip(questions, proven, strict=True) if held):
            low, high = question.domain().box()
            corners = np.where(random.random((200, 36)) < 0.5, low, high)
            points = np.vstack([corners, low + random.random((200, 36)) * (high - low)])
            assert not (question.goal().slack(network.forward(points)) >= 0).any()
    assert seen == {True, False}


def test_the_edge_is_not_crossed() -> None:
    """y₀ − y₁ = 2x − 1 at x = 0.7: the margin is reached exactly at 0.2005 from there, in L∞."""
    both = Affine((np.array([[1.0], [-1.0]]),), np.array([0.0, 1.0]))
    network = Network(
        (1,), (Node(both, (0,)), Node(Relu(2), (1,)), Node(Affine((np.eye(2),), np.zeros(2)), (2,)))
    )
    radii = [0.2, 0.2004, 0.20049, 0.20051, 0.21]
    asked = [Question(np.array([0.7]), 0, 2, norm="linf", radius=radius) for radius in radii]
    edge = [question.image[0] - 0.4995 for question in asked]
    assert prove(network, asked).tolist() == [radius < end for radius, end in zip(radii, edge, strict=True)]


@pytest.mark.parametrize("weight", [1e300, np.nextafter(np.inf, 0)])
def test_numbers_that_overflow_prove_nothing(weight: float) -> None:
    layers = [
        Affine((np.full((2, 4), weight),), np.zeros(2)),
        Relu(2),
        Affine((np.full((2, 2), weight),), np.zeros(2)),
    ]
    network = Network((4,), tuple(Node(layer, (place,)) for place, layer in enumerate(layers)))
    question = Question(np.full(4, 0.5), 0, 2, norm="linf", radius=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not prove(network, [question, question]).any()
