"""Matrix capsules with EM routing, after Hinton, Sabour and Frosst (2018): 4×4 poses and activations."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

POSE = 4
LEAST_VARIANCE = 1e-4
LAST_TEMPERATURE = 2.0

Capsules = tuple[Tensor, Tensor]  # poses (B, types, H, W, 16), activations (B, types, H, W)


def em_routing(
    votes: Tensor,
    activations: Tensor,
    costs: tuple[Tensor, Tensor],
    iterations: int = 3,
    *,
    all_gradients: bool = False,
) -> tuple[Tensor, Tensor]:
    """Fit one Gaussian per parent to the votes (N, parents, children, 16) of active children (N, children).

    M: r_ij = R_ij a_i;  μ_j = Σ_i r_ij V_ij / Σ_i r_ij;  σ_j² likewise of (V_ij − μ_j)²;
       cost_j = Σ_h (β_u + ln σ_jh) Σ_i r_ij;  a_j = sigmoid(λ (β_a − cost_j)),  λ = 2 · iteration/iterations
    E: R_ij ∝ a_j N(V_ij; μ_j, σ_j²) over parents.

    The publication leaves λ open. Costs grow with the number of children, so they are brought to mean 0 and
    variance 1 over the parents, and λ means the same in every layer. Gives μ (N, parents, 16) and
    a (N, parents). Gradients flow through the last M step only, unless `all_gradients`.
    """
    squares = votes.square()
    assigned = torch.full_like(votes[..., 0], 1 / votes.shape[1])
    for iteration in range(iterations):
        last = iteration == iterations - 1
        with torch.set_grad_enabled(torch.is_grad_enabled() and (last or all_gradients)):
            temperature = LAST_TEMPERATURE * (iteration + 1) / iterations
            weights = assigned * activations.unsqueeze(1)  # (N, parents, children)
            means, variances, present = _maximise(votes, squares, weights, costs, temperature)
            if not last:
                assigned = _expect(votes, squares, means, variances, present)
    return means, present


def _maximise(
    votes: Tensor, squares: Tensor, weights: Tensor, costs: tuple[Tensor, Tensor], temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    use_cost, activation_cost = costs
    total = weights.sum(2)  # (N, parents)
    shares = weights / total.unsqueeze(2).clamp_min(1e-8)
    means = torch.einsum("nji,njih->njh", shares, votes)
    # E[V²] − E[V]² needs no tensor of differences, which would be as large as the votes.
    spread = torch.einsum("nji,njih->njh", shares, squares) - means.square()
    variances = spread.clamp_min(0) + LEAST_VARIANCE
    cost = (use_cost.unsqueeze(1) + variances.log() / 2).sum(2) * total
    centred = cost - cost.mean(1, keepdim=True)
    cost = centred / (centred.square().mean(1, keepdim=True) + LEAST_VARIANCE).sqrt()
    return means, variances, torch.sigmoid(temperature * (activation_cost - cost))


def _expect(votes: Tensor, squares: Tensor, means: Tensor, variances: Tensor, present: Tensor) -> Tensor:
    precision = 1 / (2 * variances)
    distance = torch.einsum("njih,njh->nji", squares, precision)
    distance = distance - torch.einsum("njih,njh->nji", votes, 2 * means * precision)
    height = present.clamp_min(1e-8).log() - (2 * math.pi * variances).log().sum(2) / 2
    height = height - (means.square() * precision).sum(2)
    return (height.unsqueeze(2) - distance).softmax(1)


class MatrixPrimaryCapsules(nn.Module):
    """A 1×1 convolution to poses and activations at every position."""

    def __init__(self, maps: int, types: int) -> None:
        super().__init__()
        self.types = types
        self.convolution = nn.Conv2d(maps, types * (POSE * POSE + 1), 1)

    def forward(self, maps: Tensor) -> Capsules:
        """Give poses (B, types, H, W, 16) and activations (B, types, H, W)."""
        both = self.convolution(maps)
        batch, _, height, width = both.shape
        poses, activations = both[:, : self.types * POSE * POSE], both[:, self.types * POSE * POSE :]
        typed = poses.reshape(batch, self.types, POSE * POSE, height, width)
        return typed.permute(0, 1, 3, 4, 2), torch.sigmoid(activations)


class _Voters(nn.Module):
    """Children of `count` kinds vote for parents by 4×4 matrices: V_ij = M_i W_ij."""

    def __init__(self, count: int, parents: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(POSE).repeat(count, parents, 1, 1))
        self.use_cost = nn.Parameter(torch.zeros(parents))
        self.activation_cost = nn.Parameter(torch.zeros(parents))
        with torch.no_grad():
            self.weight.add_(0.3 * torch.randn_like(self.weight))

    def votes(self, poses: Tensor) -> Tensor:
        """Give the votes (N, parents, count, 16) of poses (N, count, 16)."""
        matrices = poses.reshape(*poses.shape[:2], POSE, POSE)
        return torch.einsum("niab,ijbc->njiac", matrices, self.weight).flatten(3)

    @property
    def costs(self) -> tuple[Tensor, Tensor]:
        return self.use_cost, self.activation_cost


class ConvolutionalCapsules(nn.Module):
    """Every window of child capsules is routed to `types` parents with matrices shared by all windows.

    A child that several windows see is assigned in each of them on its own.
    """

    def __init__(self, children: int, types: int, size: int, stride: int) -> None:
        super().__init__()
        self.types, self.size, self.stride = types, size, stride
        self.voters = _Voters(children * size * size, types)

    def forward(self, capsules: Capsules, iterations: int, all_gradients: bool) -> Capsules:
        """Give the poses and activations of all windows."""
        poses, activations = capsules
        batch, children, height, width, entries = poses.shape
        rows, columns = ((side - self.size) // self.stride + 1 for side in (height, width))
        maps = poses.permute(0, 1, 4, 2, 3).reshape(batch, children * entries, height, width)
        seen = self._windows(maps).reshape(batch, children, entries, self.size**2, rows * columns)
        seen = seen.permute(0, 4, 1, 3, 2).reshape(batch * rows * columns, -1, entries)
        active = self._windows(activations).transpose(1, 2).reshape(batch * rows * columns, -1)
        votes = self.voters.votes(seen)
        means, present = em_routing(votes, active, self.voters.costs, iterations, all_gradients=all_gradients)
        grid = (batch, rows, columns, self.types)
        return means.reshape(*grid, entries).permute(0, 3, 1, 2, 4), present.reshape(grid).permute(0, 3, 1, 2)

    def _windows(self, maps: Tensor) -> Tensor:
        return F.unfold(maps, self.size, stride=self.stride)  # (B, maps · size², windows)


class MatrixClassCapsules(nn.Module):
    """One capsule per class; all positions of a type share matrices and add to their votes where they are."""

    positions: Tensor

    def __init__(self, children: int, size: tuple[int, int], classes: int) -> None:
        super().__init__()
        self.voters = _Voters(children, classes)
        rows, columns = (torch.arange(side) / side + 0.5 / side for side in size)
        positions = torch.zeros(size[0], size[1], POSE * POSE)
        positions[..., POSE - 1] = rows.unsqueeze(1)
        positions[..., 2 * POSE - 1] = columns
        self.register_buffer("positions", positions.flatten(0, 1), persistent=False)

    def forward(self, capsules: Capsules, iterations: int, all_gradients: bool) -> tuple[Tensor, Tensor]:
        """Give poses (batch, classes, 16) and activations (batch, classes)."""
        poses, activations = capsules
        batch, children, height, width, entries = poses.shape
        places = height * width
        seen = poses.permute(0, 2, 3, 1, 4).reshape(batch * places, children, entries)
        votes = self.voters.votes(seen).reshape(batch, places, -1, children, entries)
        votes = votes.permute(0, 2, 3, 1, 4) + self.positions  # (B, classes, children, places, 16)
        active = activations.flatten(2).flatten(1)  # (B, children · places)
        return em_routing(
            votes.flatten(2, 3), active, self.voters.costs, iterations, all_gradients=all_gradients
        )
