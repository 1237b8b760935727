"""A real browser to look at pages with: headless Chromium, spoken to over its own pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0  # seconds; only a browser that hangs takes as long
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from file descriptor 3 and answers on 4.
START = 'exec "$@" 3<&"$READ_FROM" 4>&"$WRITE_TO"'


class Browser:
    """Chromium and one page in it; messages of the DevTools protocol end with a NUL byte."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        read_from, self.commands = clear_pipe()
        self.answers, write_to = clear_pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", START, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(read_from, write_to),
            env=os.environ | {"READ_FROM": str(read_from), "WRITE_TO": str(write_to)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_from)
        os.close(write_to)
        self.received = b""
        self.count = 0
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{part}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for one thing and wait for its answer; events that come first are kept."""
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.received:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"Chromium said nothing for {PATIENCE} s"
            content = os.read(self.answers, 1 << 16)
            assert content, f"Chromium ended with {self.process.wait()}"
            self.received += content
        first, self.received = self.received.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        return message

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of a size, light or dark, and wait until all of it is there."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not self.seen("Page.loadEventFired"):
            self.events.append(self.receive())

    def seen(self, method: str) -> list[dict[str, Any]]:
        """What was said of one kind since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Press and release the mouse in the middle of an element."""
        chosen = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{chosen}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.run(f"{chosen}.getBoundingClientRect().toJSON()")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """The whole page as a picture, for a person to look at."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self.session = None
        self.send("Browser.close")
        os.close(self.commands)
        self.process.wait(PATIENCE)
        os.close(self.answers)


def clear_pipe() -> tuple[int, int]:
    """A pipe whose ends are out of the way of descriptors 3 and 4."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium to look with: install the package chromium")
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()
