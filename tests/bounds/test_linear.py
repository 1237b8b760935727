"""Bounds of every kind contain what random points do, and each kind is inside the one before."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import Tensor, nn

from closecall.arrays import Matrix
from closecall.bounds import Bounds, certified_radius, interval_bounds, linear_bounds, maximise
from closecall.bounds.linear import most_in_box
from closecall.models import CNN, DNN
from closecall.network import Network
from closecall.network.layers import Relu
from closecall.question.domain import Domain
from closecall.question.norms import NORMS
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.unit_bounds import lp_bounds, milp_bounds
from closecall.settings import LinearBounds

torch.set_num_threads(1)

POINTS = 10_000
RADII = {"l1": 1.2, "l2": 0.5, "linf": 0.15, "l0": 2.0}
ROUNDING = 1e-9


class Residual(nn.Module):
    input_shape = (1, 2, 3)

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.inner, self.leave = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, images: Tensor) -> Tensor:
        entered = torch.relu(self.enter(images.flatten(1)))
        return self.leave(torch.relu(entered + self.inner(entered)))


MODELS = {
    "dnn": lambda: DNN([5, 5, 3], (1, 2, 3), 3),
    "cnn": lambda: CNN(["1x2/2s1"], [3], (1, 4, 4), 3, strict=False),
    "paper cnn": lambda: CNN(["2x2s2/0"], [3], (1, 4, 4), 3, convolution="paper", strict=False),
    "residual": Residual,
}


def network_of(name: str, seed: int = 0) -> Network:
    torch.manual_seed(seed)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_(std=0.2)
    return read(model).network.simplified()


def ball(network: Network, norm: str, radius: float, seed: int = 0) -> Domain:
    centre = np.random.default_rng(seed).random(network.input_size)
    return Domain(centre, np.zeros_like(centre), np.ones_like(centre), NORMS[norm], radius)


def points_in(domain: Domain, count: int, seed: int = 1) -> np.ndarray:
    """Random points, half of them as far out as the ball and the box allow."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(count, len(domain.centre))) ** 3
    shares = generator.random((count, 1))
    shares[: count // 2] = 1.0
    points = domain.centre + shares * domain.furthest(rows)
    assert (domain.norm.distance(points - domain.centre) <= domain.radius + 1e-9).all()
    assert (points >= domain.lower - 1e-12).all()
    assert (points <= domain.upper + 1e-12).all()
    return points


def assert_contains(bounds: Bounds, values: list[np.ndarray]) -> None:
    for low, high, value in zip(bounds.lower, bounds.upper, values, strict=True):
        assert (value >= low - ROUNDING).all()
        assert (value <= high + ROUNDING).all()


def assert_inside(inner: Bounds, outer: Bounds) -> None:
    for low, high, wide_low, wide_high in zip(
        inner.lower, inner.upper, outer.lower, outer.upper, strict=True
    ):
        assert (low >= wide_low - ROUNDING).all()
        assert (high <= wide_high + ROUNDING).all()


@pytest.mark.parametrize("norm", RADII)
@pytest.mark.parametrize("name", MODELS)
def test_every_kind_contains_random_points_and_is_inside_the_one_before(name: str, norm: str) -> None:
    network = network_of(name)
    domain = ball(network, norm, RADII[norm])
    values = network.values(points_in(domain, POINTS))
    kinds = [interval_bounds(network, domain), linear_bounds(network, domain)]
    kinds.append(lp_bounds(network, domain, kinds[-1]))
    kinds.append(milp_bounds(network, domain, kinds[-1], seconds_each=5.0))
    for bounds in kinds:
        assert_contains(bounds, values)
    for outer, inner in itertools.pairwise(kinds):
        assert_inside(inner, outer)
        assert inner.undecided(network) <= outer.undecided(network)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(sorted(RADII)),
    st.floats(0.01, 3.0),
    st.integers(0, 10**6),
)
def test_any_network_any_ball(name: str, norm: str, share: float, seed: int) -> None:
    network = network_of(name, seed)
    domain = ball(network, norm, share * RADII[norm], seed)
    values = network.values(points_in(domain, 500, seed))
    interval, linear = interval_bounds(network, domain), linear_bounds(network, domain)
    lp = lp_bounds(network, domain, linear)
    for bounds in (interval, linear, lp):
        assert_contains(bounds, values)
    assert_inside(linear, interval)
    assert_inside(lp, linear)


