"""Box ∩ ball: its support, its box and its points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closecall.question.domain import Domain
from closecall.question.norms import NORMS

SIZE = 6


def domain_of(norm: str, radius: float, seed: int) -> Domain:
    generator = np.random.default_rng(seed)
    lower, upper = -generator.random(SIZE), generator.random(SIZE)
    return Domain(lower + generator.random(SIZE) * (upper - lower), lower, upper, NORMS[norm], radius)


def members(domain: Domain, count: int, seed: int) -> np.ndarray:
    """Random points of the box, kept when they are in the ball; L0 moves a few pixels only."""
    generator = np.random.default_rng(seed)
    points = generator.uniform(domain.lower, domain.upper, (count, SIZE))
    if domain.norm.name == "l0":
        points = np.where(generator.random((count, SIZE)) < 0.4, points, domain.centre)
    else:
        points = domain.centre + generator.random((count, 1)) ** 2 * (points - domain.centre)
    return points[domain.norm.distance(points - domain.centre) <= domain.radius]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(NORMS)), st.floats(0.05, 4.0), st.integers(0, 10**6))
def test_the_maximum_is_above_every_member_and_attained(norm: str, radius: float, seed: int) -> None:
    domain = domain_of(norm, radius, seed)
    rows = np.random.default_rng(seed + 1).normal(size=(4, SIZE))
    most = domain.maximum(rows)
    points = members(domain, 500, seed)
    assert (points @ rows.T <= most).all()
    shifts = domain.furthest(rows)
    assert (domain.norm.distance(shifts) <= radius + 1e-9).all()
    np.testing.assert_allclose(((domain.centre + shifts) * rows).sum(axis=1), most, atol=1e-9)
    assert (((domain.centre + shifts) * rows).sum(axis=1) <= most).all()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(NORMS)), st.floats(0.05, 4.0), st.integers(0, 10**6))
def test_the_box_is_the_smallest_around_the_domain(norm: str, radius: float, seed: int) -> None:
    domain = domain_of(norm, radius, seed)
    low, high = domain.box()
    points = members(domain, 500, seed)
    assert (points >= low - 1e-12).all()
    assert (points <= high + 1e-12).all()
    each = np.eye(SIZE)
    if norm != "l0" or radius >= 1:
        np.testing.assert_allclose(domain.maximum(each), high, atol=1e-9)
        np.testing.assert_allclose(-domain.maximum(-each), low, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_shrinking_never_widens(norm: str) -> None:
    domain = domain_of(norm, 2.0, 0)
    assert domain.within(1.0).radius == 1.0
    assert domain.within(3.0).radius == 2.0
    assert domain.radius == 2.0


@pytest.mark.parametrize("norm", NORMS)
def test_the_distance_of_a_picture_is_that_of_its_flat_pixels(norm: str) -> None:
    domain = domain_of(norm, 2.0, 0)
    point = domain.centre + np.array([0.0, 0.25, 0.0, -0.5, 0.0, 0.0])
    expected = {"l1": 0.75, "l2": np.sqrt(0.3125), "linf": 0.5, "l0": 2.0}[norm]
    assert domain.distance(point) == pytest.approx(expected)
    assert domain.distance(point.reshape(1, 2, 3)) == pytest.approx(expected)


def test_clipping_stays_in_the_box_and_moves_nothing_inside() -> None:
    domain = domain_of("l1", 1.0, 3)
    points = np.random.default_rng(0).normal(size=(50, SIZE))
    clipped = domain.clip(points)
    assert (clipped >= domain.lower).all()
    assert (clipped <= domain.upper).all()
    inside = (points >= domain.lower) & (points <= domain.upper)
    np.testing.assert_array_equal(clipped[inside], points[inside])
