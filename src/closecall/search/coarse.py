"""What is told about a network whose dense matrices would not fit into memory: an attack, linear bounds."""

from __future__ import annotations

import time

from closecall.arrays import Vector
from closecall.attacks.gradient import find_witness
from closecall.bounds import all_excluded, linear_bounds
from closecall.network import Network
from closecall.question.domain import Domain
from closecall.question.goal import Goal

SECONDS_TO_LAY_OUT = 3e-8  # for each weight of the dense matrices of batched bounds, on a slow core


def refute_coarsely(network: Network, domain: Domain, goal: Goal, until: float) -> tuple[bool, Vector | None]:
    """Whether linear bounds prove that no image of the domain reaches the goal; if not, one that does."""
    now = time.perf_counter()
    bounds = linear_bounds(network, domain, now + (until - now) / 2)
    if all_excluded(network, domain, goal, bounds):
        return True, None
    return False, find_witness(network, domain, goal, until=until)
