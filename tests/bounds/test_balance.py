"""A balanced network is the same function with ordinary numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components

from closecall.bench.soundness.liars import Liar, liar
from closecall.bounds.balance import balanced, joined_groups
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.readers import read


def whole_box(network: Network) -> Domain:
    size = network.input_size
    return Domain(np.full(size, 0.5), np.zeros(size), np.ones(size), norm_named("linf"))


def two_layers(scale: float) -> Network:
    generator = np.random.default_rng(0)
    first = Affine.of([scale * generator.normal(size=(6, 4))], scale * generator.normal(size=6))
    last = Affine.of([generator.normal(size=(3, 6)) / scale], np.zeros(3))
    return Network((4,), (Node(first, (0,)), Node(Relu(6), (1,)), Node(last, (2,))))


def test_ordinary_networks_stay_as_they_are() -> None:
    network = two_layers(1.0)
    assert balanced(network, whole_box(network)) is network


@pytest.mark.parametrize("scale", [2.0**40, 2.0**-40])
def test_a_scale_between_layers_goes_without_a_trace(scale: float) -> None:
    network = two_layers(scale)
    plain = balanced(network, whole_box(network))
    images = np.random.default_rng(1).random((50, 4))
    assert (plain.forward(images) == network.forward(images)).all()
    first = plain.nodes[0].layer
    assert isinstance(first, Affine)
    assert np.abs(first.weights[0]).max() < 8


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_the_scores_of_liars_stay_the_same_number_for_number(seed: int) -> None:
    suspect: Liar = liar(seed)
    network = read(suspect.module, suspect.shape).network
    low, high = suspect.pixels.range
    size = network.input_size
    box = Domain(suspect.image, np.full(size, low), np.full(size, high), norm_named("linf"))
    images = low + (high - low) * np.random.default_rng(seed).random((20, size))
    assert (balanced(network, box).forward(images) == network.forward(images)).all()


def test_entries_of_a_window_share_a_scale() -> None:
    first = Affine.of([np.array([[1e12], [1.0], [1.0]])], np.zeros(3))
    windows = Maximum(np.array([[0, 1], [1, 2]]))
    network = Network((1,), (Node(first, (0,)), Node(windows, (1,))))
    images = np.linspace(0, 1, 5)[:, None]
    assert (balanced(network, whole_box(network)).forward(images) == network.forward(images)).all()


def test_dead_units_have_no_say() -> None:
    """A unit that is never on reads with weight 1e12 from nowhere; the unit behind it keeps its own scale."""
    first = Affine.of([np.array([[-1.0], [1.0]])], np.array([-1.0, 0.0]))
    middle = Affine.of([np.array([[1e12, 1.0]])], np.zeros(1))
    last = Affine.of([np.ones((2, 1))], np.zeros(2))
    nodes = (
        Node(first, (0,)),
        Node(Relu(2), (1,)),
        Node(middle, (2,)),
        Node(Relu(1), (3,)),
        Node(last, (4,)),
    )
    network = Network((1,), nodes)
    assert balanced(network, whole_box(network)) is network


def test_sparse_weights_stay_sparse() -> None:
    weight = np.zeros((40, 60))
    weight[np.arange(40), np.arange(40)] = 1e10
    first = Affine.of([weight], np.zeros(40))
    last = Affine.of([np.full((2, 40), 1e-10)], np.zeros(2))
    network = Network((60,), (Node(first, (0,)), Node(Relu(40), (1,)), Node(last, (2,))))
    assert issparse(first.weights[0])
    layer = balanced(network, whole_box(network)).nodes[0].layer
    assert isinstance(layer, Affine)
    assert issparse(layer.weights[0])


def test_groups_are_those_that_scipy_finds() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        count, pairs = int(generator.integers(1, 40)), int(generator.integers(0, 50))
        left, right = generator.integers(0, count, (2, pairs))
        found = joined_groups(count, left, right)
        edges = coo_array((np.ones(pairs), (left, right)), shape=(count, count))
        _, expected = connected_components(edges, directed=False)
        np.testing.assert_array_equal(found[:, None] == found, expected[:, None] == expected)
