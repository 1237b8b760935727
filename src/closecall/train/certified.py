"""Training for proofs within a radius: the loss of the worst scores that intervals allow in the ball.

After Gowal, Dvijotham, Stanforth, Bunel, Qin, Uesato, Arandjelović, Mann and Kohli, On the Effectiveness of
Interval Bound Propagation for Training Verifiably Robust Models (2018).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from closecall.train.intervals import check_layers, layer_interval, layers_of, pixel_interval

DEFAULT_REACH = 1.1
DEFAULT_WEIGHT = 0.5
DEFAULT_RAMP = 0.5


def check_certified(model: nn.Module) -> None:
    """Raise ModelError when a model has layers without intervals."""
    check_layers(model, "Training for proofs (--certified)")


def grown(done: float, ramp: float) -> float:
    """Give how much of its full size something has that grows evenly over a part of the training."""
    return min(1.0, done / ramp) if ramp > 0 else 1.0


def worst_leads(model: nn.Module, images: Tensor, labels: Tensor, radius: float) -> Tensor:
    """Give lower bounds on how far each image's label leads every class, anywhere within the radius.

    They are (N, classes), 0 for the label itself. A last dense layer W is taken together with the lead:

        lead over class j ≥ (W_y − W_j)·(u + l)/2 + b_y − b_j − |W_y − W_j|·(u − l)/2
    """
    *layers, last = layers_of(model)
    lower, upper = pixel_interval(images, radius)
    for layer in layers:
        lower, upper = layer_interval(layer, lower, upper)
    if isinstance(last, nn.Linear):
        return _linear_leads(last, lower, upper, labels)
    lower, upper = layer_interval(last, lower, upper)
    return (lower.gather(1, labels[:, None]) - upper).scatter(1, labels[:, None], 0.0)


def _linear_leads(last: nn.Linear, lower: Tensor, upper: Tensor, labels: Tensor) -> Tensor:
    scores, reach = last((upper + lower) / 2), (upper - lower) / 2
    classes = len(last.weight)
    differences = (last.weight[:, None] - last.weight[None]).abs().flatten(0, 1)
    spreads = F.linear(reach, differences).reshape(len(labels), classes, classes)
    leads: Tensor = scores.gather(1, labels[:, None]) - scores
    return leads - spreads[torch.arange(len(labels)), labels]


def worst_loss(model: nn.Module, images: Tensor, labels: Tensor, radius: float) -> Tensor:
    """Give the cross-entropy of scores that are all as bad for the label as intervals allow."""
    return F.cross_entropy(-worst_leads(model, images, labels, radius), labels)


def count_proven(model: nn.Module, images: Tensor, labels: Tensor, radius: float) -> int:
    """Count the images whose label wins everywhere within the radius, by intervals alone."""
    leads = worst_leads(model, images, labels, radius)
    return int((leads.scatter(1, labels[:, None], torch.inf) > 0).all(1).sum())
