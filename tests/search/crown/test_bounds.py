"""Blocks, balls and bounds of units against the network itself at many points."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.search.crown.ascent import Pace
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import blocks_of
from closecall.search.crown.gradient import backward, forward
from closecall.search.crown.layer_bounds import UnitBounds, sums_of, unit_bounds
from closecall.search.crown.tightening import Tightening
from closecall.search.crown.witnesses import goal_tensors

from .conftest import Vector, random_network, random_question

NORMS = ("l1", "l2", "linf", "l0")


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_blocks_compute_what_the_network_does(seed: int, pooled: bool) -> None:
    network = random_network(seed, pooled=pooled)
    images = np.random.default_rng(seed).normal(size=(50, network.input_size))
    scores, active = forward(blocks_of(network), torch.from_numpy(images))
    assert scores.numpy() == pytest.approx(network.forward(images), abs=1e-12)
    step = 1e-7 * np.random.default_rng(9).normal(size=images.shape)
    rows = torch.eye(3, dtype=torch.float64)[torch.zeros(50, dtype=torch.int64)]
    slopes = backward(blocks_of(network), rows, active).numpy()
    change = (network.forward(images + step) - network.forward(images))[:, 0]
    assert change == pytest.approx((slopes * step).sum(axis=1), abs=1e-10)


@pytest.mark.parametrize("norm", NORMS)
def test_the_furthest_point_is_that_of_the_norm(norm: str) -> None:
    generator = np.random.default_rng(2)
    centre = generator.uniform(size=12)
    rows = generator.normal(size=(40, 12))
    rows[:5, :6] = 0.0
    for radius in (0.0, 0.05, 0.7, 3.0, np.inf):
        domain = Domain(centre, np.zeros(12), np.ones(12), norm_named(norm), radius)
        expected = (rows * domain.furthest(rows)).sum(axis=1)
        found = Ball.of(domain, torch.float64).furthest(torch.from_numpy(rows)).numpy()
        assert (rows * found).sum(axis=1) == pytest.approx(expected, abs=1e-12)
        for most in (
            domain.norm.most(rows, domain.down, domain.up, radius),
            Ball.of(domain, torch.float64).most(torch.from_numpy(rows)).numpy(),
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
    wide, ball = blocks_of(network), Ball.of(domain, torch.float64)
    both = (wide, wide.to(torch.float32))
    points = points_of(domain, 20_000)
    inputs = pre_activations(network, points)
    plain = unit_bounds(*both, ball, Pace(5), np.inf)
    assert_hold(plain, inputs)
    sums = sums_of(wide, ball, plain)
    tight = Tightening(both, sums).sweep(ball, plain, np.inf)
    assert_hold(tight, inputs)
    assert float((tight.upper - tight.lower).sum()) < float((plain.upper - plain.lower).sum())
    matrix, threshold = goal_tensors(goal)
    case = Tightening(both, sums, (matrix[0], threshold[0])).sweep(ball, tight, np.inf)
    reached = goal.slack(network.forward(points)) >= 0
    assert_hold(case, inputs[reached])


def points_of(domain: Domain, count: int) -> Vector:
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(count, len(domain.centre)))
    shifts = domain.furthest(rows) * (generator.uniform(size=(count, 1)) ** 0.2)
    return np.asarray(domain.centre + shifts)


def pre_activations(network: object, points: Vector) -> torch.Tensor:
    blocks = blocks_of(network)  # type: ignore[arg-type]
    values = [torch.from_numpy(points)]
    for layer in range(1, blocks.depth + 1):
        values.append(blocks.apply(layer, values).clamp(min=0))
    return torch.cat([blocks.apply(layer, values) for layer in range(1, blocks.depth + 1)], dim=1)


def assert_hold(bounds: UnitBounds, inputs: torch.Tensor) -> None:
    assert bool((inputs >= bounds.lower - 1e-12).all())
    assert bool((inputs <= bounds.upper + 1e-12).all())
