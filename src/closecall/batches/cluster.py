"""Questions asked by many processes, of this machine or of a Dask cluster.

The coordinating process hands out a few questions at a time and keeps the answers; workers keep nothing.
Questions that are answered in milliseconds travel in parcels. Models reach each worker once. A question whose
worker dies is suspected and asked again when nothing else is under way, so that no other can be blamed; the
third death makes it `crashed`.
"""

from __future__ import annotations

import itertools
import logging
import math
import pickle
import queue
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, LocalCluster
from distributed.scheduler import KilledWorker

from closecall.batches.answers import Reply
from closecall.batches.asking import OnInterval
from closecall.batches.choosing import Where, processes
from closecall.batches.items import Contender, Item
from closecall.batches.stopping import Stop
from closecall.batches.worker import SECONDS_TOGETHER, SendModels, Sent, ask_here, stop_all
from closecall.errors import ClusterError, InputError
from closecall.question.effort import Effort

DEATHS = 3  # of its worker, before a question is given up
AT_ONCE = 2  # parcels for each thread of a worker: one that runs, one that waits
LEAST_AT_ONCE = 4  # also while a cluster has no worker yet: one that grows by need must see a need
MOST_TOGETHER = 8  # quick questions in a parcel
OF_THE_LAST = 0.1  # share of the last answer in the mean of the seconds that answers take
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_BETWEEN_COUNTS = 2.0  # of a cluster's threads, which come and go
SECONDS_TO_CONNECT = 10


@dataclass(frozen=True, eq=False)
class OnCluster:
    """Asks on a cluster that is there, or on one of processes that are started for it."""

    contenders: Sequence[Contender]
    effort: Effort
    where: Where

    def __call__(self, items: Sequence[Item], tell: OnInterval, stop: Stop) -> Iterator[Reply]:
        silence_dask()
        models = {each.fingerprint: Sent.of(each) for each in self.contenders}
        with connected(self.where, self.effort.threads) as client:
            handing_out = HandingOut(client, self.effort, tell, stop, local=self.where.scheduler is None)
            yield from handing_out.all(items, models)


def silence_dask() -> None:
    """Let deaths and lost connections be told by us, in one sentence; each of Dask's loggers has a level."""
    for name in [*logging.root.manager.loggerDict]:
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def connected(where: Where, threads: int) -> Iterator[Client]:
    """A client of the cluster that was named, or of a new one on this machine."""
    if where.scheduler is not None:
        address = address_of(where.scheduler)
        with dask.config.set({"distributed.comm.timeouts.connect": SECONDS_TO_CONNECT}):
            try:
                client = Client(**address)
            except OSError as error:
                raise InputError(f"Nobody answers at the scheduler {where.scheduler}: {error}.") from error
            with client:
                yield client
        return
    # Deaths are counted here: the first one comes back at once. Dask's profiler would hold up searches a
    # hundred times a second.
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.profile.enabled": False}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=processes(where, threads),
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit=where.memory_limit,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def address_of(scheduler: str) -> dict[str, str]:
    """An address as it is; anything else is the file that a scheduler wrote."""
    if "://" in scheduler:
        return {"address": scheduler}
    if not Path(scheduler).is_file():
        raise InputError(
            f"{scheduler} is neither an address such as tcp://127.0.0.1:8786 nor a scheduler file."
        )
    return {"scheduler_file": scheduler}


