"""What a stranger may not do: ask from another site, send too much, reach the disk, or stay for ever."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import httpx
import numpy as np
import onnx
import pytest
from fastapi import FastAPI
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from closecall.errors import ClosecallError
from closecall.web.desk import read_apart
from closecall.web.guard import Guard
from closecall.web.limits import MEGABYTE, Limits
from closecall.web.process import WorkerError

from .conftest import Running, running, until


def error_of(answer: httpx.Response, code: int) -> str:
    """The sentence of a refusal, which has nothing of a traceback in it."""
    assert answer.status_code == code, answer.text
    assert set(answer.json()) == {"error"}
    sentence: str = answer.json()["error"]
    assert sentence.rstrip(".")
    assert sentence.endswith(".")
    assert "Traceback" not in sentence
    assert "closecall-serve-" not in sentence  # the folder of the server's own
    return sentence


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:8787", "", "[::1"])
def test_only_its_own_name_is_answered(server: Running, host: str) -> None:
    assert "own name" in error_of(server.client.get("/", headers={"Host": host}), 403)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost:8787"]
)
def test_only_its_own_page_may_ask(server: Running, origin: str) -> None:
    answer = server.client.post("/api/questions", headers={"Origin": origin}, json={})
    assert "another page" in error_of(answer, 403)


def test_its_own_page_and_a_shell_may_ask(server: Running) -> None:
    own = {"Origin": server.address.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert server.client.get("/api/status", headers=own).status_code == 200
    assert server.client.get("/api/status").status_code == 200
    foreign = server.client.get("/api/status", headers={"Sec-Fetch-Site": "cross-site"})
    assert "another site" in error_of(foreign, 403)


def test_bound_to_all_addresses_only_addresses_and_given_names_are_answered() -> None:
    guard = Guard(FastAPI(), host="0.0.0.0", names=["lab.example"], limits=Limits())  # noqa: S104
    for host in ("192.168.1.7:8787", "[fe80::1]:8787", "LAB.example:80", "localhost"):
        assert guard.is_ours(host), host
    for host in ("evil.example", "lab.example.evil.example", "", "[::1"):
        assert not guard.is_ours(host), host


def test_it_listens_on_this_machine_alone(server: Running) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.2:{server.port}/", timeout=5)


def test_the_page_runs_no_script_but_its_own_files(server: Running) -> None:
    answer = server.client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = Elements()
    page.feed(answer.text)
    assert page.addresses
    for address in page.addresses:
        assert address.startswith("/"), "nothing comes from elsewhere"
        assert server.client.get(address).status_code == 200
    assert page.inline == []


class Elements(HTMLParser):
    """What a page loads, and what is written into it that a policy must forbid."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "link", "img"):
            self.addresses.append(given.get("src") or given.get("href") or "")
        self.inline += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page/index.html", "/main.py"]
)
def test_no_path_leads_to_the_disk(server: Running, path: str) -> None:
    assert error_of(server.client.get(path), 404) == "There is nothing at this address."


def test_no_file_of_an_answer_but_those_listed(server: Running) -> None:
    identity = server.answer(
        task="certify", model="mnist-50x2", picture=server.picture(), radius=0.001, norm="linf"
    )["id"]
    for name in ("..%2F..%2Fetc%2Fpasswd", "witness.npy", "model.onnx"):
        assert error_of(server.client.get(f"/api/questions/{identity}/files/{name}"), 404)
    assert server.client.get(f"/api/questions/{identity}/files/original.npy").status_code == 200


def chunks(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield bytes(2**20)


def test_a_body_may_not_be_too_large_announced_or_not(server: Running) -> None:
    assert "at most" in error_of(server.client.post("/api/predict", content=bytes(3 * 2**20)), 413)
    assert "at most" in error_of(server.client.post("/api/pictures", content=chunks(10)), 413)
    assert "at most" in error_of(server.client.post("/api/predict", content=chunks(4)), 413)
    with pytest.raises(httpx.HTTPError):  # it is closed before all of it is sent, or refused
        server.client.post("/api/models?name=a.onnx", content=bytes(65 * 2**20)).raise_for_status()


def test_a_picture_may_not_be_too_large_or_something_else(server: Running) -> None:
    wide = io.BytesIO()
    Image.new("1", (5000, 2)).save(wide, format="PNG")
    sentence = error_of(server.client.post("/api/pictures", content=wide.getvalue()), 400)
    assert sentence == "The picture is 5000 × 2 pixels: at most 4096 × 4096 are taken."
    for content in (b"", b"hello", wide.getvalue()[:40], b"GIF89a" + bytes(100)):
        assert "PNG or JPEG" in error_of(server.client.post("/api/pictures", content=content), 400)


def upload(server: Running, content: bytes, name: str = "mine.onnx") -> httpx.Response:
    return server.client.post("/api/models", params={"name": name}, content=content)


def test_only_an_onnx_file_is_a_model(server: Running, brightest: Path) -> None:
    content = brightest.read_bytes()
    assert ".onnx" in error_of(upload(server, content, "model.pt"), 400)
    assert "not an ONNX file" in error_of(upload(server, b"PK\x03\x04" + bytes(100)), 400)
    assert error_of(upload(server, b"\x08" + bytes(100)), 400)
    assert error_of(upload(server, content[:-20]), 400)


def test_a_name_never_becomes_a_path(server: Running, brightest: Path) -> None:
    answer = upload(server, brightest.read_bytes(), "../../<b>evil</b>/x.onnx")
    assert answer.status_code == 201
    assert not re.search(r"[/<>\\]", answer.json()["name"])


def test_weights_beside_the_file_are_not_there_to_be_read(server: Running) -> None:
    """A model whose weights point to another file of the disk."""
    weights = numpy_helper.from_array(np.zeros((4, 2), dtype=np.float32), "w")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "../../../../etc/passwd"), ("offset", "0"), ("length", "32")):
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    content = one_layer(weights)
    assert "not a file inside the model's own folder" in error_of(upload(server, content), 400)


