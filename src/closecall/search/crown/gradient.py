"""Witnesses by gradient, many starts at once in float32; what is found is checked in float64 elsewhere."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from closecall.clock import out_of_time
from closecall.search.crown.ball import Ball
from closecall.search.crown.blocks import Blocks


def forward(blocks: Blocks, images: Tensor) -> tuple[Tensor, Tensor]:
    """Scores, and which units are active."""
    values = [images]
    active = torch.zeros(len(images), blocks.units, dtype=torch.bool)
    for layer in range(1, blocks.depth + 1):
        a = blocks.apply(layer, values)
        active[:, blocks.spans[layer]] = a > 0
        values.append(a.clamp(min=0))
    return blocks.apply(blocks.depth + 1, values), active


def backward(blocks: Blocks, rows: Tensor, active: Tensor) -> Tensor:
    """The slope of rows·scores with respect to the images."""
    pending: dict[int, Tensor] = {}
    for layer in range(blocks.depth + 1, 0, -1):
        if layer <= blocks.depth:
            if layer not in pending:
                continue
            rows = pending.pop(layer) * active[:, blocks.spans[layer]]
        for source, weight in blocks.block(layer).weights:
            part = rows @ weight
            pending[source] = pending[source] + part if source in pending else part
    return pending.get(0, rows.new_zeros(len(rows), blocks.pixels))


def slack_and_slopes(
    blocks: Blocks, matrix: Tensor, threshold: Tensor, images: Tensor
) -> tuple[Tensor, Tensor]:
    """The smallest excess over the rows (batch, rows, classes) of each image's own case, and its slope."""
    scores, active = forward(blocks, images)
    excess = torch.einsum("bn,brn->br", scores, matrix) - threshold
    slack, worst = excess.min(dim=1)
    rows = matrix[torch.arange(len(images)), worst]
    return slack, backward(blocks, rows, active)


def ascend(
    blocks: Blocks,
    ball: Ball,
    rows: tuple[Tensor, Tensor],
    images: Tensor,
    steps: int,
    until: float = math.inf,
) -> tuple[Tensor, Tensor]:
    """The best image on each way uphill, and its slack; `rows` are those of the cases and their thresholds.

    In L∞ by signs of the gradient with momentum, clipped to the ball; else by Frank-Wolfe steps.
    """
    best, best_slack = images, torch.full((len(images),), -torch.inf, dtype=images.dtype)
    low, high = ball.box()
    velocity = torch.zeros_like(images)
    for step in range(steps + 1):
        slack, slopes = slack_and_slopes(blocks, *rows, images)
        better = slack > best_slack
        best = torch.where(better[:, None], images, best)
        best_slack = torch.where(better, slack, best_slack)
        if step == steps or bool((best_slack > 0).any()) or out_of_time(until):
            break
        if ball.norm == "linf":
            velocity = 0.75 * velocity + slopes / slopes.abs().mean(1, keepdim=True).clamp(min=1e-12)
            length = (high - low) * (0.25 * 0.5 ** (6 * step / steps))
            images = (images + length * torch.sign(velocity)).clamp(low, high)
        else:
            target = ball.centre + ball.furthest(slopes)
            share = 1.0 if ball.norm == "l0" else 2.0 / (step + 3.0)
            images = images + share * (target - images)
    return best, best_slack
