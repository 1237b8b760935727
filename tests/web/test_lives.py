"""Pages and servers come and go: two at once, one closed mid-run, one restarted, twenty for half a minute."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import expect

from .acting import choose, find_nearest
from .conftest import PATIENCE, Open, Running, running, until

SOAK_SECONDS, CLIENTS = 30.0, 20


def ask_long(page: Any) -> None:
    choose(page)
    page.get_by_role("tab", name="Nearest").click()
    page.locator("#nearest-model").select_option("mnist-cnn")
    page.locator("#nearest-norm").select_option("linf")
    page.locator("#nearest-limit").fill("500")
    page.get_by_role("button", name="Find the nearest").click()


def test_two_pages_share_the_server_and_one_waits_for_the_other(server: Running, open_page: Open) -> None:
    first, second = open_page(server.address), open_page(server.address)
    ask_long(first)
    expect(first.locator("#nearest-sentence")).to_contain_text("≤ distance ≤")
    choose(second)
    second.get_by_role("tab", name="Nearest").click()
    second.get_by_role("button", name="Find the nearest").click()
    expect(second.locator("#nearest-sentence")).to_have_text("Next in the queue…")
    first.locator("#nearest-stop").click()
    first.wait_for_selector("#nearest-result.over")
    second.wait_for_selector("#nearest-result.over")
    expect(second.locator("#nearest-sentence")).to_contain_text("this 2 is seen as 3")


def test_a_page_that_is_closed_takes_its_question_along(server: Running, open_page: Open) -> None:
    page = open_page(server.address)
    ask_long(page)
    expect(page.locator("#nearest-sentence")).to_contain_text("≤ distance ≤")
    assert server.get("/api/status")["running"] == 1
    page.close()
    until(lambda: server.get("/api/status"), lambda status: status["running"] == 0)


def test_after_a_restart_the_page_says_so_and_goes_on(open_page: Open) -> None:
    with running("--running", "1") as first:
        page = open_page(first.address, refused=True)
        ask_long(page)
        expect(page.locator("#nearest-sentence")).to_contain_text("≤ distance ≤")
        children = psutil.Process(first.process.pid).children(recursive=True)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(PATIENCE)
        gone, alive = psutil.wait_procs(children, timeout=PATIENCE)
        assert not alive, "workers end with their server, however it ended"
        expect(page.locator("#nearest-sentence")).to_contain_text("The server does not answer")
        with running("--running", "1", port=first.port):
            expect(page.locator("#nearest-sentence")).to_contain_text("The server was restarted")
            page.locator("#nearest-model").select_option("mnist-50x2")
            page.locator("#nearest-norm").select_option("l1")
            find_nearest(page)
            expect(page.locator("#nearest-sentence")).to_contain_text("this 2 is seen as 3")
            expect(page.locator("#server")).to_have_text("")
    assert gone


def test_ctrl_c_ends_the_server_and_all_that_it_began(open_page: Open) -> None:
    server = Running("--running", "1")
    page = open_page(server.address, refused=True)
    ask_long(page)
    expect(page.locator("#nearest-sentence")).to_contain_text("≤ distance ≤")
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert len(children) >= 2
    os.kill(server.process.pid, signal.SIGINT)
    assert server.process.wait(PATIENCE) == 0
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert alive == []
    server.end()


@pytest.mark.parametrize("moment", ["at once", "when it was used"])
def test_ctrl_c_on_a_terminal_is_quiet(moment: str) -> None:
    """A terminal sends it to the workers, too, whatever they are doing."""
    command = [sys.executable, "-m", "closecall", "serve", "--port", "0", "--running", "1"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    found = re.fullmatch(r"Look at (http://127.0.0.1:\d+/) \(Ctrl-C ends it\).\n", line)
    assert found is not None, line
    if moment == "when it was used":
        with httpx.Client(base_url=found[1], timeout=PATIENCE) as client:
            picture = client.get("/api/galleries/mnist").json()[0]["picture"]
            body = {"task": "nearest", "model": "mnist-cnn", "picture": picture, "norm": "linf"}
            place = f"/api/questions/{client.post('/api/questions', json=body).json()['id']}"
            until(lambda: client.get(place).json(), lambda question: question["trail"])
    os.killpg(server.pid, signal.SIGINT)
    _, complaints = server.communicate(timeout=PATIENCE)
    assert server.returncode == 0
    assert complaints == ""


def test_a_worker_that_dies_is_replaced() -> None:
    with running("--running", "1") as server:
        body = {"picture": server.picture(), "models": ["mnist-50x2"]}
        server.post("/api/predict", body)
        for child in psutil.Process(server.process.pid).children(recursive=True):
            child.kill()
        answers = [server.client.post("/api/predict", json=body).status_code for _ in range(3)]
        assert answers[-1] == 200
        answer = server.answer(task="nearest", model="mnist-50x2", picture=server.picture())
        if answer["state"] == "failed":  # the question met the worker while it was dying
            answer = server.answer(task="nearest", model="mnist-50x2", picture=server.picture())
        assert answer["answer"]["outcome"] == "nearest"


class Client(threading.Thread):
    """Draws, looks, asks and stops, as fast as the answers come, until the time is over."""

    def __init__(self, number: int, address: str, picture: Any, end: float) -> None:
        super().__init__(daemon=True)
        self.random, self.end, self.picture = random.Random(number), end, picture
        self.client = httpx.Client(base_url=address, timeout=PATIENCE)
        self.codes: Counter[int] = Counter()
        self.failures: list[str] = []

    def run(self) -> None:
        wishes = (self.predict, self.predict, self.decode, self.look, self.ask, self.overview)
        with self.client:
            while time.monotonic() < self.end:
                try:
                    self.random.choice(wishes)()
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))
                time.sleep(0.1 * self.random.random())

    def took(self, answer: httpx.Response) -> httpx.Response:
        self.codes[answer.status_code] += 1
        return answer

    def predict(self) -> None:
        models = ["mnist-50x2", "mnist-cnn-stable", "mnist-caps"]
        answer = self.took(self.client.post("/api/predict", json={"picture": self.picture, "models": models}))
        assert [one["label"] for one in answer.json()["predictions"]] == [2, 2, 2]

    def decode(self) -> None:
        capsule = [self.random.uniform(-1, 1) for _ in range(16)]
        body = {"model": "mnist-caps", "label": 2, "capsule": capsule}
        self.took(self.client.post("/api/capsules/decode", json=body))

    def look(self) -> None:
        self.took(self.client.post("/api/capsules", json={"model": "mnist-caps", "picture": self.picture}))

    def overview(self) -> None:
        self.took(self.client.get("/api/overview"))

    def ask(self) -> None:
        body = {"task": "nearest", "model": "mnist-50x2", "picture": self.picture, "time_limit": 1}
        answer = self.took(self.client.post("/api/questions", json=body))
        if answer.status_code != 202:
            return
        place = f"/api/questions/{answer.json()['id']}"
        if self.random.random() < 0.5:
            self.took(self.client.post(f"{place}/stop"))
        while self.took(self.client.get(place)).json()["state"] in ("waiting", "running"):
            time.sleep(0.2)


@pytest.mark.usefixtures("server")
def test_twenty_clients_for_half_a_minute_all_get_their_answers(server: Running) -> None:
    end = time.monotonic() + SOAK_SECONDS
    clients = [Client(number, server.address, server.picture(), end) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(SOAK_SECONDS + PATIENCE)
        assert not client.is_alive()
    codes = sum((client.codes for client in clients), Counter[int]())
    assert [failure for client in clients for failure in client.failures] == []
    assert set(codes) <= {200, 202, 429}
    assert codes[200] > 20 * CLIENTS
    assert all(sum(client.codes.values()) > 5 for client in clients), "nobody starves"
    until(lambda: server.get("/api/status"), lambda status: status["running"] == status["waiting"] == 0)
