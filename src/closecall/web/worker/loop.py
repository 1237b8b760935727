"""The life of a worker: calls are done one by one, and the one at work can be stopped at any moment."""

from __future__ import annotations

import importlib
import logging
import os
import queue
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any

from closecall.errors import ClosecallError
from closecall.web.messages import Call, Done, Refused, Stop, Told

log = logging.getLogger(__name__)

# Where each task is; the module is imported when the first call asks for it.
TASKS = {
    "ask": "asking",
    "warm": "predicting",
    "predict": "predicting",
    "read_picture": "pictures",
    "read_model": "reading",
    "look": "capsules",
    "decode": "capsules",
    "pull_apart": "overlapping",
}


# How libraries say it that are not written in Python.
OUT_OF_MEMORY = (
    "allocate memory",
    "bad_alloc",
    "bad allocation",
    "failed to map segment",
    "Unable to allocate",
)


def run(connection: Connection, memory: int) -> None:
    """What a new process does until its server is gone."""
    limit_memory(memory)
    one_thread()
    Loop(connection).run()


class Loop:
    """Does calls in the main thread, where Ctrl-C ends a search with what it knows; a thread listens."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self.stopped: set[int] = set()
        self.at_work: int | None = None
        self.writing = threading.Lock()
        self.main_is_writing = self.interrupted_writing = False

    def run(self) -> None:
        signal.signal(signal.SIGINT, self.interrupt)
        threading.Thread(target=self.listen, name="closecall-listener", daemon=True).start()
        while True:
            self.do(self.calls.get())

    def listen(self) -> None:
        """Take messages; when nobody is left to send one, the process has no purpose."""
        try:
            while True:
                message = self.connection.recv()
                if isinstance(message, Stop):
                    self.stopped.add(message.number)
                    if self.at_work == message.number:
                        press_ctrl_c()
                else:
                    self.calls.put(message)
        except (EOFError, OSError):
            os._exit(0)

    def interrupt(self, number: int, frame: Any) -> None:
        """Raise in the main thread only if the call at work was to be stopped, and never amid a message."""
        if self.at_work not in self.stopped:
            return
        if self.main_is_writing:
            self.interrupted_writing = True
        else:
            raise KeyboardInterrupt

    def do(self, call: Call) -> None:
        try:
            self.at_work = call.number
            if call.number in self.stopped:
                raise KeyboardInterrupt
            home = importlib.import_module(f"closecall.web.worker.{TASKS[call.task]}")
            result = getattr(home, call.task)(self.teller(call.number), **call.arguments)
            self.at_work = None
            self.send(Done(call.number, result))
        except KeyboardInterrupt:
            self.at_work = None
            self.send(Refused(call.number, "It was stopped before anything was known."))
        except ClosecallError as error:
            self.at_work = None
            self.send(Refused(call.number, str(error)))
        except Exception as error:
            self.at_work = None
            self.send(self.explained(call, error))
        self.stopped.discard(call.number)

    def explained(self, call: Call, error: Exception) -> Refused:
        """What nobody meant to happen: the log has it all, the page a sentence."""
        if any(words in str(error) for words in OUT_OF_MEMORY) or isinstance(error, MemoryError):
            return Refused(call.number, "Memory ran out: ask about a smaller network or image.")
        log.error("%s failed", call.task, exc_info=error)
        sentence = "Something went wrong that should not have: what was running said more on its terminal."
        return Refused(call.number, sentence, expected=False)

    def teller(self, number: int) -> Any:
        return lambda what: self.send(Told(number, what))

    def send(self, message: object) -> None:
        """Write one whole message, also when a stop comes in between."""
        in_main = threading.current_thread() is threading.main_thread()
        with self.writing:
            self.main_is_writing = in_main
            try:
                self.connection.send(message)
            finally:
                self.main_is_writing = False
        if in_main and self.interrupted_writing:
            self.interrupted_writing = False
            if self.at_work in self.stopped:
                raise KeyboardInterrupt


def press_ctrl_c() -> None:
    """Interrupt the main thread, also while it waits for a solver."""
    if hasattr(signal, "pthread_kill"):
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)
    else:  # on Windows a thread can only be told at its next step
        import _thread

        _thread.interrupt_main()


def limit_memory(most: int) -> None:
    """Take no more address space than this, so that a model cannot fill the machine; not on Windows."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    within = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (within, hard))


def one_thread() -> None:
    """Keep libraries to one core for each process: several processes share the machine."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
