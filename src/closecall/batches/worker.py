"""What happens on a worker: models are read once, questions asked, and all of them stopped when told to."""

from __future__ import annotations

import ctypes
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin, get_worker

from closecall.batches.answers import Reply
from closecall.batches.asking import StoppableClock, ask
from closecall.batches.items import Contender, Item
from closecall.clock import in_main_thread
from closecall.errors import InputError, ModelError
from closecall.models.folders import model_files
from closecall.models.zoo import ZOO_PREFIX
from closecall.question.effort import Effort
from closecall.readers import Classifier, read

SECONDS_TOGETHER = 0.1  # quick questions are asked together for so long: a message costs milliseconds


@dataclass(frozen=True)
class Sent:
    """A model on its way: a name of the zoo, the files it is made of, or a module that was pickled here."""

    name: str
    input_shape: tuple[int, ...] | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    module: bytes = b""

    @classmethod
    def of(cls, contender: Contender) -> Sent:
        model = contender.model
        if isinstance(model, Classifier):
            model = model.source
        if not isinstance(model, (str, Path)):
            from distributed.protocol import pickle as by_value

            return cls(contender.name, contender.input_shape, module=by_value.dumps(model))
        path = Path(model)
        if str(model).startswith(ZOO_PREFIX):
            return cls(str(model), contender.input_shape)
        if not path.exists():
            raise InputError(
                f"{contender.name} cannot be sent to other processes: give the model itself, not what "
                "closecall.read made of it, or ask in this process with workers=0."
            )
        files = [path] if path.is_file() else [*model_files(path)]
        contents = {file.name: file.read_bytes() for file in files}
        return cls(path.name, contender.input_shape, contents)

    def read(self) -> Classifier:
        """The model again, from what was sent."""
        if self.module:
            return ready(read(pickle.loads(self.module), self.input_shape))  # noqa: S301 (from our own batch)
        if not self.files:
            return ready(read(self.name, self.input_shape))
        with tempfile.TemporaryDirectory(prefix="closecall-") as folder:
            for name, content in self.files.items():
                (Path(folder) / name).write_bytes(content)
            alone = len(self.files) == 1
            return ready(read(Path(folder) / self.name if alone else folder, self.input_shape))


def ready(classifier: Classifier) -> Classifier:
    """With its engines made while the files are there."""
    classifier.prepare()
    return classifier


SENT: dict[str, Sent] = {}
CLASSIFIERS: dict[str, Classifier] = {}
RUNNING: dict[str, tuple[StoppableClock, int]] = {}  # by question: its clock and its thread
STOPPED: set[str] = set()  # batches that are over
LOCK = threading.Lock()


class SendModels(WorkerPlugin):  # type: ignore[misc] # dask has no types
    """Brings the models to each worker once, also to one that joins later."""

    def __init__(self, models: Mapping[str, Sent], *, ignore_interrupts: bool) -> None:
        self.models, self.ignore_interrupts = dict(models), ignore_interrupts

    def setup(self, worker: Any) -> None:
        SENT.update(self.models)
        if self.ignore_interrupts and in_main_thread():
            # A terminal sends Ctrl-C to every process; what it means is for the coordinating one to say.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def classifier_of(fingerprint: str) -> Classifier:
    """A model that was sent, read at its first question; it must be the very network that was asked about."""
    if fingerprint not in CLASSIFIERS:
        found = SENT[fingerprint].read()
        if found.network.fingerprint != fingerprint:
            raise ModelError(
                f"{found.source} is another network on this worker (sha256 {found.network.fingerprint[:12]}… "
                f"and not {fingerprint[:12]}…): install the same closecall everywhere."
            )
        CLASSIFIERS[fingerprint] = found
    return CLASSIFIERS[fingerprint]


def ask_here(items: Sequence[Item], effort: Effort, batch: str) -> list[Reply] | str:
    """Answer questions for as long as they are quick, at least one, or say why this worker cannot.

    Answers do not wait for a question that turns out to be hard: they are sent ahead of its first interval.
    Fewer answers than questions: time was over, or the batch was stopped before anything was known.
    """
    worker = get_worker()
    replies: list[Reply] = []
    sent = 0

    def tell(*interval: Any) -> None:
        nonlocal sent
        if len(replies) > sent:
            worker.log_event(batch, ("replies", pickle.dumps(replies[sent:])))
            sent = len(replies)
        worker.log_event(batch, ("interval", interval))

    began = time.perf_counter()
    try:
        for item in items:
            if replies and time.perf_counter() - began > SECONDS_TOGETHER:
                break
            clock = StoppableClock(effort.time_limit)
            with running(item.key, clock, batch):
                replies.append(ask(classifier_of(item.network), item, effort, clock, tell))
    except KeyboardInterrupt:
        pass
    except Exception as error:  # as a sentence: not every error finds its way back
        return f"{type(error).__name__}: {error}"
    return replies[sent:]


@contextmanager
def running(key: str, clock: StoppableClock, batch: str) -> Iterator[None]:
    """Let `stop_all` reach a search for as long as it runs, and nothing after it."""
    thread = threading.get_ident()
    with LOCK:
        if batch in STOPPED:
            raise KeyboardInterrupt
        RUNNING[key] = clock, thread
    try:
        yield
    finally:
        with LOCK:
            del RUNNING[key]
            raise_in(thread, None)


def stop_all(batch: str) -> None:
    """End every running search with what it has proven, and begin no other of this batch."""
    with LOCK:
        STOPPED.add(batch)
        for clock, thread in RUNNING.values():
            clock.pressed = True
            raise_in(thread, KeyboardInterrupt)


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in another thread as soon as it runs Python again, as Ctrl-C does in the main thread."""
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
