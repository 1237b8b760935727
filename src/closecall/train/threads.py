"""How many threads to train with: measured, because two beside a busy neighbour can be slower than one."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from closecall.train.plan import TrainingPlan

LONGEST_SECONDS = 0.25
FEWEST_STEPS = 3
# More threads must repay the neighbours they disturb.
WORTHWHILE_GAIN = 0.9


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch use this many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def choose_threads(model: nn.Module, plan: TrainingPlan, *batch: Tensor) -> int:
    """Give the number of threads with which some training steps on a copy of the model were fastest."""
    best, best_seconds = 1, _seconds_per_step(model, plan, batch, threads=1)
    for threads in _more_threads():
        seconds = _seconds_per_step(model, plan, batch, threads=threads)
        if seconds < WORTHWHILE_GAIN * best_seconds:
            best, best_seconds = threads, seconds
    return best


def _more_threads() -> list[int]:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [2**power for power in range(1, available.bit_length()) if 2**power <= available]


def _seconds_per_step(
    model: nn.Module, plan: TrainingPlan, batch: tuple[Tensor, ...], *, threads: int
) -> float:
    trial = copy.deepcopy(model).train()
    optimizer, loss_function = plan.make_optimizer(trial), plan.loss_function(trial)
    taken: list[float] = []
    with using_threads(threads), torch.random.fork_rng(devices=[]):
        began = time.perf_counter()
        while len(taken) < FEWEST_STEPS or time.perf_counter() - began < LONGEST_SECONDS:
            start = time.perf_counter()
            optimizer.zero_grad()
            loss_function(trial, *batch)[0].backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            taken.append(time.perf_counter() - start)
    return sorted(taken[1:])[len(taken[1:]) // 2]
