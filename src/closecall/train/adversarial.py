"""Training on images that were moved against the model, by one step along its gradient from a random place.

After Wong, Rice and Kolter, Fast is better than free: Revisiting adversarial training (2020).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

DEFAULT_RAMP = 0.5
STEP = 1.25  # of the radius, as in the paper: from a random place, one radius would not reach the far side


def moved_against(images: Tensor, radius: float, loss: Callable[[Tensor], Tensor], seed: int) -> Tensor:
    """Give images of [0, 1] within the radius in L∞ of the given ones, where the loss is larger.

    The same seed starts at the same places, so that a training that is resumed goes on as it would have.
    """
    random = torch.rand(images.shape, generator=torch.Generator().manual_seed(seed), dtype=images.dtype)
    with torch.enable_grad():
        moved = (images + radius * (2 * random - 1)).clamp(0, 1).requires_grad_(True)
        (slopes,) = torch.autograd.grad(loss(moved), moved)
    stepped = moved.detach() + STEP * radius * slopes.sign()
    return stepped.clamp(images - radius, images + radius).clamp(0, 1)