def test_a_model_that_asks_for_all_memory_is_refused_and_the_server_lives(server: Running) -> None:
    """Four bytes of weights that are to be expanded to forty gigabytes."""
    one = numpy_helper.from_array(np.ones((1, 1), dtype=np.float32), "one")
    sizes = numpy_helper.from_array(np.array([4, 2_500_000_000], dtype=np.int64), "sizes")
    nodes = [
        helper.make_node("Expand", ["one", "sizes"], ["w"]),
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["scores"]),
    ]
    answer = upload(server, saved(nodes, [one, sizes], 2_500_000_000))
    assert error_of(answer, 400)
    assert server.client.get("/api/status").status_code == 200


def one_layer(weights: TensorProto) -> bytes:
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["scores"]),
    ]
    return saved(nodes, [weights], 2)


def saved(nodes: list[onnx.NodeProto], constants: list[TensorProto], classes: int) -> bytes:
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 2, 2])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, classes])
    graph = helper.make_graph(nodes, "g", [image], [scores], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def read_within(limits: Limits, path: Path) -> object:
    """In a thread of its own: a browser that is driven has its event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(read_apart("mine.onnx", str(path), None, limits))).result()


def test_a_model_that_takes_too_long_to_read_is_given_up(brightest: Path) -> None:
    hasty = Limits(reader_seconds=0.01)
    with pytest.raises(WorkerError, match=r"took longer than 0 seconds and was ended"):
        read_within(hasty, brightest)


def test_a_reader_without_memory_is_one_sentence(brightest: Path) -> None:
    poor = Limits(reader_memory=200 * MEGABYTE)
    with pytest.raises(ClosecallError, match=r"memory|Memory"):
        read_within(poor, brightest)


def test_workers_take_no_more_memory_than_they_may() -> None:
    program = (
        "from closecall.web.worker.loop import limit_memory; limit_memory(2**30)\n"
        "try:\n    bytearray(2**31)\nexcept MemoryError:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_a_question_that_nobody_looks_at_is_stopped(server: Running) -> None:
    asked = time.monotonic()
    server.ask(task="nearest", model="mnist-cnn", picture=server.picture(), norm="linf", time_limit=500)
    until(lambda: server.get("/api/status"), lambda status: status["running"] == 1)
    until(lambda: server.get("/api/status"), lambda status: status["running"] == 0)
    assert time.monotonic() - asked < 400


def test_questions_have_a_longest_time_and_a_longest_queue() -> None:
    with running("--running", "1", "--time-limit", "100") as server:
        body = {"task": "nearest", "model": "mnist-cnn", "picture": server.picture(), "norm": "linf"}
        too_long = server.client.post("/api/questions", json={**body, "time_limit": 101})
        assert error_of(too_long, 400) == "The time limit here is at most 100 seconds."
        codes = [server.client.post("/api/questions", json=body).status_code for _ in range(40)]
        assert codes[:32] == [202] * 32
        full = server.client.post("/api/questions", json=body)
        assert "questions are waiting already" in error_of(full, 429)
        assert set(codes) == {202, 429}


WRONG = {
    "task": ({"task": "guess"}, 422, "task: input should be"),
    "no picture": ({"picture": None}, 400, "is asked about a picture"),
    "other shape": ({"model": "cifar-cnn-robust"}, 400, "takes images of shape [3, 32, 32], not [1, 28, 28]"),
    "no such model": ({"model": "mnist-dnn9"}, 404, "There is no model 'mnist-dnn9' here"),
    "no such class": ({"target": 12}, 200, "the target must be from 0 to 9, got 12."),
    "its own class": ({"target": 2}, 200, "the target 2 is the label itself"),
    "no radius": ({"task": "certify"}, 400, "needs a radius"),
    "negative": ({"time_limit": -1}, 422, "time_limit: input should be greater than 0"),
    "no base64": ({"picture": {"shape": [1, 28, 28], "pixels": "!"}}, 400, "given in base64"),
    "too few": ({"picture": {"shape": [1, 28, 28], "pixels": "AAAA"}}, 400, "has 784 bytes, not 3"),
    "something else": ({"colour": "red"}, 422, "colour: extra inputs"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_every_mistake_has_its_sentence(server: Running, mistake: str) -> None:
    changed, code, words = WRONG[mistake]
    body = {"task": "nearest", "model": "mnist-50x2", "picture": server.picture(), "norm": "l1", **changed}
    if code == 200:  # what only the search can know
        question = server.answer(**body)
        assert question["state"] == "failed"
        assert words in question["sentence"]
    else:
        assert words in error_of(server.client.post("/api/questions", json=body), code)


def test_no_json_at_all(server: Running) -> None:
    how = {"Content-Type": "application/json"}
    assert error_of(server.client.post("/api/questions", content=b"{", headers=how), 422)
    deep = server.client.post("/api/questions", content=b"[" * 100_000, headers=how)
    assert error_of(deep, 400) == "The body of this request is not JSON that can be read."
    assert "does not take" in error_of(server.client.delete("/api/status"), 405)
