"""Where the questions of a batch are asked: in this process, in others on this machine, or on a cluster."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from closecall.batches.items import Plan
from closecall.batches.running import Alone, Runner
from closecall.clock import usable_cores
from closecall.errors import InputError, MissingExtraError


@dataclass(frozen=True)
class Where:
    """How many processes on this machine (None: one for each core), or which Dask cluster."""

    workers: int | None = None
    scheduler: str | None = None
    memory_limit: str = "auto"


def has_dask() -> bool:
    return importlib.util.find_spec("distributed") is not None


def processes(where: Where, threads: int) -> int:
    """How many processes to start on this machine; 0: none but this one."""
    if where.workers is not None:
        if where.workers < 0:
            raise InputError(f"There cannot be {where.workers} workers: give 0 or more.")
        if where.workers and not has_dask():
            raise MissingExtraError("A batch in several processes", "scale")
        return where.workers
    return max(1, usable_cores() // threads) if has_dask() else 0


def runner_for(plan: Plan, where: Where) -> Runner:
    """Whoever asks the questions."""
    if where.scheduler is not None and not has_dask():
        raise MissingExtraError("A batch on a Dask cluster", "scale")
    if where.scheduler is None and not processes(where, plan.effort.threads):
        return Alone({each.fingerprint: each.classifier for each in plan.contenders}, plan.effort)
    from closecall.batches.cluster import OnCluster

    return OnCluster(plan.contenders, plan.effort, where)
