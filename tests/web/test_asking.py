"""Questions through the real server, beside closecall's own functions and torch."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from closecall import certify, nearest
from closecall.readers import read
from closecall.verdict.checking import check_files, check_verdict
from closecall.verdict.saved import load_verdict

from .conftest import Running, is_over, until
from .pictures import DEFAULTS, pixels, seen_by_torch


def test_the_nearest_image_is_the_one_that_closecall_finds(server: Running) -> None:
    picture = server.picture()
    answer = server.answer(task="nearest", model="mnist-50x2", picture=picture)["answer"]
    expected = nearest("zoo:mnist-50x2", pixels(picture))
    assert answer["outcome"] == expected.outcome == "nearest"
    assert answer["proven"]
    assert answer["distance"] == pytest.approx(expected.distance, rel=1e-3)
    assert answer["lower"] <= answer["distance"]
    witness = pixels(answer["witness"])
    assert np.abs(witness - pixels(picture)).sum() == pytest.approx(answer["distance"], rel=1e-5)
    assert seen_by_torch("mnist-50x2", witness).argmax() == answer["became"] != answer["label"]


def test_target_and_cap_are_heeded(server: Running) -> None:
    picture = server.picture()
    asked = {"target": 7, "cap": 0.5, "time_limit": 30}
    answer = server.answer(task="nearest", model="mnist-50x2", picture=picture, **asked)["answer"]
    assert answer["became"] == 7
    assert np.abs(pixels(answer["witness"]) - pixels(picture)).max() <= 0.5 + 1e-6


def test_the_stream_tells_an_interval_that_only_shrinks_and_the_best_images(server: Running) -> None:
    identity = server.ask(task="nearest", model="mnist-cnn-stable", picture=server.picture(), norm="linf")
    told = read_events(server, identity)
    kinds = [kind for kind, _ in told]
    assert kinds[0] == "question"
    assert kinds[-1] == "end"
    assert {"progress", "best"} <= set(kinds)
    answer = next(what for kind, what in reversed(told) if kind == "question")["answer"]
    intervals = [(what["lower"], what["upper"]) for kind, what in told if kind == "progress"]
    lowers, uppers = ([end for end in ends if end is not None] for ends in zip(*intervals, strict=True))
    assert lowers == sorted(lowers)
    assert uppers == sorted(uppers, reverse=True)
    assert all(low <= answer["distance"] * (1 + 1e-3) for low in lowers)
    for kind, what in told:
        if kind == "best":
            image = pixels(what["picture"])
            assert seen_by_torch("mnist-cnn-stable", image).argmax() == what["label"]


def read_events(server: Running, identity: str) -> list[tuple[str, Any]]:
    told, kind = [], ""
    with server.client.stream("GET", "/api/events", params={"question": identity}) as lines:
        for line in lines.iter_lines():
            name, _, rest = line.partition(": ")
            if name == "event":
                kind = rest
            elif name == "data":
                told.append((kind, json.loads(rest)))
    return told


def test_stop_keeps_the_best(server: Running) -> None:
    identity = server.ask(
        task="nearest", model="mnist-cnn", picture=server.picture(), norm="linf", time_limit=300
    )
    place = f"/api/questions/{identity}"
    until(
        lambda: server.get(place),
        lambda question: question["best"] and question["trail"] and question["trail"][-1][1],
    )
    server.post(f"{place}/stop", code=202)
    answer = until(lambda: server.get(place), is_over)["answer"]
    assert answer["outcome"] == "adversarial"
    assert 0 < answer["lower"] < answer["distance"]
    assert answer["seconds"] < 200
    assert seen_by_torch("mnist-cnn", pixels(answer["witness"])).argmax() == answer["became"]


def test_the_files_of_an_answer_can_be_replayed(server: Running, tmp_path: Path) -> None:
    question = server.answer(task="nearest", model="mnist-50x2", picture=server.picture())
    place = f"/api/questions/{question['id']}/files"
    with zipfile.ZipFile(io.BytesIO(server.client.get(f"{place}/answer.zip").content)) as archive:
        archive.extractall(tmp_path)
    saved = load_verdict(tmp_path)
    checks = [*check_files(saved), *check_verdict(saved, read(saved.model))]
    assert len(checks) > 10
    assert all(check.holds for check in checks)
    witness = np.load(io.BytesIO(server.client.get(f"{place}/witness.npy").content))
    np.testing.assert_array_equal(witness, pixels(question["answer"]["witness"]))
    with Image.open(io.BytesIO(server.client.get(f"{place}/witness.png").content)) as png:
        assert png.size == (28, 28)


def test_certify_says_that_none_can_or_shows_one(server: Running) -> None:
    picture = server.picture()
    for radius in (0.005, 0.2):
        asked = {"norm": "linf", "radius": radius, "time_limit": 60}
        answer = server.answer(task="certify", model="mnist-50x2", picture=picture, **asked)["answer"]
        expected = certify("zoo:mnist-50x2", pixels(picture), radius=radius)
        assert answer["outcome"] == expected.outcome
        if radius == 0.005:
            assert answer["sentence"] == "No image within L∞ 0.005 can change this 2: proven."
        else:
            assert np.abs(pixels(answer["witness"]) - pixels(picture)).max() <= radius + 1e-6


@pytest.mark.parametrize("model", DEFAULTS)
def test_the_ideal_three_is_seen_as_a_three(server: Running, model: str) -> None:
    answer = server.answer(task="ideal", model=model, target=3, time_limit=2)["answer"]
    scores = seen_by_torch(model, pixels(answer["witness"]))
    assert scores.argmax() == 3
    lead = scores[3] - np.delete(scores, 3).max()
    assert answer["distance"] == pytest.approx(lead, rel=1e-3)
    assert (answer["lower"] is None) == (model == "mnist-caps")


def test_capsules_have_a_proven_interval(server: Running) -> None:
    picture = server.picture()
    asked = {"norm": "linf", "time_limit": 20}
    answer = server.answer(task="nearest", model="mnist-caps", picture=picture, **asked)["answer"]
    assert answer["outcome"] == "adversarial"
    assert 0.002 < answer["lower"] < answer["distance"]
    assert seen_by_torch("mnist-caps", pixels(answer["witness"])).argmax() == answer["became"] != 2
    within = {"norm": "linf", "radius": 0.002, "time_limit": 20}
    sure = server.answer(task="certify", model="mnist-caps", picture=picture, **within)["answer"]
    assert sure["sentence"] == "No image within L∞ 0.002 can change this 2: proven."


def test_capsules_are_asked_for_a_target_within_a_cap(server: Running) -> None:
    picture = server.picture()
    asked = {"target": 7, "cap": 0.6, "norm": "l2", "time_limit": 6}
    answer = server.answer(task="nearest", model="mnist-caps", picture=picture, **asked)["answer"]
    change = pixels(answer["witness"]) - pixels(picture)
    assert answer["became"] == 7
    assert np.abs(change).max() <= 0.6 + 1e-6
    assert answer["distance"] == pytest.approx(np.linalg.norm(change), rel=1e-4)


def test_questions_queue_and_leave_the_queue(server: Running) -> None:
    body = {
        "task": "nearest",
        "model": "mnist-cnn",
        "picture": server.picture(),
        "norm": "l1",
        "time_limit": 200,
    }
    first, second, third = (server.ask(**body) for _ in range(3))
    until(lambda: server.get(f"/api/questions/{first}"), lambda question: question["state"] == "running")
    assert server.get(f"/api/questions/{second}")["position"] == 0
    assert server.get(f"/api/questions/{third}")["position"] == 1
    stopped = server.post(f"/api/questions/{second}/stop", code=202)
    assert stopped["state"] == "cancelled"
    assert server.get(f"/api/questions/{third}")["position"] == 0
    for identity in (third, first):
        server.post(f"/api/questions/{identity}/stop", code=202)
    until(lambda: server.get("/api/status"), lambda status: status["running"] == status["waiting"] == 0)


def test_the_users_own_model_is_asked_like_any_other(server: Running) -> None:
    picture = {"shape": [1, 2, 2], "pixels": base64.b64encode(bytes([255, 204, 0, 51])).decode()}
    answer = server.answer(task="nearest", model="brightest.onnx", picture=picture)["answer"]
    # The brightest pixel wins, so 1 and 0.8 meet half-way, and the margin has to be won as well.
    assert answer["distance"] == pytest.approx(0.2 + 0.001, rel=1e-3)
    assert answer["became"] == 1
