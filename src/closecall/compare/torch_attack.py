"""The gradient attack on any torch module, for networks that closecall cannot bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from closecall.arrays import Image, Vector
from closecall.attacks.gradient import find_witness
from closecall.models import CapsNet, build
from closecall.network import Network, Node
from closecall.question.names import NormName
from closecall.question.question import Question
from closecall.verdict.replay import Wanted

PUSHES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)  # added to the shift where rounding to float32 loses the flip


@dataclass(frozen=True, eq=False)
class ModuleLayer:
    """A whole module as one layer that can be run and differentiated, which is all that an attack needs.

    Nothing bounds or encodes it, so nothing about it can be proven.
    """

    module: nn.Module
    shape: tuple[int, ...]
    size: int

    def forward(self, *inputs: Vector) -> Vector:
        with torch.no_grad():
            scores = self.module(self._tensor(inputs[0]))
        return np.asarray(scores.numpy(), dtype=np.float64)

    def gradient(self, slopes: Vector, *inputs: Vector) -> list[Vector]:
        images = self._tensor(inputs[0]).requires_grad_()
        scores = self.module(images)
        rows = torch.from_numpy(slopes.astype(np.float32))
        (gradient,) = torch.autograd.grad((scores * rows).sum(), images)
        return [np.asarray(gradient.flatten(1).numpy(), dtype=np.float64)]

    def _tensor(self, points: Vector) -> torch.Tensor:
        return torch.from_numpy(points.reshape(len(points), *self.shape).astype(np.float32))


def attack_module(
    module: nn.Module, image: Image, label: int, *, norm: NormName, seconds: float
) -> tuple[Image, float, int] | None:
    """An image that the module classifies otherwise, its distance and its class; None if none was found.

    The same search as on networks that can be read: Frank-Wolfe steps in shrinking balls. The image that is
    given back was classified in float32, as it is.
    """
    network = attackable(module, image.shape)
    question = Question(image.astype(np.float64).ravel(), label, network.classes, norm=norm)
    until = time.perf_counter() + seconds
    witness = find_witness(network, question.domain(), question.goal(), until=until)
    return None if witness is None else replayed_in(module, question, witness, image.shape)


def attackable(module: nn.Module, shape: tuple[int, ...]) -> Network:
    """A module as a network that can be climbed on, though nothing about it can be proven."""
    classes = len(classify(module, np.zeros(shape, dtype=np.float32)))
    layer: Any = ModuleLayer(with_all_gradients(module), shape, classes)
    return Network(shape, (Node(layer, (0,)),))


def replayed_in(
    module: nn.Module, question: Question, witness: Vector, shape: tuple[int, ...]
) -> tuple[Image, float, int] | None:
    """The witness in float32, its distance and the class that the module sees; None if rounding undoes it."""
    domain, wanted = question.domain(), Wanted.by(question)
    for push in PUSHES:
        moved = domain.clip(domain.centre + (1 + push) * (witness - domain.centre))
        found = moved.astype(np.float32).reshape(shape).clip(0, 1)
        became = int(classify(module, found).argmax())
        if wanted.accepts(became):
            return found, domain.distance(found.ravel().astype(np.float64)), became
    return None


def classify(module: nn.Module, image: Image) -> NDArray[np.float32]:
    with torch.no_grad():
        scores: NDArray[np.float32] = module(torch.from_numpy(image).unsqueeze(0))[0].numpy()
    return scores


def with_all_gradients(module: nn.Module) -> nn.Module:
    """The same network; in a capsule network, gradients flow through every routing iteration."""
    if not isinstance(module, CapsNet) or module.sizes.gradients == "all":
        return module
    twin = build("capsnet", {**module.config(), "gradients": "all"})
    twin.load_state_dict(module.state_dict())
    return twin.eval()
