"""Dense networks, balls and bounds of units against the network itself at many points."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.case_rows import CaseRows
from closecall.search.crown.climbing import backward, forward
from closecall.search.crown.dense_network import TwoPrecisions, dense_network_of
from closecall.search.crown.intermediate_bounds import IntermediateBounds, intermediate_bounds, sums_of
from closecall.search.crown.tightening import Tightening
from closecall.settings import Crown, Pace

from .conftest import Vector, random_network, random_question

NORMS = ("l1", "l2", "linf", "l0")


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_dense_matrices_compute_what_the_network_does(seed: int, pooled: bool) -> None:
    network = random_network(seed, pooled=pooled)
    images = np.random.default_rng(seed).normal(size=(50, network.input_size))
    scores, active = forward(dense_network_of(network), torch.from_numpy(images))
    assert scores.numpy() == pytest.approx(network.forward(images), abs=1e-12)
    step = 1e-7 * np.random.default_rng(9).normal(size=images.shape)
    rows = torch.eye(3, dtype=torch.float64)[torch.zeros(50, dtype=torch.int64)]
    slopes = backward(dense_network_of(network), rows, active).numpy()
    change = (network.forward(images + step) - network.forward(images))[:, 0]
    assert change == pytest.approx((slopes * step).sum(axis=1), abs=1e-10)


@pytest.mark.parametrize("pixels", [12, 300])
@pytest.mark.parametrize("norm", NORMS)
def test_the_furthest_point_is_that_of_the_norm(norm: str, pixels: int) -> None:
    generator = np.random.default_rng(2)
    centre = generator.uniform(size=pixels)
    rows = generator.normal(size=(40, pixels))
    rows[:5, :6] = 0.0
    for radius in (0.0, 0.05, 0.7, 3.0, 30.0, np.inf):
        domain = Domain(centre, np.zeros(pixels), np.ones(pixels), norm_named(norm), radius)
        expected = (rows * domain.furthest(rows)).sum(axis=1)
        found = TorchBall.of(domain, torch.float64).furthest(torch.from_numpy(rows)).numpy()
        assert (rows * found).sum(axis=1) == pytest.approx(expected, abs=1e-12)
        for most in (
            domain.norm.most(rows, domain.down, domain.up, radius),
            TorchBall.of(domain, torch.float64).most(torch.from_numpy(rows)).numpy(),
        ):
            assert most == pytest.approx(expected, abs=1e-12)
            assert (most >= expected - 1e-15 * np.abs(rows).sum(axis=1)).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pooled", [False, True])
def test_bounds_hold_at_points_of_the_domain(pooled: bool, norm: str) -> None:
    """Without a case at all points; with one at all that reach it. Tightening must really tighten."""
    network = random_network(5, pooled=pooled)
    domain, goal = random_question(network, 5, norm, targeted=True)
    domain = domain.within(2.0 if norm in ("l0", "l1") else 0.5)
    networks = TwoPrecisions.of(dense_network_of(network))
    ball = TorchBall.of(domain, torch.float64)
    points = points_of(domain, 20_000)
    inputs = pre_activations(network, points)
    plain = intermediate_bounds(networks, ball, np.inf, Crown(unit_pace=Pace(5)))
    assert_hold(plain, inputs)
    sums = sums_of(networks.double, ball, plain)
    tight = Tightening(networks, sums).sweep(ball, plain, np.inf)
    assert_hold(tight, inputs)
    assert float((tight.upper - tight.lower).sum()) < float((plain.upper - plain.lower).sum())
    case = Tightening(networks, sums, CaseRows.of(goal).taken(0)).sweep(ball, tight, np.inf)
    reached = goal.slack(network.forward(points)) >= 0
    assert_hold(case, inputs[reached])


def points_of(domain: Domain, count: int) -> Vector:
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(count, len(domain.centre)))
    shifts = domain.furthest(rows) * (generator.uniform(size=(count, 1)) ** 0.2)
    return np.asarray(domain.centre + shifts)


def pre_activations(network: object, points: Vector) -> torch.Tensor:
    dense = dense_network_of(network)  # type: ignore[arg-type]
    values = [torch.from_numpy(points)]
    for layer in range(1, dense.depth + 1):
        values.append(dense.apply(layer, values).clamp(min=0))
    return torch.cat([dense.apply(layer, values) for layer in range(1, dense.depth + 1)], dim=1)


def assert_hold(bounds: IntermediateBounds, inputs: torch.Tensor) -> None:
    assert bool((inputs >= bounds.lower - 1e-12).all())
    assert bool((inputs <= bounds.upper + 1e-12).all())
