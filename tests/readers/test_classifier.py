"""The check that a network and its original agree."""

from __future__ import annotations

import numpy as np
import pytest

from closecall.errors import DataError, ModelError
from closecall.network import Network, Node
from closecall.network.layers import Affine
from closecall.readers.classifier import Images, agreed, squeezed

WEIGHT = np.random.default_rng(0).normal(size=(3, 4))
NETWORK = Network((2, 2), (Node(Affine.of([WEIGHT], np.ones(3)), (0,)),))


def original(images: Images) -> Images:
    return (images.reshape(-1, 4) @ WEIGHT.T + 1).astype(np.float32)


def test_what_agrees_is_joined() -> None:
    classifier = agreed(NETWORK, "", {"own": original}, "mine")
    assert classifier.source == "mine"
    assert classifier.notes == ()
    image = np.array([[0.0, 1.0], [0.5, 0.0]])
    assert classifier.predict(image) == NETWORK.forward(image[None]).argmax()
    with pytest.raises(DataError, match=r"image of shape \(2, 2\), not \(3,\)"):
        classifier.predict(np.zeros(3))


@pytest.mark.parametrize("error", [1e-3, np.nan, np.inf])
def test_a_difference_is_an_error_that_names_it(error: float) -> None:
    with pytest.raises(ModelError, match="mine: the network as read differs by"):
        agreed(NETWORK, "", {"own": lambda images: original(images) + np.float32(error)}, "mine")


def test_rounding_is_no_difference() -> None:
    assert agreed(NETWORK, "", {"own": lambda images: original(images) * np.float32(1 + 1e-6)}, "mine")


def test_small_scores_are_compared_by_their_own_scale() -> None:
    small = Network((2, 2), (Node(Affine.of([WEIGHT * 1e-3], np.zeros(3)), (0,)),))
    engines = {"own": lambda images: ((original(images) - 1) * 1.01e-3).astype(np.float32)}
    with pytest.raises(ModelError, match="differs by"):
        agreed(small, "", engines, "mine")


@pytest.mark.parametrize(
    ("scales", "offset"),
    [([1e-10], 0.0), ([1e10], 0.0), ([1e10, 1e-10], 0.0), ([1e-10, 1e10], 0.0), ([1e-3], 10.0)],
)
def test_neither_large_nor_tiny_numbers_hide_a_misreading(scales: list[float], offset: float) -> None:
    """Layers that scale, and an offset of all scores: weights misread by a tenth are found out."""

    def scaled(weight: np.ndarray) -> list[Node]:
        layers = [weight * scales[0], *(np.eye(3) * factor for factor in scales[1:])]
        biases = [np.zeros(3)] * (len(layers) - 1) + [np.full(3, offset)]
        pairs = zip(layers, biases, strict=True)
        return [Node(Affine.of([w], b), (index,)) for index, (w, b) in enumerate(pairs)]

    def engine(images: Images) -> Images:
        values = images.reshape(-1, 4)
        for node in scaled(WEIGHT):
            values = (values @ node.layer.weights[0].T.astype(np.float32) + node.layer.bias).astype(
                np.float32
            )
        return values

    assert agreed(Network((2, 2), tuple(scaled(WEIGHT))), "", {"own": engine}, "mine")
    misread = Network((2, 2), tuple(scaled(WEIGHT * 1.1)))
    with pytest.raises(ModelError, match="differs by"):
        agreed(misread, "", {"own": engine}, "mine")


def test_another_number_of_scores_is_an_error() -> None:
    with pytest.raises(ModelError, match="10 × 2 scores, but 3 were read"):
        agreed(NETWORK, "", {"own": lambda images: original(images)[:, :2]}, "mine")


def test_an_original_that_fails_is_an_error() -> None:
    def broken(images: Images) -> Images:
        raise RuntimeError("out of order\nand more")

    with pytest.raises(ModelError, match=r"own fails on a random image: out of order$"):
        agreed(NETWORK, "", {"own": broken}, "mine")


def test_a_peeled_softmax_is_put_back_for_the_comparison() -> None:
    def probabilities(images: Images) -> Images:
        powers = np.exp(original(images))
        return powers / powers.sum(axis=1, keepdims=True)

    assert agreed(NETWORK, "Softmax", {"own": probabilities}, "mine").notes
    sigmoid = agreed(NETWORK, "Sigmoid", {"own": lambda images: 1 / (1 + np.exp(-original(images)))}, "mine")
    assert sigmoid.notes == (
        "a trailing Sigmoid was peeled off: scores are logits, and a ratio is one of odds",
    )
    assert agreed(NETWORK, "LogSoftmax", {"own": lambda images: np.log(probabilities(images))}, "mine").notes
    with pytest.raises(ModelError, match="differs by"):
        agreed(NETWORK, "", {"own": probabilities}, "mine")
    np.testing.assert_allclose(squeezed(np.array([[1e6, 0.0]]), "Softmax"), [[1, 0]])
