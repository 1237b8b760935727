"""Images as people give them: files, tensors, arrays of every kind, channels first and last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import closecall
from closecall.ask.predict import predict
from closecall.errors import QueryError
from closecall.question.images import fitted, picture_of, picture_shape
from closecall.verdict.picture import as_picture

torch.set_num_threads(1)

SIDES = (4, 5)
WEIGHT = np.random.default_rng(0).normal(size=(3, *SIDES, 3)).astype(np.float32)  # classes, channels first


def onnx_model(path: Path, shape: tuple[int | str, ...], weight: np.ndarray) -> Path:
    """Scores that are linear in the image, as the file takes it."""
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", *shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 3))],
        [numpy_helper.from_array(weight.reshape(-1, 3), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return onnx_model(tmp_path / "first.onnx", (3, *SIDES), WEIGHT)


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """The same network with its channels last."""
    return onnx_model(tmp_path / "last.onnx", (*SIDES, 3), np.moveaxis(WEIGHT, 0, 2))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(1).integers(0, 256, (*SIDES, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def colours(picture: Path) -> np.ndarray:
    with Image.open(picture) as opened:
        return np.moveaxis(np.asarray(opened).astype(np.float32) / 255, 2, 0)


def test_a_picture_is_the_same_to_a_network_with_channels_last(
    first: Path, last: Path, picture: Path
) -> None:
    image = colours(picture)
    expected = closecall.nearest(first, image)
    assert expected.outcome == "nearest"
    for given in (
        image,
        picture,
        str(picture),
        np.moveaxis(image, 0, 2),
        image[None],
        torch.from_numpy(image),
    ):
        found = closecall.nearest(last, given)
        assert found.distance == pytest.approx(expected.distance, rel=1e-4)
        assert found.image.shape == (*SIDES, 3)
        np.testing.assert_array_equal(np.moveaxis(found.image, 2, 0), expected.image)
        np.testing.assert_allclose(found.scores_before, expected.scores_before, rtol=1e-5)
    np.testing.assert_allclose(predict(last, picture).scores, predict(first, picture).scores, rtol=1e-5)
    np.testing.assert_array_equal(as_picture(found.image), as_picture(expected.image))


def test_a_batch_with_channels_first_comes_back_so(first: Path, last: Path, picture: Path) -> None:
    batch = np.stack([colours(picture)] * 2)
    labels = [closecall.read(first).predict(image) for image in batch]
    found = closecall.attack(last, batch, labels)
    assert found.images.shape == batch.shape
    assert found.success.all()
    assert [closecall.read(first).predict(image) for image in found.images] != labels


def test_arrays_in_files_may_have_their_channels_last(picture: Path, tmp_path: Path) -> None:
    image = colours(picture)
    np.save(tmp_path / "first.npy", image)
    np.save(tmp_path / "last.npy", np.moveaxis(image, 0, 2))
    for name in ("first.npy", "last.npy"):
        np.testing.assert_array_equal(picture_of(tmp_path / name, (*SIDES, 3)), np.moveaxis(image, 0, 2))


@pytest.mark.parametrize(
    ("taken", "shape"),
    [
        ((3, 4, 5), (3, 4, 5)),
        ((4, 5, 3), (3, 4, 5)),
        ((28, 28, 1), (1, 28, 28)),
        ((1, 28, 28), (1, 28, 28)),
        ((3, 5, 3), (3, 5, 3)),
        ((4, 1, 1), (4, 1, 1)),
        ((28, 28), (1, 28, 28)),
        ((784,), (1, 28, 28)),
        ((3072,), (3, 32, 32)),
    ],
)
def test_the_shape_of_pictures(taken: tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert picture_shape(taken) == shape


def test_shapes_are_never_guessed() -> None:
    assert fitted(np.zeros((3, 3, 3)), (3, 3, 3)).shape == (3, 3, 3)
    for given in ((5, 4, 3), (4, 3, 5), (5, 3, 4)):
        with pytest.raises(QueryError, match=r"takes images of shape \(4, 5, 3\)"):
            fitted(np.zeros(given), (4, 5, 3))


class Sums(torch.nn.Module):
    """Two scores: the sum of the left and of the right half."""

    input_shape = (1, 2, 2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return image.sum((1, 2))


@pytest.mark.parametrize(
    "image",
    [
        torch.full((1, 2, 2), 0.5, requires_grad=True),
        torch.full((1, 2, 2), 0.5, dtype=torch.bfloat16),
        torch.zeros((1, 2, 2), dtype=torch.int64),
        [[0.5, 0.25], [0.5, 0.5]],
        np.float16([[0.5, 0.25], [0.5, 0.5]]),
    ],
)
def test_tensors_and_lists_of_numbers_are_images(image: Any) -> None:
    assert closecall.nearest(Sums().eval(), image, label=0).outcome == "nearest"


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((1, 2, 2), dtype=bool),
        np.full((1, 2, 2), "0"),
        np.array([[object(), 1], [1, 1]]),
        [[1, 2], [3]],
        np.zeros((1, 2, 2), dtype=complex),
        torch.zeros((1, 2, 2), dtype=torch.bool),
        None,
        {},
    ],
)
def test_what_is_no_image_is_one_sentence(image: Any) -> None:
    for ask in (closecall.nearest, lambda *a: closecall.certify(*a, radius=0.1)):
        with pytest.raises(
            QueryError, match="an image is an array of numbers or the path of a picture"
        ) as caught:
            ask(Sums().eval(), image)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"time_limit": None}, "the time limit must be a number, got None"),
        ({"time_limit": "60"}, "the time limit must be a number, got '60'"),
        ({"threads": None}, "the threads must be a number"),
        ({"gap": "small"}, "the gap must be a number"),
        ({"margin": None}, "the margin must be a number"),
        ({"radius": "far"}, "the radius must be a number"),
        ({"cap": "low"}, "the cap must be a number"),
        ({"ratio": [2]}, "the ratio must be a number"),
        ({"pixel_range": None}, "the pixel range must be two numbers"),
        ({"pixel_range": (0, "1")}, "end of the pixel range must be a number"),
        ({"label": "one"}, "the label must be the number of a class, got 'one'"),
        ({"label": 0.5}, "the label must be the number of a class"),
        ({"target": None}, "the target must be the number of a class"),
    ],
)
def test_numbers_that_are_none(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        closecall.nearest(Sums().eval(), np.zeros((1, 2, 2)), **asked)


def test_the_time_limit_of_an_ideal_image_is_a_number_too() -> None:
    with pytest.raises(QueryError, match="the time limit must be a number, got None"):
        closecall.ideal(Sums().eval(), 0, time_limit=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("channels_last", [False, True])
def test_sizes_that_a_file_leaves_open_can_be_given(
    tmp_path: Path, picture: Path, channels_last: bool
) -> None:
    weight = np.moveaxis(WEIGHT, 0, 2) if channels_last else WEIGHT
    path = onnx_model(tmp_path / "open.onnx", ("h", "w", 3) if channels_last else ("c", "h", "w"), weight)
    shape = (*SIDES, 3) if channels_last else (3, *SIDES)
    for given in (shape, (3, *SIDES)):
        found = closecall.nearest(path, picture, input_shape=given)
        assert found.outcome == "nearest"
        assert found.image.shape == shape
    assert closecall.certify(path, picture, radius=1e-6, input_shape=shape).outcome == "robust"
    assert closecall.nearest(path, colours(picture)).distance == found.distance
    assert predict(path, picture, shape).label == found.predicted_before
    with pytest.raises(closecall.ClosecallError, match="pass input_shape"):
        closecall.nearest(path, picture)
    with pytest.raises(closecall.ClosecallError, match="positive whole numbers"):
        closecall.nearest(path, picture, input_shape=(3, -4, 5))
