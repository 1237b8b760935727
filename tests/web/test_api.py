"""The API through the real server, beside torch and closecall's own functions."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from closecall import certify, data, nearest
from closecall.models import CapsNet, load_model
from closecall.readers import read
from closecall.verdict.checking import check_files, check_verdict
from closecall.verdict.saved import load_verdict

from .conftest import GALLERY_TWO, Running, is_over, until

DEFAULTS = ("mnist-50x2", "mnist-cnn-stable", "mnist-caps")


def pixels(picture: dict[str, Any]) -> NDArray[np.float32]:
    kind = "u1" if picture["type"] == "uint8" else "<f4"
    values = np.frombuffer(base64.b64decode(picture["pixels"]), dtype=kind).reshape(picture["shape"])
    return (values / np.float32(255)).astype(np.float32) if kind == "u1" else values.astype(np.float32)


def grey(image: NDArray[np.uint8]) -> dict[str, Any]:
    content = base64.b64encode(image.tobytes()).decode()
    return {"shape": [1, *image.shape], "pixels": content}


def seen_by_torch(name: str, image: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.no_grad():
        scores: NDArray[np.float32] = load_model(f"zoo:{name}")(torch.from_numpy(image)[None])[0].numpy()
    return scores


def test_the_overview_has_the_zoo_the_own_model_and_the_limits(server: Running) -> None:
    overview = server.get("/api/overview")
    names = [model["name"] for model in overview["models"]]
    assert names[0] == "brightest.onnx"
    assert {*DEFAULTS, "cifar-cnn-robust", "multimnist-caps"} <= set(names)
    assert server.told["models"] == ["brightest.onnx"]
    provable = {model["name"]: model["provable"] for model in overview["models"]}
    assert provable["mnist-50x2"]
    assert not provable["mnist-caps"]
    assert overview["limits"]["running"] == 1


def test_every_class_is_in_the_gallery_with_an_odd_one(server: Running) -> None:
    for name in ("mnist", "cifar10"):
        images = server.get(f"/api/galleries/{name}")
        test = data.load_dataset(name, "test")
        for image in images:
            assert test.labels[image["index"]] == image["label"]
            np.testing.assert_array_equal(pixels(image["picture"]), test.image(image["index"]))
        assert {image["label"] for image in images} == set(range(10))
        assert {image["label"] for image in images if image["odd"]} == set(range(10))


def test_predictions_are_those_of_torch(server: Running) -> None:
    for number in (0, 7, 21):
        picture = server.picture(number)
        found = server.post("/api/predict", {"picture": picture, "models": DEFAULTS})
        for name, prediction in zip(DEFAULTS, found["predictions"], strict=True):
            scores = seen_by_torch(name, pixels(picture))
            shares = scores if name == "mnist-caps" else torch.from_numpy(scores).softmax(0).numpy()
            assert prediction["label"] == scores.argmax()
            np.testing.assert_allclose(prediction["shares"], shares, atol=1e-4)


@pytest.mark.parametrize(("size", "down", "right"), [(100, 5, 130), (180, 40, 12), (60, 150, 90)])
def test_a_drawing_is_read_wherever_and_however_large_it_is(
    server: Running, size: int, down: int, right: int
) -> None:
    """MNIST's own digits, enlarged and put somewhere else, come back much as MNIST has them."""
    for number in (GALLERY_TWO, 13, 30):
        original = pixels(server.picture(number))[0]
        large = Image.fromarray((255 * original).astype(np.uint8)).resize(
            (size, size), Image.Resampling.BICUBIC
        )
        canvas = np.zeros((240, 240), dtype=np.uint8)
        canvas[down : down + size, right : right + size] = np.asarray(large)[: 240 - down, : 240 - right]
        found = server.post("/api/predict", {"picture": grey(canvas), "models": DEFAULTS, "centre": True})
        label = server.get("/api/galleries/mnist")[number]["label"]
        assert [prediction["label"] for prediction in found["predictions"]] == [label] * 3
        assert np.abs(pixels(found["picture"])[0] - original).mean() < 0.06


def test_a_drawing_has_its_centre_of_mass_in_the_middle(server: Running) -> None:
    canvas = np.zeros((140, 140), dtype=np.uint8)
    canvas[10:90, 20:28] = 255
    canvas[80:90, 20:60] = 255
    found = server.post("/api/predict", {"picture": grey(canvas), "models": DEFAULTS[:1], "centre": True})
    image = pixels(found["picture"])[0]
    rows, columns = np.flatnonzero(image.max(1)), np.flatnonzero(image.max(0))
    assert max(np.ptp(rows), np.ptp(columns)) + 1 == 20
    for axis in (0, 1):
        mass = image.sum(axis=1 - axis)
        assert (mass * np.arange(28)).sum() / mass.sum() == pytest.approx(14, abs=0.51)  # as MNIST's are


