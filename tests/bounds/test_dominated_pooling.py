"""Windows without losers give the same scores all over the domain, and lose what can be seen by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from closecall.bounds.dominated_pooling import without_losers
from closecall.models import build
from closecall.network import Network, Node
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.question.question import Question
from closecall.readers import read

KINDS = {
    "one block": {"blocks": ["3x2/2"], "hidden": [6], "input_shape": [1, 5, 5], "classes": 3},
    "two blocks": {"blocks": ["4x3/2", "5x2/2"], "hidden": [], "input_shape": [1, 8, 8], "classes": 4},
    "overlapping": {"blocks": ["2x2/2s1"], "hidden": [5], "input_shape": [1, 4, 4], "classes": 3},
}
RADII = {"linf": 0.05, "l1": 0.3, "l2": 0.15, "l0": 2.0}


def windows_in(network: Network) -> list[np.ndarray]:
    return [node.layer.windows for node in network.nodes if isinstance(node.layer, Maximum)]


def points_of(domain: Domain, count: int, seed: int) -> np.ndarray:
    """Points of the domain, most of them on its rim: the furthest ones in random directions."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(count, len(domain.centre)))
    return domain.centre + domain.furthest(rows) * generator.uniform(0.5, 1.0, (count, 1)).round()


@pytest.mark.parametrize("norm", RADII)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_scores_are_the_same_all_over_the_domain(kind: str, norm: str, seed: int) -> None:
    network = read(build("cnn", KINDS[kind], seed=seed).eval()).network.simplified()
    centre = np.random.default_rng(seed).random(network.input_size)
    domain = Question(centre, 0, network.classes, norm=norm, radius=RADII[norm]).domain()
    smaller = without_losers(network, domain)
    before, after = (sum(int((w >= 0).sum()) for w in windows_in(n)) for n in (network, smaller))
    assert after < before or norm == "l0"  # two pixels may bring any entry to the top
    points = points_of(domain, 2000, seed)
    np.testing.assert_allclose(smaller.forward(points), network.forward(points), rtol=0, atol=1e-12)


def network_of(weight: list[list[float]], bias: list[float], *, rectified: bool) -> Network:
    """One window over all rows of an affine map of two pixels."""
    layer = Affine.of([np.array(weight)], np.array(bias))
    nodes = [Node(layer, (0,)), Node(Maximum(np.arange(len(bias))[None]), (1,))]
    return Network((2,), (*nodes, Node(Relu(1), (2,))) if rectified else tuple(nodes))


BOX = Domain(np.full(2, 0.5), np.zeros(2), np.ones(2), norm_named("linf"))


def test_an_entry_that_is_always_behind_another_loses_though_their_ranges_overlap() -> None:
    network = network_of([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]], [-0.1, 0.0, 0.5], rectified=False)
    assert windows_in(without_losers(network, BOX))[0].tolist() == [[1, 2]]


def test_of_equal_entries_one_is_left() -> None:
    network = network_of([[1.0, 1.0]] * 3, [0.0] * 3, rectified=False)
    (windows,) = windows_in(without_losers(network, BOX))
    assert windows.shape == (1, 1)


def test_zero_competes_only_where_a_relu_reads_the_window() -> None:
    weight, bias = [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], [-1.5, -1.25, 0.0]
    rectified = without_losers(network_of(weight, bias, rectified=True), BOX)
    assert windows_in(rectified)[0].tolist() == [[2]]
    plain = without_losers(network_of(weight[:2], bias[:2], rectified=False), BOX)
    assert windows_in(plain)[0].tolist() == [[0, 1]]


def test_a_window_of_nothing_but_losers_to_zero_keeps_its_entries() -> None:
    network = without_losers(network_of([[1.0, 0.0], [0.0, 1.0]], [-2.0, -2.0], rectified=True), BOX)
    assert windows_in(network)[0].tolist() == [[0, 1]]
    assert network.forward(np.array([[1.0, 1.0]])).tolist() == [[0.0]]


def test_a_network_without_pooling_and_one_out_of_time_stay_as_they_are() -> None:
    plain = Network((2,), (Node(Affine.of([np.eye(2)], np.zeros(2)), (0,)),))
    assert without_losers(plain, BOX) is plain
    pooled = network_of([[1.0, 1.0], [1.0, 1.0]], [-0.1, 0.0], rectified=False)
    late = without_losers(pooled, BOX, until=-math.inf)
    assert windows_in(late)[0].tolist() == [[0, 1]]


def test_pixels_may_be_pooled_as_they_are() -> None:
    network = Network((2,), (Node(Maximum(np.array([[0, 1]])), (0,)),))
    apart = Domain(np.array([0.2, 0.8]), np.zeros(2), np.ones(2), norm_named("linf"), radius=0.25)
    assert windows_in(without_losers(network, apart))[0].tolist() == [[1]]
    assert windows_in(without_losers(network, BOX))[0].tolist() == [[0, 1]]
