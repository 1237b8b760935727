"""A worker as the server sees it: a process that is called, stopped, ended when it must be, and replaced."""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from closecall.clock import in_main_thread
from closecall.errors import ClosecallError, InputError
from closecall.web.messages import Call, Done, Refused, Stop, Told
from closecall.web.worker.loop import run

log = logging.getLogger(__name__)

OnTold = Callable[[dict[str, Any]], None]
numbers = itertools.count(1)


class WorkerError(ClosecallError):
    """A worker ended before it had answered, or had to be ended."""


class Pending:
    """A call that has not been answered yet."""

    def __init__(self, on_told: OnTold | None) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.on_told = on_told


class Process:
    """One worker; it is started at its first call, and again after it was lost."""

    def __init__(self, name: str, memory: int) -> None:
        self.name, self.memory = name, memory
        self.process: Any = None
        self.connection: Connection | None = None
        self.sending = asyncio.Lock()
        self.pending: dict[int, Pending] = {}

    def start(self) -> None:
        """Begin a process, which takes a second or two to be ready; calls wait for it."""
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=run, args=(theirs, self.memory), name=self.name, daemon=True)
        with ignoring_interrupts():
            self.process.start()
        theirs.close()
        loop = asyncio.get_running_loop()
        listening = (self.connection, loop)
        threading.Thread(
            target=self.listen, args=listening, name=f"{self.name}-listener", daemon=True
        ).start()

    def listen(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over what one process says for as long as it lives."""
        try:
            while True:
                loop.call_soon_threadsafe(self.take, connection.recv())
        except (EOFError, OSError):
            pass
        except Exception:
            log.exception("%s said something that cannot be understood", self.name)
        try:
            loop.call_soon_threadsafe(self.lose, connection)
        except RuntimeError:  # the server is gone, too
            connection.close()

    async def call(
        self,
        task: str,
        arguments: dict[str, Any],
        *,
        seconds: float,
        on_told: OnTold | None = None,
        number: int | None = None,
    ) -> Any:
        """Do a task and give what it comes to; one that takes longer than `seconds` ends the process."""
        if self.connection is None:
            self.start()
        if self.connection is None:
            raise WorkerError("No process could be started for this: try again.")
        number = next(numbers) if number is None else number
        pending = self.pending[number] = Pending(on_told)
        try:
            await self.send(Call(number, task, arguments))
            return await asyncio.wait_for(pending.answer, seconds)
        except TimeoutError:
            self.end()
            raise WorkerError(f"It took longer than {seconds:.0f} seconds and was ended.") from None
        except OSError:
            self.lose(self.connection)
            raise WorkerError("The process that was asked has ended: ask again.") from None
        finally:
            self.pending.pop(number, None)
            pending.answer.cancel()  # nobody waits for it any more

    def take(self, message: object) -> None:
        if not isinstance(message, (Told, Done, Refused)) or message.number not in self.pending:
            return
        pending = self.pending[message.number]
        if isinstance(message, Told):
            if pending.on_told is not None:
                pending.on_told(message.what)
        elif not pending.answer.done():
            if isinstance(message, Done):
                pending.answer.set_result(message.result)
            else:
                kind = InputError if message.expected else WorkerError
                pending.answer.set_exception(kind(message.sentence))

    async def send(self, message: Call | Stop) -> None:
        """Write a message without holding up the server: a process that is starting reads nothing yet."""
        async with self.sending:
            if self.connection is None:
                raise OSError("the process is gone")
            await asyncio.to_thread(self.connection.send, message)

    async def stop(self, number: int) -> None:
        """Let a call end with what it knows."""
        if number in self.pending:
            with suppress(OSError):
                await self.send(Stop(number))

    def lose(self, connection: Connection | None) -> None:
        """A process is gone: whoever waits for it hears of it, and the next call begins another."""
        if connection is None or connection is not self.connection:
            return
        self.connection = None
        connection.close()
        for pending in self.pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(
                    WorkerError(
                        "The process that was asked has ended, perhaps for want of memory: ask again."
                    )
                )

    def end(self) -> None:
        """End the process at once."""
        if self.process is not None and self.process.is_alive():
            self.process.kill()
        self.lose(self.connection)


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Begin a process that ignores Ctrl-C until it says otherwise: a terminal sends it to every process."""
    if not in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
