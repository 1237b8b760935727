"""One perturbation that takes many images to their goals: Frank-Wolfe steps for those not there yet."""

from __future__ import annotations

import numpy as np

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.network.gradient import input_gradient
from closecall.question.universal import Together
from closecall.settings import DEFAULT, Universal


def most_at_once(
    together: Together, start: Vector, until: float, settings: Universal = DEFAULT.universal
) -> tuple[int, Vector]:
    """How many images a perturbation within the radius takes to their goals, and which: the best of a climb.

    Each step goes towards the furthest point along the slope of what the images lack, those first that lack
    the least, so that the many do not wait for one that is out of reach.
    """
    network, domain = together.joint, together.domain
    point, best, most = start, start, -1
    for step in range(settings.steps):
        values = network.values(point[None])
        lacks = np.array([values[-1][0, rows].min() for rows in together.rows])
        reached = int((lacks >= 0).sum())
        if reached > most:
            best, most = point, reached
        if most == len(lacks) or (step and out_of_time(until)):
            break
        weights = np.zeros(network.classes)
        for rows, lack in zip(together.rows, lacks, strict=True):
            hardest = rows[values[-1][0, rows].argmin()]
            weights[hardest] = 1.0 / max(settings.near, -lack) if lack < settings.spare else 0.0
        slope = input_gradient(network, values, weights[None])
        target = domain.centre + domain.furthest(slope)[0]
        point = target if domain.sparse else point + (2.0 / (step + 3.0)) * (target - point)
    return most, best
