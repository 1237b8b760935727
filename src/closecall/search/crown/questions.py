"""What batched bounds are asked: which image is the nearest, is there any, is there a nearer one?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from closecall.clock import out_of_time, usable_threads
from closecall.search.crown.ball import TorchBall
from closecall.search.crown.dense_network import dense_network_of
from closecall.search.crown.engine import BatchedSearch
from closecall.search.crown.witnesses import WitnessSearch
from closecall.search.problem import Problem


def search(problem: Problem, until: float) -> None:
    """Find a witness or prove that there is none; where the nearest is wanted, shrink to that."""
    with torch_threads(problem.threads):
        batched = BatchedSearch(problem, until)
        try:
            if problem.incumbent.witness is None:
                batched.refute()
            if problem.incumbent.witness is not None and problem.nearest:
                batched.shrink()
        finally:
            batched.report()


def polish(problem: Problem, until: float) -> None:
    """Bring the incumbent to the nearest image of its linear region, and of those beside it."""
    with torch_threads(problem.threads):
        network = problem.within(problem.incumbent.distance).network
        WitnessSearch(problem, dense_network_of(network, problem.settings.sizes), until).polish()


def approach(problem: Problem, until: float) -> None:
    """Bring the incumbent as near as climbs from many places do, without a proof.

    Whenever it has come much nearer, the network is folded anew: far fewer units are open then.
    """
    incumbent, share = problem.incumbent, problem.settings.crown.climbs.worth_folding_anew
    with torch_threads(problem.threads):
        far = math.inf
        while incumbent.distance < share * far and not out_of_time(until):
            far = incumbent.distance
            dense = dense_network_of(problem.within(far).network, problem.settings.sizes)
            witnesses = WitnessSearch(problem, dense, until)
            witnesses.polish()
            ball = TorchBall.of(problem.domain.within(incumbent.distance), torch.float64)
            witnesses.close_in(ball, enough=share * far)


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(usable_threads(threads))
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(before)