def test_nothing_drawn_is_a_black_image(server: Running) -> None:
    blank = grey(np.zeros((140, 140), dtype=np.uint8))
    found = server.post("/api/predict", {"picture": blank, "models": DEFAULTS[:1], "centre": True})
    assert not pixels(found["picture"]).any()


def test_a_photograph_on_paper_is_read_as_ink(server: Running) -> None:
    original = pixels(server.picture(13))[0]
    paper = 235 - 190 * original
    large = Image.fromarray(paper.astype(np.uint8)).resize((300, 300), Image.Resampling.BICUBIC)
    content = io.BytesIO()
    large.save(content, format="JPEG")
    answer = server.client.post("/api/pictures?shape=1,28,28", content=content.getvalue())
    found = server.post("/api/predict", {"picture": answer.json(), "models": DEFAULTS})
    label = server.get("/api/galleries/mnist")[13]["label"]
    assert {prediction["label"] for prediction in found["predictions"]} == {label}


def test_a_picture_of_the_right_size_is_taken_as_it_is(server: Running) -> None:
    values = np.random.default_rng(0).integers(0, 256, (28, 28), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(values).save(content, format="PNG")
    picture = server.client.post("/api/pictures", content=content.getvalue()).json()
    assert base64.b64decode(picture["pixels"]) == values.tobytes()


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


def test_capsules_are_attacked_without_a_claim(server: Running) -> None:
    picture = server.picture()
    answer = server.answer(task="nearest", model="mnist-caps", picture=picture, time_limit=4)["answer"]
    assert answer["outcome"] == "adversarial"
    assert not answer["proven"]
    assert answer["lower"] == 0
    assert seen_by_torch("mnist-caps", pixels(answer["witness"])).argmax() == answer["became"] != 2


def test_capsules_are_attacked_for_a_target_within_a_cap(server: Running) -> None:
    picture = server.picture()
    asked = {"target": 7, "cap": 0.6, "norm": "l2", "time_limit": 6}
    answer = server.answer(task="nearest", model="mnist-caps", picture=picture, **asked)["answer"]
    change = pixels(answer["witness"]) - pixels(picture)
    assert answer["became"] == 7
    assert np.abs(change).max() <= 0.6 + 1e-6
    assert answer["distance"] == pytest.approx(np.linalg.norm(change), rel=1e-4)


def test_capsules_are_those_of_torch_and_decode_to_its_images(server: Running) -> None:
    picture = server.picture()
    found = server.post("/api/capsules", {"model": "mnist-caps", "picture": picture})
    network = load_model("zoo:mnist-caps")
    assert isinstance(network, CapsNet)
    with torch.no_grad():
        capsules, lengths = network.encode(torch.from_numpy(pixels(picture))[None])
    np.testing.assert_allclose(found["capsules"], capsules[0], atol=1e-5)
    assert found["label"] == int(lengths.argmax()) == 2
    moved = capsules.clone()
    moved[0, 2, 5] += 0.3
    body = {"model": "mnist-caps", "label": 2, "capsule": moved[0, 2].tolist()}
    decoded = pixels(server.post("/api/capsules/decode", body))
    with torch.no_grad():
        expected = network.decode(moved, torch.tensor([2]))[0].numpy()
    np.testing.assert_allclose(decoded, expected, atol=1e-5)
    assert np.abs(decoded - pixels(found["reconstruction"])).max() > 0.05
    for iteration in found["routing"]:
        np.testing.assert_allclose(np.sum(iteration["couplings"], axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(found["routing"][-1]["lengths"], found["lengths"], atol=1e-5)


def test_two_digits_are_pulled_apart(server: Running) -> None:
    three, zero = server.picture(13), server.picture(1)
    body = {"model": "multimnist-caps", "parts": [three, zero], "apart": [4, 4]}
    found = server.post("/api/capsules/overlapping", body)
    assert {part["label"] for part in found["seen"]} == {3, 0}
    both = pixels(found["picture"])[0]
    assert both.shape == (36, 36)
    # Each moved by half of the way, and added up.
    expected = np.zeros((36, 36), dtype=np.float32)
    expected[2:30, 2:30] += pixels(three)[0]
    expected[6:34, 6:34] += pixels(zero)[0]
    np.testing.assert_allclose(both, expected.clip(0, 1), atol=1e-6)


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


def test_an_uploaded_model_is_asked_like_any_other(server: Running, brightest: Path) -> None:
    content = brightest.read_bytes()
    answer = server.client.post("/api/models?name=mine.onnx", content=content)
    assert answer.status_code == 201, answer.text
    name = answer.json()["name"]
    assert answer.json()["shape"] == [1, 2, 2]
    picture = {"shape": [1, 2, 2], "pixels": base64.b64encode(bytes([0, 0, 255, 0])).decode()}
    found = server.post("/api/predict", {"picture": picture, "models": [name]})
    assert found["predictions"][0]["label"] == 2
