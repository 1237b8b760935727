"""How quickly the page of `closecall serve` answers: a stroke, a slider, a question; as a browser would ask.

    python benchmarks/serve.py [--rounds N]

Prints medians and the slowest of all rounds, in milliseconds, measured at the client through HTTP.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np

MODELS = ["mnist-50x2", "mnist-cnn-stable", "mnist-caps"]


def request(address: str, path: str, body: object = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(address + path, content, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        return json.load(answer)


def drawing() -> dict[str, Any]:
    """A seven on a canvas of 140 × 140, as the page sends it."""
    canvas = np.zeros((140, 140), dtype=np.uint8)
    canvas[30:40, 40:100] = 255
    for row in range(40, 120):
        middle = 95 - (row - 40) // 2
        canvas[row, middle - 5 : middle + 5] = 255
    return {"shape": [1, 140, 140], "pixels": base64.b64encode(canvas.tobytes()).decode()}


def measure(name: str, work: Callable[[], object], rounds: int) -> None:
    work()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - began))
    print(f"{name:52} median {statistics.median(taken):7.1f} ms   slowest {max(taken):7.1f} ms")


def answered(address: str, body: dict[str, Any]) -> Any:
    """The answer to a question, asked about every 10 ms."""
    place = f"api/questions/{request(address, 'api/questions', body)['id']}"
    while (question := request(address, place))["state"] in ("waiting", "running"):
        time.sleep(0.01)
    return question["answer"]


def main() -> None:
    parser = argparse.ArgumentParser(description="How quickly the page answers.")
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    began = time.perf_counter()
    command = [sys.executable, "-m", "closecall", "serve", "--port", "0", "--json", "--running", "1"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout is None:
            raise SystemExit("The server says nothing.")
        address = json.loads(server.stdout.readline())["address"]
        print(f"{'from the command to a page':52} {1000 * (time.perf_counter() - began):14.1f} ms")
        stroke = {"picture": drawing(), "models": MODELS, "centre": True}
        seen = request(address, "api/predict", stroke)
        print(
            f"{'from the command to a first prediction':52} {1000 * (time.perf_counter() - began):14.1f} ms"
        )
        looked = {"model": MODELS[2], "picture": seen["picture"]}
        capsule = request(address, "api/capsules", looked)
        label = capsule["label"]
        moved = {"model": MODELS[2], "label": label, "capsule": capsule["capsules"][label]}
        measure("a stroke: three networks", lambda: request(address, "api/predict", stroke), rounds)
        measure("a slider: one capsule", lambda: request(address, "api/capsules/decode", moved), rounds)
        measure("capsules and routing", lambda: request(address, "api/capsules", looked), rounds)
        certify = {
            "task": "certify",
            "model": MODELS[0],
            "picture": seen["picture"],
            "radius": 0.01,
            "norm": "linf",
        }
        measure("certify, mnist-50x2, L∞ 0.01", lambda: answered(address, certify), min(rounds, 20))
        nearest = {"task": "nearest", "model": MODELS[0], "picture": seen["picture"]}
        measure("nearest, mnist-50x2, L1", lambda: answered(address, nearest), min(rounds, 10))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
