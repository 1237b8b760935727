"""The real server in a process of its own, and a real browser to look at its page with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
PATIENCE = 90.0  # seconds; only what hangs takes as long
expect.set_options(timeout=1000 * PATIENCE)
GALLERY_TWO = 9  # a two, whose nearest image mnist-50x2 answers in a second


class Running:
    """A server that was started from the command line."""

    def __init__(self, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "closecall", "serve", "--port", str(port), "--json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        told = self.process.stdout.readline()
        assert told, f"the server ended with {self.process.wait()}"
        self.told: dict[str, Any] = json.loads(told)
        self.address: str = self.told["address"]
        self.port = int(self.address.rstrip("/").rpartition(":")[2])
        self.client = httpx.Client(base_url=self.address, timeout=PATIENCE)

    def get(self, path: str, **how: Any) -> Any:
        answer = self.client.get(path, **how)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object = None, code: int = 200, **how: Any) -> Any:
        answer = self.client.post(path, json=body, **how)
        assert answer.status_code == code, answer.text
        return answer.json()

    def picture(self, number: int = GALLERY_TWO) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/api/galleries/mnist")[number]["picture"]
        return found

    def ask(self, **body: Any) -> str:
        identity: str = self.post("/api/questions", body, code=202)["id"]
        return identity

    def answer(self, **body: Any) -> Any:
        """Where a question stands when it is over."""
        identity = self.ask(**body)
        return until(lambda: self.get(f"/api/questions/{identity}"), is_over)

    def end(self) -> int:
        self.client.close()
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def is_over(question: Any) -> bool:
    return question["state"] not in ("waiting", "running")


def until(look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """What is seen as soon as something holds of it."""
    end = time.monotonic() + PATIENCE
    while not holds(seen := look()):
        assert time.monotonic() < end, f"still {seen!r}"
        time.sleep(0.05)
    return seen


@contextmanager
def running(*options: str, port: int = 0) -> Iterator[Running]:
    server = Running(*options, port=port)
    try:
        yield server
    finally:
        server.end()


@pytest.fixture(scope="session")
def server(brightest: Path) -> Iterator[Running]:
    """One for most tests, with a model of the user's own and one question at a time."""
    with running("--running", "1", "--model", str(brightest)) as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """For one file of tests only: while it is driven, nothing else can have an event loop in this thread."""
    if CHROMIUM is None:
        pytest.skip("no Chromium to look with: install the package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


Open = Callable[..., Page]


def harmless(said: ConsoleMessage, refused: bool) -> bool:
    """What is only logged; and, where a test gives bad input or ends the server, that a request failed."""
    failed = said.text.startswith("Failed to load resource")
    return said.type == "log" or (refused and failed)


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Open]:
    """Opens pages and, at the end, finds that no console had anything to complain about."""
    complaints: list[str] = []
    contexts = []

    def open_one(
        address: str, *, width: int = 1280, height: int = 820, scheme: str = "light", refused: bool = False
    ) -> Page:
        how: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
        context = chromium.new_context(**how, has_touch=width < 600, permissions=["clipboard-write"])
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if not harmless(said, refused) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the page go: `make screenshots` puts them among the images of the docs."""
    wanted = os.environ.get("CLOSECALL_SCREENSHOTS")
    return Path(wanted) if wanted else tmp_path_factory.mktemp("screenshots")
