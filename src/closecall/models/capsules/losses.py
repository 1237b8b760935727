"""What capsules are trained to do."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

PRESENT, ABSENT, ABSENT_WEIGHT = 0.9, 0.1, 0.5


def presence(labels: Tensor, classes: int) -> Tensor:
    """Give T (batch, classes), 1 where a class is there, from one label (batch,) or several (batch, n)."""
    together = labels if labels.ndim == 2 else labels.unsqueeze(1)
    return F.one_hot(together, classes).amax(1).float()


def margin_loss(lengths: Tensor, present: Tensor) -> Tensor:
    """Give the mean over images of Σ_k T_k max(0, 0.9 − ‖v_k‖)² + 0.5 (1 − T_k) max(0, ‖v_k‖ − 0.1)².

    T may have several ones: several things can be there at once.
    """
    missed = present * (PRESENT - lengths).clamp_min(0).square()
    imagined = (1 - present) * (lengths - ABSENT).clamp_min(0).square()
    return (missed + ABSENT_WEIGHT * imagined).sum(1).mean()


def reconstruction_error(decoded: Tensor, images: Tensor) -> Tensor:
    """Give the mean over images of the squared error summed over pixels."""
    return (decoded - images).square().sum() / len(images)


def spread_loss(activations: Tensor, present: Tensor, margin: float) -> Tensor:
    """Give the mean over images of Σ_k (1 − T_k) max(0, margin − (a_t − a_k))², a_t the true class's."""
    true = torch.where(present.bool(), activations, torch.inf).amin(1, keepdim=True)
    return ((1 - present) * (margin - (true - activations)).clamp_min(0).square()).sum(1).mean()
