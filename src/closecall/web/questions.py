"""Questions of a page: they queue, run one per worker, tell what they know, and stop when nobody looks."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Literal

from closecall.errors import ClosecallError
from closecall.web.limits import Limits
from closecall.web.process import Process, WorkerError, numbers

log = logging.getLogger(__name__)

State = Literal["waiting", "running", "answered", "failed", "cancelled"]
OVER = ("answered", "failed", "cancelled")
LONGEST_TRAIL = 400


class FullError(ClosecallError):
    """So many questions are waiting that another would not be answered in reasonable time."""


@dataclass(eq=False)
class Question:
    """One question and all that is known about it; `events` is what was told since it began."""

    task: str
    model: str
    arguments: dict[str, Any]
    seconds: float
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    number: int = field(default_factory=lambda: next(numbers))
    state: State = "waiting"
    sentence: str = ""
    stage: str = ""
    trail: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    best: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    listeners: int = 0
    followed: bool = False  # whether anybody has listened
    seen: float = field(default_factory=time.monotonic)
    stopping: bool = False

    @property
    def over(self) -> bool:
        return self.state in OVER

    def heard(self, what: dict[str, Any]) -> None:
        """Keep what a worker tells."""
        if what["kind"] == "progress":
            self.stage = what["stage"]
            self.trail.append((what["seconds"], what["lower"], what["upper"]))
            if len(self.trail) > LONGEST_TRAIL:
                del self.trail[1:-1:2]
        else:
            self.best = what
        self.events.append(what)


class Questions:
    """All questions, the workers that answer them, and the rules about how many there may be."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.known: OrderedDict[str, Question] = OrderedDict()
        self.queue: deque[Question] = deque()
        self.workers = [
            Process(f"closecall-search-{n + 1}", limits.worker_memory) for n in range(limits.running)
        ]
        self.at_work: dict[Process, Question] = {}
        self.changed = asyncio.Condition()
        self.version = 0  # counts what there was to tell
        self.background: set[asyncio.Task[None]] = set()
        self.closing = False

    def open(self, warm: list[Any]) -> None:
        """Start the workers, with the models that are asked about first already read."""
        for worker in self.workers:
            self.keep(self.work(worker, warm))
        self.keep(self.watch())

    def keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    def ask(self, question: Question) -> Question:
        """Put a question into the queue."""
        if len(self.queue) >= self.limits.waiting:
            raise FullError(
                f"{len(self.queue)} questions are waiting already: ask again when some of them are answered."
            )
        self.known[question.id] = question
        self.queue.append(question)
        self.forget_old()
        self.tell()
        return question

    def forget_old(self) -> None:
        over = [question for question in self.known.values() if question.over]
        for question in over[: max(0, len(over) - self.limits.answers)]:
            del self.known[question.id]

    def position(self, question: Question) -> int | None:
        return self.queue.index(question) if question.state == "waiting" and question in self.queue else None

    def tell(self) -> None:
        """Wake all streams: something has changed."""
        self.version += 1
        self.keep(self._notify())

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def work(self, worker: Process, warm: list[Any]) -> None:
        """Answer one question after the other on one worker."""
        await self.warm_up(worker, warm)
        while True:
            async with self.changed:
                await self.changed.wait_for(lambda: bool(self.queue))
                question = self.queue.popleft()
                question.state = "running"
                self.at_work[worker] = question
            self.tell()
            await self.answer(worker, question)
            question.events.clear()  # whoever comes late is shown where it stands
            del self.at_work[worker]
            self.tell()
            if worker.connection is None:  # it was lost: the next question should not wait for a new one
                await self.warm_up(worker, warm)

    async def warm_up(self, worker: Process, warm: list[Any]) -> None:
        try:
            await worker.call("warm", {"sources": warm}, seconds=self.limits.reader_seconds)
        except ClosecallError:
            return  # the first question finds out, and says so

    async def answer(self, worker: Process, question: Question) -> None:
        longest = question.seconds + self.limits.overtime_seconds

        def heard(what: dict[str, Any]) -> None:
            question.heard(what)
            self.tell()

        try:
            found = await worker.call(
                "ask", question.arguments, seconds=longest, on_told=heard, number=question.number
            )
            question.files = found.pop("files")
            question.answer = found
            question.state = "answered"
        except ClosecallError as error:
            question.sentence = str(error)
            question.state = "cancelled" if question.stopping else "failed"
            if isinstance(error, WorkerError) and question.stopping:
                question.sentence = (
                    "The search did not heed the stop and was ended: what it had found is shown."
                )
        except Exception:  # nobody meant it, but the next question is to be answered
            log.exception("a question failed")
            question.sentence = "Something went wrong that should not have: the server's terminal says more."
            question.state = "failed"

    def stop(self, question: Question) -> None:
        """End a question with what it knows; one that waits is simply taken out of the queue."""
        question.stopping = True
        if question.state == "waiting":
            if question in self.queue:
                self.queue.remove(question)
            question.state, question.sentence = "cancelled", "It was stopped before it began."
            self.tell()
        for worker, running in self.at_work.items():
            if running is question:
                self.keep(worker.stop(question.number))
                self.keep(self.end_if_deaf(worker, question))

    async def end_if_deaf(self, worker: Process, question: Question) -> None:
        """End a worker whose search does not heed a stop."""
        await asyncio.sleep(self.limits.stopping_seconds)
        if self.at_work.get(worker) is question:
            worker.end()

    async def watch(self) -> None:
        """Stop every question that nobody has listened to or asked about for a while: its page is gone."""
        while True:
            await asyncio.sleep(self.limits.absence_seconds / 8)
            now = time.monotonic()
            for question in [*self.queue, *self.at_work.values()]:
                most = self.limits.absence_seconds if question.followed else self.limits.lease_seconds
                alone = question.listeners == 0 and now - question.seen > most
                if alone and not question.stopping:
                    self.stop(question)

    def close(self) -> None:
        """Let every stream end: the server is about to."""
        self.closing = True
        self.tell()

    def end(self) -> None:
        """End all workers."""
        for task in self.background:
            task.cancel()
        for worker in self.workers:
            worker.end()
