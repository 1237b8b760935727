"""Run the server: find a free place to listen, say where it is, and end without leaving anything behind."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from closecall.errors import InputError, ModelError
from closecall.web.app import create_app
from closecall.web.catalogue import Model, onnx_model, own_folder, zoo_model
from closecall.web.desk import read_apart
from closecall.web.limits import Limits

GRACE = 3  # seconds for requests that are being answered when the server ends


class Server(uvicorn.Server):
    """A server that ends at the first Ctrl-C, with all streams closed, and says when it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Heed Ctrl-C and SIGTERM; unlike uvicorn's own way, without raising them again in the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        app: Any = self.config.app
        app.state.desk.questions.closing = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self.on_ready()


def serve(
    own: Sequence[Model],
    limits: Limits,
    *,
    host: str,
    port: int,
    names: Collection[str],
    on_ready: Callable[[str], None],
) -> None:
    """Serve until a signal ends it; `on_ready` is given the address."""
    listening = listen(host, port)
    app = create_app(list(own), limits, host=host, names=names)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=GRACE,
        limit_concurrency=1000, h11_max_incomplete_event_size=64 * 1024,
    )  # fmt: skip
    address = address_of(listening)
    with listening:
        Server(config, lambda: on_ready(address)).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens where it was asked to, or a sentence about why it cannot."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise InputError(f"{host} is no address to listen at ({error}): try 127.0.0.1.") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"Port {port} of {host} cannot be used ({reason}): choose another by --port."
        ) from error
    return listening


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}/"


def read_own(models: Sequence[str], input_shape: tuple[int, ...] | None, limits: Limits) -> list[Model]:
    """The user's own models, read before anything is served, so that a mistake is told at once."""
    return [read_one(model, input_shape, limits) for model in models]


def read_one(model: str, input_shape: tuple[int, ...] | None, limits: Limits) -> Model:
    path = Path(model)
    if model.startswith("zoo:"):
        return zoo_model(model.removeprefix("zoo:"))
    if path.is_dir():
        return own_folder(path)
    if path.suffix.lower() != ".onnx" or not path.is_file():
        raise ModelError(
            f"{model} is not a model: give an .onnx file, a folder that `closecall train` wrote, or zoo:NAME."
        )
    place = str(path.resolve())
    facts = asyncio.run(read_apart(path.name, place, input_shape, limits))
    return onnx_model(path.name, place, facts)
