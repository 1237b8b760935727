"""Witnesses by gradient: images that reach the goal, near the original, with no proof that none is nearer.

Frank-Wolfe steps stay inside box ∩ ball for every norm: each step goes towards the point of the domain that
is furthest along the gradient. A success is pulled back towards the original, and the ball shrinks below it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal, slack_and_gradient
from closecall.settings import DEFAULT, Attack


def find_witness(
    network: Network,
    domain: Domain,
    goal: Goal,
    *,
    nearest: bool = True,
    seed: int = 0,
    until: float = np.inf,
    on_witness: Callable[[Vector], object] | None = None,
    settings: Attack = DEFAULT.attack,
) -> Vector | None:
    """The nearest image found in the domain that reaches the goal, or None; `until` is a perf_counter.

    Unless the `nearest` is wanted, the whole domain is tried at once, and the first image is the answer.
    `on_witness` is shown each image that is nearer than the last.
    """
    generator = np.random.default_rng(seed)
    best: Vector | None = None
    if out_of_time(until):
        return None
    whole = min(domain.radius, widest(domain))
    radius = first_radius(network, domain, goal, settings) if nearest else whole
    misses = 0
    while misses < settings.failed_climbs and not out_of_time(until):
        found = climb(network, domain.within(radius), goal, generator, until, settings.steps)
        if found is not None:
            best, misses = pull_back(network, domain, goal, found, until, settings), 0
            if on_witness is not None:
                on_witness(best)
            if not nearest:
                break
            radius = domain.distance(best) * settings.next_radius_share
            if domain.norm.name == "l0":
                radius = domain.distance(best) - 1
        elif best is not None or radius >= whole:
            misses += 1
        else:
            radius = min(settings.growth * radius, widest(domain))
        if radius <= 0:
            break
    return best


def widest(domain: Domain) -> float:
    """The distance to the farthest corner of the box."""
    return float(domain.norm.distance(np.maximum(domain.centre - domain.lower, domain.upper - domain.centre)))


def first_radius(network: Network, domain: Domain, goal: Goal, settings: Attack) -> float:
    """A guess: where the linear model at the centre reaches the nearest case, and a little more."""
    centre = np.repeat(domain.centre[None], len(goal.cases), axis=0)
    slack, slopes = slack_and_gradient(network, goal, centre)
    steps = domain.within(np.inf).furthest(slopes)
    gain = (slopes * steps).sum(axis=1)
    share = np.where(gain > 0, -slack / np.where(gain > 0, gain, 1.0), 1.0)
    smallest = float(np.min(np.clip(share, settings.least_first_share, 1.0)))
    if domain.norm.name == "l0":
        return max(1.0, smallest * widest(domain))
    return min(domain.radius, settings.first_radius_margin * smallest * widest(domain))


def climb(
    network: Network, domain: Domain, goal: Goal, generator: np.random.Generator, until: float, steps: int
) -> Vector | None:
    """Frank-Wolfe from the centre and from a random point, once for each case; the nearest success."""
    cases = len(goal.cases)
    random_rows = generator.normal(size=(cases, len(domain.centre)))
    points = np.vstack(
        [np.repeat(domain.centre[None], cases, axis=0), domain.centre + domain.furthest(random_rows)]
    )
    best: Vector | None = None
    for step in range(steps):
        slack, slopes = slack_and_gradient(network, goal, points)
        reached = points[slack >= 0]
        if len(reached):
            distances = domain.norm.distance(reached - domain.centre)
            best = reached[distances.argmin()]
        if best is not None or out_of_time(until):
            break
        target = domain.centre + domain.furthest(slopes)
        points = target if domain.sparse else points + (2.0 / (step + 3.0)) * (target - points)
    return best


def pull_back(
    network: Network, domain: Domain, goal: Goal, point: Vector, until: float, settings: Attack
) -> Vector:
    """Move a witness towards the original for as long as it reaches the goal."""
    if domain.norm.name == "l0":
        return with_fewer_pixels(network, domain, goal, point, until, settings.trials_at_once)
    shift = point - domain.centre
    near, far = 0.0, 1.0
    for _ in range(settings.pull_back_rounds):
        if out_of_time(until):
            break
        shares = np.linspace(near, far, settings.pull_back_points + 1)[1:]
        reached = np.flatnonzero(goal.slack(network.forward(domain.centre + shares[:, None] * shift)) >= 0)
        if not len(reached):
            break
        far, near = float(shares[reached[0]]), float(shares[reached[0]] - (shares[1] - shares[0]))
    return np.asarray(domain.clip(domain.centre + far * shift))


def with_fewer_pixels(
    network: Network, domain: Domain, goal: Goal, point: Vector, until: float, at_once: int
) -> Vector:
    """Change only the pixels that move the most, as few of them as reach the goal."""
    shift = point - domain.centre
    order = np.argsort(-np.abs(shift))[: int((shift != 0).sum())]
    for begin in range(1, len(order) + 1, at_once):
        if out_of_time(until):
            break
        counts = np.arange(begin, min(begin + at_once, len(order) + 1))
        trials = np.repeat(domain.centre[None], len(counts), axis=0)
        for row, count in enumerate(counts):
            trials[row, order[:count]] = point[order[:count]]
        reached = np.flatnonzero(goal.slack(network.forward(trials)) >= 0)
        if len(reached):
            return np.asarray(trials[reached[0]])
    return point


def climb_freely(
    network: Network,
    domain: Domain,
    goal: Goal,
    until: float = np.inf,
    settings: Attack = DEFAULT.attack,
) -> Vector:
    """The point of largest slack on a Frank-Wolfe path from the centre."""
    point = domain.centre[None]
    best, most = point[0], -np.inf
    for step in range(settings.ideal_steps):
        if step and out_of_time(until):
            break
        slack, slopes = slack_and_gradient(network, goal, point)
        if slack[0] > most:
            best, most = point[0], float(slack[0])
        point = point + (2.0 / (step + 2.0)) * (domain.centre + domain.furthest(slopes) - point)
    return np.asarray(best)
