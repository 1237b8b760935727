"""Squash and routing against plain loops, hand-computed values and torch's numerical gradients."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from closecall.models.capsules.routing import attention_routing, dynamic_routing, squash, steep_squash


def some_votes(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("length", "squashed"), [(0.5, 0.2), (1.0, 0.5), (2.0, 0.8), (3.0, 0.9), (7.0, 0.98)]
)
def test_squashed_lengths_by_hand(length: float, squashed: float) -> None:
    direction = torch.tensor([2 / 3, -1 / 3, 2 / 3], dtype=torch.float64)
    torch.testing.assert_close(squash(length * direction), squashed * direction)


@pytest.mark.parametrize("length", [1e-4, 0.5, 1.0, 3.0])
def test_steep_squash_by_hand(length: float) -> None:
    direction = torch.tensor([0.6, 0.8], dtype=torch.float64)
    torch.testing.assert_close(steep_squash(length * direction), (1 - math.exp(-length)) * direction)


@pytest.mark.parametrize("function", [squash, steep_squash])
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-12, 1e-6])
def test_squash_and_its_gradient_are_finite_near_zero(function: type[squash], size: float) -> None:
    vectors = torch.full((2, 3), size, requires_grad=True)
    value = function(vectors)
    (gradient,) = torch.autograd.grad(value.sum(), vectors)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    assert value.abs().max() <= size
    if function is squash:
        assert gradient.abs().max() <= 4 * size  # ‖s‖·s has the gradient 0 at 0


def test_gradients_of_squash() -> None:
    vectors = some_votes(4, 5).requires_grad_()
    assert torch.autograd.gradcheck(squash, (vectors,))
    assert torch.autograd.gradcheck(steep_squash, (vectors,))


def routed_by_loops(votes: Tensor, iterations: int) -> tuple[Tensor, list[Tensor]]:
    """The algorithm line by line, one image, one child and one parent at a time."""
    batch, parents, children, dimensions = votes.shape
    result, traces = torch.zeros(batch, parents, dimensions, dtype=votes.dtype), []
    for image in range(batch):
        logits = [[0.0] * parents for _ in range(children)]
        trace = torch.zeros(iterations, parents, children, dtype=votes.dtype)
        for iteration in range(iterations):
            for i in range(children):
                exponentials = [math.exp(value) for value in logits[i]]
                for j in range(parents):
                    trace[iteration, j, i] = exponentials[j] / sum(exponentials)
            for j in range(parents):
                s = sum(float(trace[iteration, j, i]) * votes[image, j, i] for i in range(children))
                squared = float((s**2).sum())
                result[image, j] = squared / (1 + squared) * s / math.sqrt(squared)
            for i in range(children):
                for j in range(parents):
                    logits[i][j] += float(votes[image, j, i] @ result[image, j])
        traces.append(trace)
    return result, traces


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4)),
    st.integers(1, 4),
    st.integers(0, 10**6),
)
def test_routing_is_the_published_algorithm(
    shape: tuple[int, int, int, int], iterations: int, seed: int
) -> None:
    votes = some_votes(*shape, seed=seed)
    trace: list[Tensor] = []
    parents = dynamic_routing(votes, iterations, trace=trace)
    expected, couplings = routed_by_loops(votes, iterations)
    torch.testing.assert_close(parents, expected)
    torch.testing.assert_close(torch.stack(trace, dim=1), torch.stack(couplings))


def test_a_childs_couplings_sum_to_one_over_parents() -> None:
    trace: list[Tensor] = []
    dynamic_routing(3 * some_votes(2, 4, 7, 5), 3, trace=trace)
    for couplings in trace:  # (batch, parents, children)
        torch.testing.assert_close(couplings.sum(1), torch.ones(2, 7, dtype=torch.float64))
    assert not torch.allclose(trace[-1].sum(2), torch.ones(2, 4, dtype=torch.float64))


def test_only_the_last_iteration_carries_gradient() -> None:
    votes = some_votes(2, 3, 6, 4).requires_grad_()
    trace: list[Tensor] = []
    weights = some_votes(2, 3, 4, seed=1)
    (gradient,) = torch.autograd.grad((dynamic_routing(votes, 3, trace=trace) * weights).sum(), votes)
    fixed = squash(torch.einsum("bji,bjid->bjd", trace[-1].detach(), votes))
    (expected,) = torch.autograd.grad((fixed * weights).sum(), votes)
    torch.testing.assert_close(gradient, expected)


def test_all_gradients_are_those_of_the_whole_algorithm() -> None:
    votes = some_votes(1, 3, 4, 2).requires_grad_()
    weights = some_votes(1, 3, 2, seed=1)
    assert torch.autograd.gradcheck(lambda v: dynamic_routing(v, 3, all_gradients=True), (votes,))
    gradients = [
        torch.autograd.grad((dynamic_routing(votes, 3, all_gradients=flows) * weights).sum(), votes)[0]
        for flows in (False, True)
    ]
    assert (gradients[0] - gradients[1]).abs().max() > 1e-3


def test_the_triangle_and_the_rectangle_choose_the_boat() -> None:
    """Two parts vote for a house and a boat; they agree on how the boat lies, so the boat wins.

    A triangle above a rectangle is a house; a boat is a rectangle below a triangular sail. Poses are angles
    written as unit vectors. Both parts see the boat at 20°; for the house, they see it at 20° and at 200°.
    """

    def pose(degrees: float) -> list[float]:
        return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]

    house, boat = [pose(20), pose(200)], [pose(20), pose(20)]
    votes = torch.tensor([[house, boat]], dtype=torch.float64)  # (1, parents, children, 2)
    trace: list[Tensor] = []
    parents = dynamic_routing(votes, 3, trace=trace)
    lengths = parents.norm(dim=2)[0]
    # Iteration 1: c = 1/2, the house's votes cancel to s = 0, the boat's add up to ‖s‖ = 1 and ‖v‖ = 1/2.
    # Iteration 2: b = (0, 1/2), c = e^½/(1 + e^½) for the boat, so ‖s‖ = 2c; and once more.
    first = 1 / (1 + math.exp(-0.5))
    length = (2 * first) ** 2 / (1 + (2 * first) ** 2)
    second = 1 / (1 + math.exp(-0.5 - length))
    torch.testing.assert_close(trace[1][0, 1], torch.full((2,), first, dtype=torch.float64))
    torch.testing.assert_close(trace[2][0, 1], torch.full((2,), second, dtype=torch.float64))
    assert lengths[1] == pytest.approx((2 * second) ** 2 / (1 + (2 * second) ** 2))
    assert lengths[0] == pytest.approx(0)
    torch.testing.assert_close(parents[0, 1] / lengths[1], torch.tensor(pose(20), dtype=torch.float64))


def test_attention_routing_by_loops() -> None:
    votes, prior = some_votes(2, 3, 5, 4), some_votes(3, 5, seed=2)
    parents = attention_routing(votes, prior)
    for image in range(2):
        scores = torch.zeros(3, 5, dtype=torch.float64)
        for j in range(3):
            for i in range(5):
                pairs = [float(votes[image, j, i] @ votes[image, j, k]) for k in range(5)]
                scores[j, i] = sum(pairs) / math.sqrt(4)
        couplings = scores.exp() / scores.exp().sum(0) + prior
        for j in range(3):
            s = sum(couplings[j, i] * votes[image, j, i] for i in range(5))
            expected = (1 - torch.exp(-s.norm())) * s / s.norm()
            torch.testing.assert_close(parents[image, j], expected)
