"""Answers of the batched search against the exact MILP optimum."""

from __future__ import annotations

import numpy as np
import pytest

from closecall.batched import refute, shrink
from closecall.domain import Domain

from .conftest import random_network, random_question, true_distance

NORMS = ("l1", "l2", "linf")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_refute_agrees_with_the_exact_distance(seed: int, pooled: bool, norm: str) -> None:
    network = random_network(seed, pooled=pooled)
    domain, goal = random_question(network, seed, norm, targeted=seed % 2 == 0)
    truth = true_distance(network, domain, goal)
    far = truth if np.isfinite(truth) else 10.0
    for share in (0.3, 0.9, 0.999, 1.001, 1.2):
        outcome = refute(network, domain.within(share * far), goal, seconds=30)
        assert outcome.lower <= truth * (1 + 1e-6)
        if share * far < truth:
            assert outcome.status == "proven"
            assert outcome.lower == pytest.approx(share * far)
        else:
            assert outcome.status == "witness"
            assert_witness(network, domain.within(share * far), goal, outcome.witness)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_shrink_finds_the_nearest(seed: int, pooled: bool, norm: str) -> None:
    network = random_network(seed, pooled=pooled)
    domain, goal = random_question(network, seed, norm, targeted=seed % 2 == 0)
    truth = true_distance(network, domain, goal)
    found = refute(network, domain, goal, seconds=30)
    assert (found.status == "witness") == np.isfinite(truth)
    if found.witness is None:
        return
    nearest, outcome = shrink(network, domain, goal, found.witness, gap=1e-4, seconds=30)
    assert outcome.status == "proven"
    assert_witness(network, domain, goal, nearest)
    assert outcome.lower <= truth * (1 + 1e-6)
    assert domain.distance(nearest) * (1 - 1.0001e-4) <= outcome.lower
    assert domain.distance(nearest) == pytest.approx(truth, rel=2e-4)


def assert_witness(network, domain: Domain, goal, witness) -> None:
    assert witness is not None
    assert goal.slack(network.forward(witness[None]))[0] >= 0
    assert (witness >= domain.lower).all()
    assert (witness <= domain.upper).all()
    assert domain.distance(witness) <= domain.radius
