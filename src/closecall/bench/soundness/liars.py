"""A liar: a network of known answer in disguise. Whoever is asked about it must not be taken in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from closecall.arrays import Vector
from closecall.bench.soundness.disguises import DISGUISES, drawn_out, exact_in_float32
from closecall.bench.soundness.steps import Detour, Linear, Steps, computed, module_of
from closecall.bench.soundness.truths import Truth, half_spaces, planted_ball

PLANTED_SHARE = 0.4
STRETCHED_SHARE = 0.4  # of those without a convolution
MOST_DISGUISES = 4
SAMPLES = 32
NEARBY = 1e-5
SAME, NEARLY_THE_SAME = 1e-9, 1e-4  # in float64 and in float32
ATTEMPTS = 20
DRAWN_OUT_EVERY = 100  # so many liars are one of that kind, whose many layers take solvers long


@dataclass(frozen=True)
class Pixels:
    """What stands for black, and how far white is from it."""

    black: float = 0.0
    unit: float = 1.0

    @property
    def range(self) -> tuple[float, float]:
        return self.black, self.black + self.unit

    def read(self, size: int) -> Linear:
        """Back to pixels from 0 to 1."""
        return Linear(np.eye(size) / self.unit, np.full(size, -self.black / self.unit))


@dataclass(frozen=True, eq=False)
class Liar:
    """A model, its image and the distances that are true of it."""

    seed: int
    truth: Truth
    disguises: tuple[str, ...]
    module: nn.Module
    shape: tuple[int, ...]
    pixels: Pixels

    @property
    def image(self) -> Vector:
        return self.truth.image * self.pixels.unit + self.pixels.black

    def distance(self, norm: str) -> float:
        return self.truth.distances[norm] * (1.0 if norm == "l0" else self.pixels.unit)

    @property
    def name(self) -> str:
        kind = "planted ball" if self.truth.planted else "half-spaces"
        return f"liar {self.seed} ({kind}; {', '.join(self.disguises) or 'undisguised'})"


def liar(seed: int) -> Liar:
    """The liar of a number; every number gives another one, and the same one every time."""
    generator = np.random.default_rng(seed)
    truth = planted_ball(generator) if generator.random() < PLANTED_SHARE else half_spaces(generator)
    convolved = bool(generator.random() < 0.3)
    names, steps = disguised(generator, truth)
    if seed % DRAWN_OUT_EVERY == DRAWN_OUT_EVERY - 1:
        longer = drawn_out(np.random.default_rng(seed), steps)
        if alike(longer, truth):
            names, steps = (*names, drawn_out.__name__), longer
    side = round(len(truth.image) ** 0.5)
    shape = (1, side, side)
    pixels = Pixels()
    if convolved:
        names = (*names, "convolved")
    elif generator.random() < STRETCHED_SHARE:
        names = (*names, "stretched")
        pixels = Pixels(float(generator.integers(-4, 5)), 2.0 ** int(generator.integers(-10, 11)))
        steps = (pixels.read(len(truth.image)), *steps)
    return Liar(seed, truth, names, module_of(steps, shape, convolved=convolved), shape, pixels)


def disguised(generator: np.random.Generator, truth: Truth) -> tuple[tuple[str, ...], Steps]:
    """One disguise over another; one that is not exact in float32, or not in effect, is left out."""
    steps = truth.steps
    wanted = int(generator.integers(0, MOST_DISGUISES + 1))
    names: list[str] = []
    for _ in range(ATTEMPTS):
        if len(names) == wanted:
            break
        name = str(generator.choice(list(DISGUISES)))
        changed = DISGUISES[name](generator, steps)
        if changed is not steps and exact(changed) and alike(changed, truth):
            steps, names = changed, [*names, name]
    return tuple(names), steps


def exact(steps: Steps) -> bool:
    """Whether float32 holds every number."""
    return all(
        exact(step.steps)
        if isinstance(step, Detour)
        else exact_in_float32(step.weight) and exact_in_float32(step.bias)
        for step in steps
        if isinstance(step, (Linear, Detour))
    )


def alike(steps: Steps, truth: Truth) -> bool:
    """Whether a disguise computes what is under it on random images, though sums are rounded."""
    generator = np.random.default_rng(0)
    near = truth.place + NEARBY * generator.uniform(-1.0, 1.0, (SAMPLES, len(truth.image)))
    images = np.vstack([generator.random((SAMPLES, len(truth.image))), np.clip(near, 0.0, 1.0)])
    wanted = computed(truth.steps, images)
    plain = np.abs(computed(steps, images) - wanted).max()
    with torch.no_grad():
        rounded = module_of(steps, images.shape[1:])(torch.from_numpy(images).float()).numpy()
    return bool(plain < SAME and np.abs(rounded - wanted).max() < NEARLY_THE_SAME)