@dataclass(eq=False)
class HandingOut:
    """Which questions wait, which are under way, and which are suspected of killing their worker."""

    client: Client
    effort: Effort
    tell: OnInterval
    stop: Stop
    local: bool
    batch: str = field(default_factory=lambda: f"closecall-{uuid.uuid4().hex}")
    waiting: deque[Item] = field(default_factory=deque)
    suspected: deque[Item] = field(default_factory=deque)
    under_way: dict[str, tuple[dict[str, Item], Future]] = field(default_factory=dict)  # parcels by name
    mean_seconds: float = math.inf  # of the answers so far, the last ones counting most
    deaths: Counter[str] = field(default_factory=Counter)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    news: queue.SimpleQueue[tuple[str, Any]] = field(default_factory=queue.SimpleQueue)
    counted: tuple[float, int] = (-SECONDS_BETWEEN_COUNTS, 0)

    def all(self, items: Sequence[Item], models: dict[str, Sent]) -> Iterator[Reply]:
        """Every answer as it comes."""
        self.waiting.extend(items)
        self.client.subscribe_topic(self.batch, lambda event: self.news.put(event[1]))
        self.client.register_plugin(SendModels(models, ignore_interrupts=self.local), name=self.batch)
        stopping = False
        try:
            while self.waiting or self.suspected or self.under_way:
                if self.stop.pressed and not stopping:
                    stopping = True
                    self.end_early()
                self.hand_out()
                yield from self.heard()
        except OSError as error:  # that is what lost connections raise, wherever they were needed
            raise self.gone() from error
        finally:
            if self.client.status == "running":  # a cluster that is gone has forgotten it, too
                with suppress(OSError):
                    self.client.unregister_worker_plugin(self.batch)

    def hand_out(self) -> None:
        """Keep every worker busy; a suspect is asked when it is alone."""
        if not self.waiting and self.suspected and not self.under_way:
            self.submit([self.suspected.popleft()])
        while self.waiting and len(self.under_way) < self.most_at_once():
            self.submit([self.waiting.popleft() for _ in range(self.worth_a_parcel())])

    def worth_a_parcel(self) -> int:
        """How many questions go together: more than one if they are quick, and never all that are left."""
        quick = int(min(MOST_TOGETHER, SECONDS_TOGETHER / self.mean_seconds)) if self.mean_seconds else 1
        return max(1, min(quick, len(self.waiting) // self.most_at_once()))

    def submit(self, items: Sequence[Item]) -> None:
        name = f"{self.batch}-{items[0].key}-{next(self.numbers)}"
        future = self.client.submit(ask_here, items, self.effort, self.batch, key=name, pure=False)
        self.under_way[name] = {item.key: item for item in items}, future
        future.add_done_callback(lambda _: self.news.put(("done", name)))

    def most_at_once(self) -> int:
        """As many as all threads can take, counted now and then."""
        then, threads = self.counted
        if time.monotonic() - then > SECONDS_BETWEEN_COUNTS:
            threads = sum(self.client.nthreads().values())
            self.counted = time.monotonic(), threads
        return max(AT_ONCE * threads, 1 if self.local else LEAST_AT_ONCE)

    def heard(self) -> Iterator[Reply]:
        """What has arrived: intervals are passed on, answers given."""
        with suppress(queue.Empty):
            kind, told = self.news.get(timeout=SECONDS_BETWEEN_LOOKS)
            if kind == "interval":
                if self.parcel_with(told[0]) is not None:
                    self.tell(*told)
            elif kind == "replies":
                yield from self.taken_out(pickle.loads(told))  # noqa: S301 (from our own workers)
            else:
                yield from self.opened(told)
            return
        if self.client.status != "running":
            raise self.gone()

    def parcel_with(self, key: str) -> dict[str, Item] | None:
        """The questions of the parcel that a question travels in."""
        return next((items for items, _ in self.under_way.values() if key in items), None)

    def taken_out(self, replies: Sequence[Reply]) -> Iterator[Reply]:
        """Answers, each given once, out of parcels that are under way."""
        for reply in replies:
            parcel = self.parcel_with(reply.key)
            if parcel is not None:
                del parcel[reply.key]
                if reply.verdict is not None:
                    seconds, mean = reply.verdict.seconds, self.mean_seconds
                    self.mean_seconds = mean + OF_THE_LAST * (seconds - mean) if mean < math.inf else seconds
                yield reply

    def opened(self, name: str) -> Iterator[Reply]:
        """What became of a parcel: its answers; what is left in it waits again, unless its worker died."""
        items, future = self.under_way[name]
        alone = len(self.under_way) == 1 and not self.waiting and len(items) == 1
        if future.status == "finished":
            # Its value is small and on a worker: what takes longer than this is not coming.
            replies: list[Reply] | str = future.result(timeout=SECONDS_TO_CONNECT)
            if isinstance(replies, str):
                raise self.unable(replies)
            yield from self.taken_out(replies)
            if not self.stop.pressed:
                self.waiting.extendleft(reversed(items.values()))
            del self.under_way[name]
            return
        del self.under_way[name]
        error = future.exception() if future.status == "error" else None
        if isinstance(error, KilledWorker):
            for item in items.values():
                if (reply := self.blamed(item, error, alone)) is not None:
                    yield reply
            return
        if error is None or self.client.status != "running":
            raise self.gone()
        raise self.unable(f"{type(error).__name__}: {error}") from error

    def blamed(self, item: Item, error: KilledWorker, alone: bool) -> Reply | None:
        self.deaths[item.key] += error.allowed_failures + 1
        times = self.deaths[item.key]
        if times >= DEATHS and alone:
            return Reply(item.key, "crashed", note=f"the process that was asked died, {times} times")
        if not self.stop.pressed:
            self.suspected.append(item)
        return None

    def end_early(self) -> None:
        """Ask nothing more, and have running searches end with what they have proven."""
        self.waiting.clear()
        self.suspected.clear()
        self.client.run(stop_all, self.batch)

    def unable(self, reason: str) -> ClusterError:
        return ClusterError(f"A worker cannot answer ({reason.rstrip('.')}); every answer so far is kept.")

    def gone(self) -> ClusterError:
        return ClusterError(
            "The scheduler is gone: every answer so far is kept, run the same command again to go on."
        )
