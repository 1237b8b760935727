"""How ONNX files take their images and give their scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from closecall.errors import ModelError
from closecall.readers import Classifier, read

Make = Callable[..., onnx.ModelProto]
Save = Callable[[onnx.ModelProto | bytes], Path]
Compare = Callable[..., Classifier]

IMAGE = (1, 2, 5, 6)
F32 = np.float32


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(F32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(numbers(*shape)) + F32(0.5)


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (13, -1), (13, 1)])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_a_trailing_softmax_is_peeled_off(
    opset: int, axis: int, operator: str, make_model: Make, save: Save, read_as_onnxruntime: Compare
) -> None:
    nodes = [("Flatten", "x -> f", {}), ("MatMul", "f w -> s", {}), (operator, "s -> y", {"axis": axis})]
    weight = numbers(60, 4)
    classifier = read_as_onnxruntime(save(make_model(nodes, IMAGE, {"w": weight}, opset=opset)), peeled=True)
    assert classifier.notes == (f"a trailing {operator} was peeled off: scores are logits",)
    image = np.random.default_rng(0).random((1, 2, 5, 6))
    np.testing.assert_allclose(classifier.network.forward(image), image.reshape(1, -1) @ weight, atol=1e-6)


HEAD = [("Flatten", "x -> f", {"axis": 1}), ("Gemm", "f w -> r", {}), ("Relu", "r -> y", {})]


@pytest.mark.parametrize(
    ("shape", "nodes", "output", "image"),
    [
        (("n", 2, 3), HEAD, ("n", 4), (2, 3)),
        ((None, 2, 3), HEAD, (None, 4), (2, 3)),
        ((1, 2, 3), HEAD, (1, 4), (2, 3)),
        ((4, 2, 3), HEAD, (4, 4), (2, 3)),
        ((6,), [("MatMul", "x w -> r", {}), ("Relu", "r -> y", {})], (4,), (6,)),
        (
            (2, 3),
            [("Reshape", "x s -> f", {}), ("Gemm", "f w -> r", {}), ("Relu", "r -> y", {})],
            (1, 4),
            (2, 3),
        ),
        (
            (3, 2, 3),
            [("Reshape", "x b -> f", {}), ("Gemm", "f w -> r", {}), ("Relu", "r -> y", {})],
            (3, 4),
            (2, 3),
        ),
    ],
    ids=["named", "nameless", "one", "four", "none", "none, two sides", "three, in a constant"],
)
def test_a_batch_may_be_free_fixed_or_missing(
    shape: tuple, nodes: list, output: tuple, image: tuple, make_model: Make, save: Save
) -> None:
    weight = numbers(6, 4)
    constants = {"w": weight, "s": whole(1, 6), "b": whole(3, 6)}
    classifier = read(save(make_model(nodes, shape, constants, output_shape=output)))
    assert classifier.network.input_shape == image
    images = np.random.default_rng(0).random((5, *image), dtype=F32)
    expected = np.maximum(images.reshape(5, 6) @ weight, 0)
    np.testing.assert_allclose(classifier.engines["onnxruntime"](images), expected, atol=1e-5)
    np.testing.assert_allclose(classifier.network.forward(images), expected, atol=1e-5)


def test_free_sides_are_filled_by_the_given_shape(make_model: Make, save: Save) -> None:
    path = save(make_model([("Relu", "x -> y", {})], ("n", 2, "h", "w")))
    with pytest.raises(ModelError, match="pass input_shape"):
        read(path)
    with pytest.raises(ModelError, match="takes images of sides"):
        read(path, (3, 5, 5))
    assert read(path, (2, 5, 5)).network.input_shape == (2, 5, 5)


def test_the_given_shape_may_only_rename_the_pixels(make_model: Make, save: Save) -> None:
    path = save(make_model([*HEAD[:1], ("Relu", "f -> y", {})], (1, 16, 1)))
    assert read(path).network.input_shape == (16, 1)
    assert read(path, (1, 4, 4)).network.input_shape == (1, 4, 4)
    with pytest.raises(ModelError, match="takes images of shape"):
        read(path, (1, 4, 5))


@pytest.mark.parametrize(
    ("kind", "dtype"), [(TensorProto.FLOAT16, np.float16), (TensorProto.DOUBLE, np.float64)]
)
def test_other_types_of_number(kind: int, dtype: type, make_model: Make, save: Save) -> None:
    weight = numbers(6, 4).astype(dtype)
    classifier = read(save(make_model(HEAD, (1, 2, 3), {"w": weight}, kind=kind)))
    images = np.random.default_rng(0).random((3, 2, 3), dtype=F32)
    scores = classifier.engines["onnxruntime"](images)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, classifier.network.forward(images), atol=0.01)
    expected = np.maximum(images.reshape(3, 6).astype(np.float64) @ weight.astype(np.float64), 0)
    np.testing.assert_allclose(classifier.network.forward(images), expected, atol=1e-12)


def test_nodes_that_do_not_matter_may_be_anything(make_model: Make, save: Save) -> None:
    path = save(make_model([("Sin", "x -> unused", {}), ("Relu", "x -> y", {})], IMAGE))
    assert read(path).network.units == 60


@pytest.mark.parametrize("imports", [[("", 17), ("", 17)], [("", 17), ("ai.onnx", 17)], [("ai.onnx", 17)]])
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_an_opset_may_be_said_more_than_once(
    imports: list[tuple[str, int]], domain: str, make_model: Make, save: Save, read_as_onnxruntime: Compare
) -> None:
    model = make_model([("Relu", "x -> y", {})], (1, 2, 3))
    model.graph.node[0].domain = domain
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in imports)
    read_as_onnxruntime(save(model))


@pytest.mark.parametrize("other", ["", "ai.onnx"])
def test_opsets_that_contradict_each_other_are_refused(other: str, make_model: Make, save: Save) -> None:
    model = make_model([("Relu", "x -> y", {})], (1, 2, 3))
    model.opset_import.append(onnx.helper.make_opsetid(other, 13))
    with pytest.raises(ModelError, match="the opsets 13, 17 at once"):
        read(save(model))


def test_weights_of_four_bits(make_model: Make, save: Save) -> None:
    whole_numbers = np.random.default_rng(0).integers(-8, 8, 12)
    nodes = [("DequantizeLinear", "q s -> w", {}), ("MatMul", "x w -> y", {})]
    model = make_model(nodes, (1, 4), {"s": F32(0.5)}, output_shape=(1, 3), opset=21)
    model.ir_version = 10
    model.graph.initializer.append(
        onnx.helper.make_tensor("q", TensorProto.INT4, (4, 3), whole_numbers.tolist())
    )
    network = read(save(model)).network
    np.testing.assert_allclose(network.forward(np.eye(4)), whole_numbers.reshape(4, 3) / 2)