@pytest.mark.parametrize("norm", RADII)
def test_the_bounds_of_a_single_affine_layer_are_attained(norm: str) -> None:
    """Without an open unit linear bounds are exact: some point of the domain reaches them."""
    torch.manual_seed(0)
    network = read(nn.Sequential(nn.Flatten(), nn.Linear(6, 4)).eval(), (1, 2, 3)).network
    domain = ball(network, norm, RADII[norm])
    weight = network.forward(np.eye(6)) - network.forward(np.zeros((1, 6)))
    bounds = linear_bounds(network, domain)
    reached = network.forward(domain.centre + domain.furthest(weight.T))
    np.testing.assert_allclose(np.diag(reached), bounds.upper[-1], atol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_milp_bounds_are_attained(norm: str) -> None:
    """They are exact where nothing timed out, so a fine search comes near to every one of them."""
    torch.manual_seed(3)
    network = read(DNN([6, 5, 4], (1, 1, 2), 2).eval()).network
    domain = ball(network, norm, 0.4)
    loose = linear_bounds(network, domain)
    tight = milp_bounds(network, domain, loose)
    side = np.linspace(0.0, 1.0, 1201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = network.values(grid[domain.norm.distance(grid - domain.centre) <= domain.radius])
    gained = 0
    for node_id in (node.inputs[0] for node in network.nodes if isinstance(node.layer, Relu)):
        sharper = tight.upper[node_id] < loose.upper[node_id] - 1e-6
        most = values[node_id].max(axis=0)
        np.testing.assert_allclose(most[sharper], tight.upper[node_id][sharper], atol=0.02)
        gained += int(sharper.sum())
    assert gained > 0


def test_lp_bounds_gain_something() -> None:
    network = network_of("dnn", 1)
    domain = ball(network, "l1", 1.0)
    linear = linear_bounds(network, domain)
    lp = lp_bounds(network, domain, linear)
    gains = [
        float(((high - low) - (sharp_high - sharp_low)).max())
        for low, high, sharp_low, sharp_high in zip(
            linear.lower, linear.upper, lp.lower, lp.upper, strict=True
        )
    ]
    assert max(gains) > 1e-3


def test_without_time_the_given_bounds_come_back() -> None:
    network = network_of("cnn")
    domain = ball(network, "linf", 0.2)
    linear = linear_bounds(network, domain)
    for bounds in (lp_bounds(network, domain, linear, seconds=0.0), linear):
        assert_contains(bounds, network.values(points_in(domain, 200)))
    assert_inside(lp_bounds(network, domain, linear, seconds=0.0), linear)


def test_a_milp_that_times_out_still_gives_a_bound() -> None:
    network = network_of("cnn")
    domain = ball(network, "linf", 0.2)
    linear = linear_bounds(network, domain)
    bounds = milp_bounds(network, domain, linear, seconds_each=1e-4)
    assert_contains(bounds, network.values(points_in(domain, POINTS)))
    assert_inside(bounds, linear)


@pytest.mark.parametrize("norm", RADII)
def test_maximise_is_above_any_combination_of_scores(norm: str) -> None:
    network = network_of("residual", 2)
    domain = ball(network, norm, RADII[norm])
    bounds = linear_bounds(network, domain)
    rows = np.random.default_rng(0).normal(size=(5, 3))
    most = maximise(network, domain, bounds, len(network.nodes), rows)
    scores = network.forward(points_in(domain, POINTS))
    assert ((scores @ rows.T) <= most + ROUNDING).all()


@pytest.mark.parametrize("seed", range(4))
def test_maximise_is_no_worse_than_what_intervals_give_the_last_layer(seed: int) -> None:
    network = network_of("dnn", seed)
    domain = ball(network, "linf", 0.5)
    known = interval_bounds(network, domain)
    rows = np.random.default_rng(seed).normal(size=(20, network.classes))
    (low,), (high,) = known.of((len(network.nodes) - 1,))
    last = rows @ network.nodes[-1].layer.weights[0]
    by_intervals = (
        last @ (low + high) / 2 + np.abs(last) @ (high - low) / 2 + rows @ network.nodes[-1].layer.bias
    )
    most = maximise(network, domain, known, len(network.nodes), rows)
    assert (most <= by_intervals + ROUNDING).all()


@pytest.mark.parametrize(
    "rows", [np.array([[-1.0]]), csr_array([[-1.0]]), np.array([[-2.0]]), np.array([[0.0]])]
)
def test_what_overflows_in_a_box_bounds_nothing_falsely(rows: Matrix) -> None:
    huge = np.array([1.7e308])
    with np.errstate(over="ignore"):
        assert (most_in_box(rows, huge, huge) >= rows @ huge).all()
    assert np.isposinf(most_in_box(np.array([[-1.0]]), np.array([-np.inf]), np.array([np.inf]))).all()


@pytest.mark.parametrize("norm", NORMS)
def test_without_time_linear_bounds_are_interval_bounds(norm: str) -> None:
    network = network_of("residual")
    domain = ball(network, norm, RADII[norm])
    late, interval = linear_bounds(network, domain, -math.inf), interval_bounds(network, domain)
    for one, other in zip((*late.lower, *late.upper), (*interval.lower, *interval.upper), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", MODELS)
def test_small_chunks_give_the_same_bounds(name: str) -> None:
    network = network_of(name)
    domain = ball(network, "l1", RADII["l1"])
    whole = linear_bounds(network, domain)
    pieces = linear_bounds(network, domain, settings=LinearBounds(numbers_at_once=1))
    for one, other in zip((*whole.lower, *whole.upper), (*pieces.lower, *pieces.upper), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("until", [-math.inf, math.inf])
def test_no_random_image_within_the_certified_radius_reaches_the_goal(norm: str, until: float) -> None:
    network = network_of("dnn", seed=3)
    domain = ball(network, norm, math.inf)
    label = int(network.forward(domain.centre[None])[0].argmax())
    goal = Question(domain.centre, label, network.classes, norm=norm).goal()
    told: list[float] = []
    radius = certified_radius(network, domain.within(5.0), goal, until, on_radius=told.append)
    assert radius == max(told, default=0.0)
    assert (radius > 0) == (until > 0)
    rows = np.random.default_rng(0).normal(size=(POINTS, network.input_size))
    points = domain.centre + domain.within(radius).furthest(rows)
    assert (goal.slack(network.forward(points)) < 0).all()


@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.05), ("l1", 1.0), ("l2", 0.3)])
def test_sparse_rows_give_the_bounds_of_dense_ones(norm: str, radius: float) -> None:
    torch.manual_seed(3)
    layers = (nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.MaxPool2d(2), nn.ReLU())
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    network = read(model, (1, 12, 12)).network
    image = np.random.default_rng(3).random(144)
    domain = Question(image, 0, 3, norm=norm, radius=radius).domain()
    sparse, dense = (
        linear_bounds(network, domain, settings=LinearBounds(sparse_share=share)) for share in (1.0, 0.0)
    )
    for one, other in zip((*sparse.lower, *sparse.upper), (*dense.lower, *dense.upper), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
