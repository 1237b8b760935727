"""Networks whose nearest adversarial is known by construction, with its distance in every norm.

The label is class 0, whose score is 0. Another class wins where its score reaches the margin: in one of
several half-spaces, or in a small ball at a place that no gradient points to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from closecall.arrays import Vector
from closecall.bench.soundness.steps import Compete, Linear, Rectify, Step, Steps

MARGIN = 0.001
HALVINGS = 200


@dataclass(frozen=True, eq=False)
class Truth:
    """An image of class 0, a network, and how far its nearest adversarial is in each norm."""

    image: Vector
    steps: Steps
    distances: dict[str, float]
    place: Vector  # around which the network must be the same in every disguise
    planted: bool = False


def half_spaces(generator: np.random.Generator) -> Truth:
    """Each rival's score is the maximum of a few affine functions of the pixels."""
    pixels, rivals = int(generator.choice([4, 9])), int(generator.integers(1, 4))
    width = int(generator.integers(1, 4))
    image = generator.integers(0, 65, pixels) / 64
    slopes = generator.integers(-32, 33, (rivals * width, pixels)) / 16
    slopes[np.abs(slopes).max(axis=1) == 0, 0] = 1.0
    best = np.maximum(slopes, 0.0).sum(axis=1)
    share = generator.integers(8, 60, rivals * width) / 64
    at_image = slopes @ image
    thresholds = np.floor((at_image + share * (best - at_image)) * 256) / 256 + 1 / 256
    steps: list[Step] = [Linear(slopes, -thresholds)]
    if width > 1:
        steps.append(Compete(width))
    steps.append(Linear(np.vstack([np.zeros(rivals), np.eye(rivals)]), np.zeros(rivals + 1)))
    needed = thresholds + MARGIN - at_image
    return Truth(image, tuple(steps), nearest_of(image, slopes, needed), image)


def planted_ball(generator: np.random.Generator) -> Truth:
    """One rival wins only near a hidden place: its score is flat everywhere else."""
    pixels = int(generator.choice([4, 9]))
    image = generator.integers(0, 65, pixels) / 64
    place = np.where(generator.random(pixels) < 0.7, generator.integers(0, 65, pixels) / 64, image)
    steep = 2.0 ** int(generator.integers(2, 13))
    radius = (0.5 - MARGIN) / steep
    if np.abs(place - image).sum() <= 2 * radius:
        place[0] = 0.0 if image[0] > 0.5 else 1.0
    apart = Linear(np.vstack([np.eye(pixels), -np.eye(pixels)]), np.concatenate([-place, place]))
    bump = Linear(np.full((1, 2 * pixels), -steep), np.ones(1))
    scores = Linear(np.array([[0.0], [1.0]]), np.array([0.0, -0.5]))
    steps = (apart, Rectify(), bump, Rectify(), scores)
    return Truth(image, steps, nearest_in_ball(np.abs(place - image), radius), place, planted=True)


def nearest_of(image: Vector, slopes: Vector, needed: Vector) -> dict[str, float]:
    """The shortest way into any of the half-spaces slopes · shift ≥ needed within the pixel box."""
    each = [nearest_in_half_space(row, float(need), image) for row, need in zip(slopes, needed, strict=True)]
    return {norm: min(distances[norm] for distances in each) for norm in each[0]}


def nearest_in_half_space(row: Vector, needed: float, image: Vector) -> dict[str, float]:
    gains, rooms = np.abs(row), np.where(row > 0, 1.0 - image, image)
    if gains @ rooms < needed:
        return dict.fromkeys(("l1", "l2", "linf", "l0"), np.inf)
    far = float(np.sqrt((rooms**2).sum()) / max(gains[gains > 0].min(), 1e-9)) + 1.0
    length = least(lambda scale: float(gains @ np.minimum(rooms, scale * gains)) >= needed, far)
    height = least(lambda size: float(gains @ np.minimum(rooms, size)) >= needed, 1.0)
    return {
        "l1": spent(gains, rooms, needed),
        "l2": float(np.sqrt((np.minimum(rooms, length * gains) ** 2).sum())),
        "linf": height,
        "l0": float(1 + np.searchsorted(np.cumsum(np.sort(gains * rooms)[::-1]), needed * (1 - 1e-12))),
    }


def spent(gains: Vector, rooms: Vector, needed: float) -> float:
    """How much must be spent, the largest gains first."""
    total = 0.0
    for place in np.argsort(-gains):
        if gains[place] * rooms[place] >= needed:
            return total + needed / float(gains[place])
        needed -= float(gains[place] * rooms[place])
        total += float(rooms[place])
    return total


def nearest_in_ball(ways: Vector, radius: float) -> dict[str, float]:
    """The shortest way into the L1 ball of a radius around a place that is `ways` off in each pixel.

    The nearest point in L2 and in L∞ takes the same cut off every way, or all of it where that is less.
    """
    cut = least(lambda size: float(np.maximum(ways - size, 0.0).sum()) <= radius, float(ways.max()))
    unmoved = int(np.searchsorted(np.cumsum(np.sort(ways)), radius, side="right"))
    return {
        "l1": float(ways.sum()) - radius,
        "l2": float(np.sqrt((np.minimum(ways, cut) ** 2).sum())),
        "linf": cut,
        "l0": float(len(ways) - unmoved),
    }


def least(holds: Callable[[float], bool], far: float) -> float:
    """The smallest number from 0 to `far` for which a growing condition holds."""
    near = 0.0
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if holds(middle) else (middle, far)
    return far
