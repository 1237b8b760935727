"""Climbs towards witnesses, many starts at once in float32; what is found is checked in float64 elsewhere."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from closecall.clock import out_of_time
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.case_rows import CaseRows
from closecall.search.crown.dense_network import DenseNetwork
from closecall.settings import DEFAULT, Climbs


def forward(network: DenseNetwork, images: Tensor) -> tuple[Tensor, Tensor]:
    """Scores, and which units are active."""
    values = [images]
    active = torch.zeros(len(images), network.units, dtype=torch.bool)
    for layer in range(1, network.depth + 1):
        a = network.apply(layer, values)
        active[:, network.spans[layer]] = a > 0
        values.append(a.clamp(min=0))
    return network.apply(network.depth + 1, values), active


def backward(network: DenseNetwork, rows: Tensor, active: Tensor) -> Tensor:
    """The slope of rows·scores with respect to the images."""
    pending: dict[int, Tensor] = {}
    for layer in range(network.depth + 1, 0, -1):
        if layer <= network.depth:
            if layer not in pending:
                continue
            rows = pending.pop(layer) * active[:, network.spans[layer]]
        for source, weight in network.layer(layer).weights:
            part = rows @ weight
            pending[source] = pending[source] + part if source in pending else part
    return pending.get(0, rows.new_zeros(len(rows), network.pixels))


def slack_and_slopes(network: DenseNetwork, cases: CaseRows, images: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest excess over the rows (batch, rows, classes) of each image's own case, and its slope."""
    scores, active = forward(network, images)
    excess = torch.einsum("bn,brn->br", scores, cases.matrix) - cases.threshold
    slack, worst = excess.min(dim=1)
    rows = cases.matrix[torch.arange(len(images)), worst]
    return slack, backward(network, rows, active)


def climbed(
    network: DenseNetwork,
    ball: TorchBall,
    cases: CaseRows,
    images: Tensor,
    steps: int,
    until: float = math.inf,
    settings: Climbs = DEFAULT.crown.climbs,
) -> tuple[Tensor, Tensor]:
    """The best image on each way uphill, and its slack.

    In L∞ by signs of the gradient with momentum, clipped to the ball; else by Frank-Wolfe steps.
    """
    best, best_slack = images, torch.full((len(images),), -torch.inf, dtype=images.dtype)
    low, high = ball.box()
    velocity = torch.zeros_like(images)
    for step in range(steps + 1):
        slack, slopes = slack_and_slopes(network, cases, images)
        better = slack > best_slack
        best = torch.where(better[:, None], images, best)
        best_slack = torch.where(better, slack, best_slack)
        if step == steps or bool((best_slack > 0).any()) or out_of_time(until):
            break
        if ball.norm == "linf":
            direction = slopes / slopes.abs().mean(1, keepdim=True).clamp(min=1e-12)
            velocity = settings.momentum * velocity + direction
            length = (high - low) * (settings.first_step * 0.5 ** (settings.halvings * step / steps))
            images = (images + length * torch.sign(velocity)).clamp(low, high)
        else:
            target = ball.centre + ball.furthest(slopes)
            share = 1.0 if ball.norm == "l0" else 2.0 / (step + 3.0)
            images = images + share * (target - images)
    return best, best_slack
