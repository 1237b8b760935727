from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture
def to_idx() -> Callable[[NDArray[np.uint8]], bytes]:
    """Write idx by the published description of the format."""

    def write(values: NDArray[np.uint8]) -> bytes:
        return struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()

    return write


@dataclass
class LocalServer:
    """A real web server on this machine: what it serves, and what it was asked for."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    cut_short: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            serving.requests.append(self.path)
            content = serving.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if self.path in serving.cut_short else content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        serving = LocalServer(f"http://127.0.0.1:{listening.server_port}/")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield serving
        listening.shutdown()
        thread.join()
