"""EM routing against plain loops, and the layers of matrix capsules against their definitions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from closecall.models.capsules.matrix import (
    LEAST_VARIANCE,
    ConvolutionalCapsules,
    MatrixClassCapsules,
    MatrixPrimaryCapsules,
    em_routing,
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def routed_by_loops(
    votes: Tensor, active: Tensor, costs: tuple[Tensor, Tensor], iterations: int
) -> tuple[Tensor, Tensor]:
    """One image: votes (parents, children, entries), active (children,)."""
    parents, children, entries = votes.shape
    assigned = torch.full((parents, children), 1 / parents, dtype=votes.dtype)
    means, present = torch.zeros(parents, entries, dtype=votes.dtype), torch.zeros(parents, dtype=votes.dtype)
    for iteration in range(iterations):
        temperature = 2 * (iteration + 1) / iterations
        variances, cost = torch.zeros_like(means), torch.zeros_like(present)
        for j in range(parents):
            weights = assigned[j] * active
            means[j] = sum(weights[i] * votes[j, i] for i in range(children)) / weights.sum()
            spread = sum(weights[i] * (votes[j, i] - means[j]) ** 2 for i in range(children))
            variances[j] = spread / weights.sum() + LEAST_VARIANCE
            for deviation in variances[j].sqrt():
                cost[j] += (costs[0][j] + math.log(deviation)) * weights.sum()
        cost = (cost - cost.mean()) / (cost.var(correction=0) + LEAST_VARIANCE).sqrt()
        likelihood = torch.zeros_like(assigned)
        for j in range(parents):
            present[j] = 1 / (1 + torch.exp(-temperature * (costs[1][j] - cost[j])))
            gaussian = torch.distributions.Normal(means[j], variances[j].sqrt())
            for i in range(children):
                likelihood[j, i] = present[j] * gaussian.log_prob(votes[j, i]).sum().exp()
        assigned = likelihood / likelihood.sum(0)
    return means, present


def test_em_routing_is_the_published_algorithm() -> None:
    votes, active = random(2, 3, 5, 16), torch.sigmoid(random(2, 5, seed=1))
    costs = random(3, seed=2), random(3, seed=3)
    for iterations in (1, 2, 3):
        means, present = em_routing(votes, active, costs, iterations)
        for image in range(2):
            expected = routed_by_loops(votes[image], active[image], costs, iterations)
            torch.testing.assert_close(means[image], expected[0], rtol=1e-8, atol=1e-8)
            torch.testing.assert_close(present[image], expected[1], rtol=1e-8, atol=1e-8)


def test_votes_that_agree_make_their_parent_more_active_than_votes_that_do_not() -> None:
    votes = random(1, 2, 6, 16)
    votes[0, 1] = votes[0, 1, :1] + 0.01 * votes[0, 1]
    costs = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    _, present = em_routing(votes, torch.ones(1, 6, dtype=torch.float64), costs, 3)
    assert present[0, 1] > present[0, 0]


def test_gradients_of_em_routing() -> None:
    votes = random(1, 2, 4, 16).requires_grad_()
    active = torch.sigmoid(random(1, 4, seed=1)).requires_grad_()
    costs = random(2, seed=2).requires_grad_(), random(2, seed=3).requires_grad_()

    def routed(*given: Tensor) -> tuple[Tensor, Tensor]:
        return em_routing(given[0], given[1], (given[2], given[3]), 2, all_gradients=True)

    assert torch.autograd.gradcheck(routed, (votes, active, *costs), rtol=1e-2, atol=1e-4)
    (last,) = torch.autograd.grad(em_routing(votes, active, costs, 2)[0].sum(), votes)
    (everything,) = torch.autograd.grad(routed(votes, active, *costs)[0].sum(), votes)
    assert (last - everything).abs().max() > 1e-6


def test_a_primary_pose_is_sixteen_maps_at_one_position() -> None:
    torch.manual_seed(0)
    layer = MatrixPrimaryCapsules(3, types=2)
    maps = torch.rand(2, 3, 4, 5)
    poses, activations = layer(maps)
    convolved = layer.convolution(maps)
    assert poses.shape == (2, 2, 4, 5, 16)
    torch.testing.assert_close(poses[:, 1, 2, 3], convolved[:, 16:32, 2, 3])
    torch.testing.assert_close(activations[:, 1], convolved[:, 33].sigmoid())


def test_a_window_of_capsules_is_routed_on_its_own() -> None:
    torch.manual_seed(0)
    layer = ConvolutionalCapsules(children=2, types=3, size=3, stride=2)
    poses, activations = torch.randn(2, 2, 5, 7, 16), torch.rand(2, 2, 5, 7)
    means, present = layer((poses, activations), 2, False)
    assert means.shape == (2, 3, 2, 3, 16)
    row, column = 1, 2
    window = poses[:, :, 2:5, 4:7].reshape(2, 18, 4, 4)  # children by type, then row, then column
    votes = torch.einsum("niab,ijbc->njiac", window, layer.voters.weight).reshape(2, 3, 18, 16)
    expected = em_routing(votes, activations[:, :, 2:5, 4:7].reshape(2, 18), layer.voters.costs, 2)
    torch.testing.assert_close(means[:, :, row, column], expected[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(present[:, :, row, column], expected[1], rtol=1e-4, atol=1e-5)


def test_class_capsules_add_where_a_child_is() -> None:
    torch.manual_seed(0)
    layer = MatrixClassCapsules(children=2, size=(2, 4), classes=3)
    poses, activations = torch.randn(1, 2, 2, 4, 16), torch.rand(1, 2, 2, 4)
    means, present = layer((poses, activations), 1, False)
    votes = torch.einsum("ntyxab,tjbc->njtyxac", poses.reshape(1, 2, 2, 4, 4, 4), layer.voters.weight)
    for y in range(2):
        for x in range(4):
            votes[:, :, :, y, x, 0, 3] += (y + 0.5) / 2
            votes[:, :, :, y, x, 1, 3] += (x + 0.5) / 4
    expected = em_routing(votes.reshape(1, 3, 16, 16), activations.reshape(1, 16), layer.voters.costs, 1)
    torch.testing.assert_close(means, expected[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(present, expected[1], rtol=1e-4, atol=1e-5)
