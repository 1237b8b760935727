"""What is answered at once, through the real server and beside torch: predictions, pictures, capsules."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from closecall import data
from closecall.models import CapsNet, load_model

from .conftest import GALLERY_TWO, Running
from .pictures import DEFAULTS, grey, pixels, seen_by_torch


def test_the_overview_has_the_zoo_the_own_model_and_the_limits(server: Running) -> None:
    overview = server.get("/api/overview")
    names = [model["name"] for model in overview["models"]]
    assert {"brightest.onnx", *DEFAULTS, "cifar-cnn-robust", "multimnist-caps"} <= set(names)
    assert server.told["models"] == ["brightest.onnx"]
    provable = {model["name"]: model["provable"] for model in overview["models"]}
    assert provable["mnist-50x2"]
    assert provable["mnist-caps"]
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


def test_an_uploaded_model_is_asked_like_any_other(server: Running, brightest: Path) -> None:
    content = brightest.read_bytes()
    answer = server.client.post("/api/models?name=mine.onnx", content=content)
    assert answer.status_code == 201, answer.text
    name = answer.json()["name"]
    assert answer.json()["shape"] == [1, 2, 2]
    picture = {"shape": [1, 2, 2], "pixels": base64.b64encode(bytes([0, 0, 255, 0])).decode()}
    found = server.post("/api/predict", {"picture": picture, "models": [name]})
    assert found["predictions"][0]["label"] == 2
