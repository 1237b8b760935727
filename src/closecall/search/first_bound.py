"""The first proven distance of a search: by linear bounds alone, in its own norm or by way of another."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from closecall.attacks.gradient import widest
from closecall.bounds import certified_radius
from closecall.question.domain import Domain
from closecall.question.norms import CHANGED, norm_named
from closecall.search.problem import Problem


def first_bound(problem: Problem, until: float) -> None:
    """Prove a distance below which no image reaches the goal by linear bounds, until a perf_counter time.

    No image within a radius in L∞ means none within the same radius in L1 or L2. In L0, where k pixels move
    by no more than the k largest rooms together, a radius in L1 says how many must change at least.
    """
    if not problem.nearest and math.isinf(problem.domain.radius):  # a whole box has no distance to tell
        return
    bounds = problem.settings.linear_bounds
    domain, incumbent, network = problem.domain, problem.incumbent, problem.simplified
    witness = incumbent.witness

    def radius_in(norm: str) -> float:
        measured = replace(domain, norm=norm_named(norm), radius=np.inf)
        far = widest(measured) if witness is None else measured.distance(witness)
        if norm == domain.norm.name:
            far = min(far, domain.radius)
        tell = None if domain.norm.name == "l0" else incumbent.prove
        return certified_radius(
            network, measured.within(far), problem.goal, until, on_radius=tell, settings=bounds
        )

    with problem.clock.stage("bounds"):
        if domain.norm.name == "l0":
            fewest = fewest_pixels(domain, radius_in("l1"))
            # So many pixels may well do: a radius of as many is not yet proven.
            incumbent.prove(fewest if fewest != domain.radius else float(np.nextafter(fewest, 0.0)))
        elif radius_in(domain.norm.name) == 0 and domain.norm.name != "linf":
            radius_in("linf")


def fewest_pixels(domain: Domain, radius: float) -> float:
    """How many pixels must change if no image within this radius in L1 will do.

    Pixels that count as unchanged may have moved a little, too.
    """
    rooms = np.sort(np.maximum(domain.centre - domain.lower, domain.upper - domain.centre))[::-1]
    reached = np.concatenate([[0.0], np.cumsum(rooms)]) + CHANGED * len(rooms)
    return float(min(int(np.searchsorted(reached, radius, side="right")), len(rooms)))
