"""What batched bounds are asked: is there a witness, which is the nearest, is there a nearer one?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from closecall.arrays import Vector
from closecall.clock import usable_threads
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.dense_network import dense_network_of
from closecall.search.crown.engine import BatchedSearch
from closecall.search.crown.outcome import Outcome, Watch
from closecall.search.crown.witnesses import WitnessSearch
from closecall.settings import DEFAULT, Settings

UNWATCHED = Watch()


def refute(
    network: Network,
    domain: Domain,
    goal: Goal,
    *,
    seconds: float,
    threads: int = 1,
    watch: Watch = UNWATCHED,
    settings: Settings = DEFAULT,
) -> Outcome:
    """Find an image of the domain that reaches the goal, or prove that there is none."""
    with torch_threads(threads):
        search = BatchedSearch(network, domain, goal, seconds, watch, settings=settings)
        return search.run(search.refute)


def shrink(
    network: Network,
    domain: Domain,
    goal: Goal,
    witness: Vector,
    *,
    gap: float,
    seconds: float,
    threads: int = 1,
    watch: Watch = UNWATCHED,
    settings: Settings = DEFAULT,
) -> tuple[Vector, Outcome]:
    """From a known witness to the nearest one, up to a relative gap, as far as the time allows."""
    with torch_threads(threads):
        search = BatchedSearch(network, domain, goal, seconds, watch, gap=gap, settings=settings)
        outcome = search.run(lambda: search.shrink(witness))
        best = witness if search.witnesses.witness is None else search.witnesses.witness
        return best, replace(outcome, witness=best)


def approach(
    network: Network,
    domain: Domain,
    goal: Goal,
    witness: Vector,
    *,
    gap: float,
    seconds: float,
    threads: int,
    watch: Watch = UNWATCHED,
    settings: Settings = DEFAULT,
) -> Vector:
    """A witness as near as climbs from many places find one, without a proof; the known one at least."""
    with torch_threads(threads):
        until = time.perf_counter() + seconds
        search = WitnessSearch(
            network,
            dense_network_of(network.simplified(), settings.sizes),
            domain,
            goal,
            polish=True,
            until=until,
            on_witness=watch.on_witness,
            settings=settings,
        )
        search.accept(witness)
        search.close_in(TorchBall.of(domain.within(domain.distance(witness)), torch.float64), 1.0 - gap)
        return witness if search.witness is None else search.witness


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(usable_threads(threads))
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)
