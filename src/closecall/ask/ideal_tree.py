"""The best image of a class by our own tree of linear programs, whose bounds trust no solver."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from closecall.arrays import Vector
from closecall.ask.aims import Aim
from closecall.bounds import Bounds
from closecall.clock import Clock, usable_threads
from closecall.encoding.model_size import ModelSize
from closecall.milp import OnProgress
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.effort import Effort
from closecall.search.incumbent import Statistics
from closecall.search.lp.relaxation import Relaxation, joined, lay_out
from closecall.search.lp.tree import Tree
from closecall.settings import DEFAULT


class Searched(Protocol):
    """The best image so far and the most that any reaches, of what is aimed at and of the lead alone."""

    network: Network
    domain: Domain
    effort: Effort
    aim: Aim
    best: Vector
    most: float
    most_lead: float
    nodes: int

    def keep(self, image: Vector) -> None: ...


def grow(search: Searched, bounds: Bounds, clock: Clock, on_progress: OnProgress | None) -> None:
    """Search for a better image, and bound how good any can be, until that is closed or the time is over."""
    size = ModelSize.of(search.network, bounds, "tight")
    if size.gigabytes > DEFAULT.sizes.most_gigabytes or size.seconds > clock.left:
        return
    relaxation = relaxed(search, bounds)
    pixels, statistics = relaxation.pixels, Statistics()

    def cutoff() -> float:
        value = search.aim.value(search.best)
        return -value - search.effort.gap / 2 * max(1.0, abs(value))

    def on_point(values: Vector) -> float:
        search.keep(search.domain.clip(pixels.at(values)))
        return cutoff()

    tree = Tree(relaxation, cutoff(), on_point, statistics)

    def stop() -> bool:
        clock.check()
        search.most, search.nodes = min(search.most, -tree.bound), statistics.nodes
        if on_progress is not None:
            on_progress(search.aim.value(search.best), search.most, search.nodes, clock.seconds)
        return clock.left <= 0

    try:
        tree.search(deadline=clock.deadline, threads=usable_threads(search.effort.threads), stop=stop)
    finally:
        search.most, search.nodes = min(search.most, -tree.bound), statistics.nodes


def relaxed(search: Searched, bounds: Bounds) -> Relaxation:
    """The network over the domain, with what is aimed at as its objective, turned round."""
    laid_out = lay_out(search.network, search.domain, bounds)
    # No image whose lead is smaller has a better value, since variation only takes off.
    least = min(search.aim.value(search.best), search.aim.lead(search.best)) - 1.0
    most = search.most_lead if math.isfinite(search.most_lead) else np.inf
    builder = laid_out.builder
    objective, _ = search.aim.objective(builder, laid_out.pixels, laid_out.scores, (least, most))
    chosen = joined(builder.choices, search.network, laid_out.readers)
    return Relaxation(builder.build(objective), laid_out.pixels, *chosen, np.zeros(0, dtype=np.int64))
