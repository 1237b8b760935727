"""ONNX files made to harm: one clear sentence, soon, and without filling the memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from closecall.errors import ModelError, UnsupportedLayerError
from closecall.readers import read

Make = Callable[..., onnx.ModelProto]
Save = Callable[[onnx.ModelProto | bytes], Path]

IMAGE = (1, 2, 5, 6)
SCORES = (1, 3)
HUGE = 2**40


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def weight(*shape: int) -> np.ndarray:
    return np.ones(shape, dtype=np.float32)


RELU = [("Relu", "x -> y", {})]
DOUBLED = [("Concat", f"v{k} v{k} -> v{k + 1}", {"axis": 1}) for k in range(40)]

# name: (nodes, constants, what the message says)
GRAPHS: dict[str, tuple[list[tuple[str, str, dict[str, Any]]], dict[str, Any], str]] = {
    "pads of a convolution": (
        [("Conv", "x w -> y", {"pads": [HUGE] * 4})],
        {"w": weight(1, 2, 3, 3)},
        "must not be negative|would take",
    ),
    "many windows": (
        [("Conv", "x w -> y", {"pads": [30000] * 4})],
        {"w": weight(1, 2, 3, 3)},
        "would take",
    ),
    "negative pads": ([("MaxPool", "x -> y", {"kernel_shape": [2, 2], "pads": [-1] * 4})], {}, "negative"),
    "strides of nothing": (
        [("MaxPool", "x -> y", {"kernel_shape": [2, 2], "strides": [0, 1]})],
        {},
        "positive",
    ),
    "a kernel of nothing": ([("MaxPool", "x -> y", {"kernel_shape": [0, 2]})], {}, "positive"),
    "a kernel of too few sides": ([("MaxPool", "x -> y", {"kernel_shape": [2]})], {}, "sides"),
    "a window larger than the image": ([("MaxPool", "x -> y", {"kernel_shape": [9, 9]})], {}, "does not fit"),
    "groups of nothing": ([("Conv", "x w -> y", {"group": 0})], {"w": weight(1, 2, 3, 3)}, "groups"),
    "other channels": ([("Conv", "x w -> y", {})], {"w": weight(1, 7, 3, 3)}, "cannot read an input"),
    "a huge constant": (
        [("ConstantOfShape", "s -> c", {}), ("Add", "x c -> y", {})],
        {"s": whole(HUGE, HUGE)},
        "entries",
    ),
    "a negative constant": (
        [("ConstantOfShape", "s -> c", {}), ("Add", "x c -> y", {})],
        {"s": whole(-3)},
        "shape",
    ),
    "a huge expansion": ([("Expand", "x s -> y", {})], {"s": whole(HUGE, 2, 5, 6)}, "entries"),
    "a huge repetition": ([("Tile", "x s -> y", {})], {"s": whole(HUGE, 1, 1, 1)}, "entries"),
    "a huge padding": ([("Pad", "x s -> y", {})], {"s": whole(0, 0, 0, 0, 0, 0, HUGE, 0)}, "entries"),
    "a huge edge": (
        [("Pad", "x s -> y", {"mode": "edge"})],
        {"s": whole(0, 0, 0, 0, 0, 0, HUGE, 0)},
        "entries",
    ),
    "a huge choice": ([("Gather", "x i -> y", {})], {"i": np.zeros(2**21, np.int64)}, "entries"),
    "an outer sum": (
        [
            ("Reshape", "x s -> a", {}),
            ("Tile", "a r -> b", {}),
            ("Reshape", "b t -> c", {}),
            ("Add", "b c -> y", {}),
        ],
        {"s": whole(60, 1), "r": whole(1000, 1), "t": whole(1, -1)},
        "entries",
    ),
    "doubling": ([("Identity", "x -> v0", {}), *DOUBLED, ("Relu", "v40 -> y", {})], {}, "entries"),
    "a wrong reshape": ([("Reshape", "x s -> y", {})], {"s": whole(7, -1)}, "do not fit together"),
    "a reshape by nothing": ([("Reshape", "x s -> y", {})], {"s": whole(-1, -1)}, "do not fit together"),
    "a wrong axis": ([("Softmax", "x -> y", {"axis": 9})], {}, "axes|axis"),
    "a wrong matrix": ([("MatMul", "x w -> y", {})], {"w": weight(7, 3)}, "cannot be read"),
    "shapes that do not broadcast": ([("Add", "x c -> y", {})], {"c": weight(7)}, "do not fit together"),
    "a slice without steps": (
        [("Slice", "x s e a t -> y", {})],
        {"s": whole(0), "e": whole(2), "a": whole(1), "t": whole(0)},
        "steps of 0",
    ),
    "weights that are no numbers": ([("Add", "x c -> y", {})], {"c": np.float32(np.nan)}, "NaN or infinity"),
    "a division by zero": ([("Div", "x c -> y", {})], {"c": np.float32(0)}, "NaN or infinity"),
    "limits that are no numbers": (
        [("Clip", "x lo hi -> y", {})],
        {"lo": np.float32(np.nan), "hi": np.float32(1)},
        "NaN or infinity|differs",
    ),
    "numbers that overflow": (
        [("Mul", "x c -> a", {}), ("Mul", "a c -> y", {})],
        {"c": np.float32(1e38)},
        "differs",
    ),
    "a softmax in the middle": ([("Softmax", "x -> s", {}), ("Relu", "s -> y", {})], {}, "Softmax"),
    "a product of branches": (
        [("Mul", "x x -> y", {})],
        {},
        "operator Mul, node 'node0'.*product of two branches",
    ),
    "a cycle": ([("Add", "x b -> a", {}), ("Relu", "a -> b", {}), ("Relu", "b -> y", {})], {}, "valid|cycle"),
    "a cycle of one": ([("Add", "x y -> y", {})], {}, "valid|cycle"),
    "nothing given": ([("Relu", "nowhere -> y", {})], {}, "valid|cycle"),
    "no image": ([("Relu", "c -> y", {})], {"c": weight(3)}, "does not depend on the image"),
    "a constant that is random": (
        [("RandomNormal", "-> c", {"shape": [6]}), ("Add", "x c -> y", {})],
        {},
        "operator RandomNormal, node 'node0': its numbers are random",
    ),
    "a random constant like another": (
        [("RandomUniformLike", "w -> c", {}), ("Add", "x c -> y", {})],
        {"w": weight(6)},
        "numbers are random",
    ),
    "a huge range": (
        [("Range", "a b c -> r", {}), ("ReduceSum", "r -> s", {"keepdims": 0}), ("Add", "x s -> y", {})],
        {"a": np.float32(0), "b": np.float32(1e12), "c": np.float32(1)},
        "entries|beforehand",
    ),
    "a huge one-hot": (
        [("OneHot", "i d v -> r", {}), ("ReduceSum", "r -> s", {"keepdims": 0}), ("Add", "x s -> y", {})],
        {"i": whole(3), "d": np.array(HUGE), "v": weight(2)},
        "entries|beforehand",
    ),
    "a huge resize of a constant": (
        [("Resize", "w _ s -> r", {}), ("ReduceSum", "r -> t", {"keepdims": 0}), ("Add", "x t -> y", {})],
        {"w": weight(1, 1, 2, 2), "s": np.array([1, 1, 1e6, 1e6], np.float32)},
        "entries|beforehand",
    ),
    "a huge resize": (
        [("Resize", "x _ s -> y", {})],
        {"s": np.array([1, 1, 1e6, 1e6], np.float32)},
        "entries|beforehand",
    ),
    "a huge padding of a constant": (
        [("Pad", "w s -> r", {}), ("ReduceSum", "r -> t", {"keepdims": 0}), ("Add", "x t -> y", {})],
        {"w": weight(2, 2), "s": whole(0, 0, HUGE, 0)},
        "entries|beforehand",
    ),
    "a huge transposed convolution": (
        [("ConvTranspose", "x w -> y", {"strides": [2**20, 2**20]})],
        {"w": weight(2, 1, 3, 3)},
        "would take|sides",
    ),
    "a long sum of products": (
        [("Einsum", "w w w w -> s", {"equation": "a,b,c,d->"}), ("Add", "x s -> y", {})],
        {"w": weight(1000)},
        "too large to be multiplied",
    ),
    "a resize that mixes pixels": (
        [("Resize", "x _ s -> y", {"mode": "linear"})],
        {"s": np.array([1, 1, 2, 2], np.float32)},
        "resizing by mode 'linear' cannot be read",
    ),
    "a choice that jumps": (
        [("Greater", "x z -> g", {}), ("Where", "g o z -> y", {})],
        {"z": np.float32(0), "o": np.float32(1)},
        "jumps unless both sides meet",
    ),
    "a choice that jumps by a little": (
        [("Greater", "x c -> g", {}), ("Where", "g x z -> y", {})],
        {"z": np.float32(0), "c": np.float32(1e-3)},
        "jumps unless both sides meet",
    ),
    "a comparison as scores": (
        [("Greater", "x z -> y", {})],
        {"z": np.float32(0)},
        "the output is a comparison",
    ),
    "a sum of comparisons": (
        [("Greater", "x z -> g", {}), ("Cast", "g -> c", {"to": 1}), ("Add", "c x -> y", {})],
        {"z": np.float32(0)},
        "comparison can be read only",
    ),
    "a sigmoid in the middle": (
        [("Sigmoid", "x -> s", {}), ("Relu", "s -> y", {})],
        {},
        "a Sigmoid in the middle of a network is not piecewise linear",
    ),
    "an unknown operator": (
        [("Sin", "x -> s", {}), ("Relu", "s -> y", {})],
        {},
        "operator Sin, node 'node0': .*replace it",
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_that_cannot_be_read_is_one_clear_sentence(name: str, make_model: Make, save: Save) -> None:
    nodes, constants, message = GRAPHS[name]
    with pytest.raises(ModelError, match=message) as caught:
        read(save(make_model(nodes, IMAGE, constants, output_shape=SCORES)))
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("operator", ["Tanh", "Exp", "LSTM", "Loop"])
def test_unsupported_operators_say_so(operator: str, make_model: Make, save: Save) -> None:
    model = make_model(RELU, IMAGE, output_shape=SCORES)
    model.graph.node[0].op_type = operator
    with pytest.raises(ModelError, match=operator):
        read(save(model))


def test_operators_of_other_domains_are_unsupported(make_model: Make, save: Save) -> None:
    model = make_model(RELU, IMAGE, output_shape=IMAGE)
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(UnsupportedLayerError, match="operator Relu"):
        read(save(model))


@pytest.mark.parametrize("dims", [[-1, 4], [2**62, 2**62], [3, 3], [], [2**31]])
def test_dimensions_that_do_not_fit_their_numbers(dims: list[int], make_model: Make, save: Save) -> None:
    model = make_model([("MatMul", "x w -> y", {})], (1, 2, 5, 4), {"w": weight(4, 3)}, output_shape=SCORES)
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    with pytest.raises(ModelError):
        read(save(model))


@pytest.mark.parametrize("sides", [(1, 2**40, 2**40), (1, -3, 4), (2**50,), (1, 0, 3), ()])
def test_impossible_images(sides: tuple[int, ...], make_model: Make, save: Save) -> None:
    with pytest.raises(ModelError):
        read(save(make_model(RELU, sides, output_shape=SCORES)))


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.UINT8, TensorProto.STRING, TensorProto.BOOL])
def test_images_must_be_floats(kind: int, make_model: Make, save: Save) -> None:
    with pytest.raises(ModelError, match="floats"):
        read(save(make_model([("Identity", "x -> y", {})], IMAGE, output_shape=IMAGE, kind=kind)))


@pytest.mark.parametrize("opset", [1, 6, 10_000])
def test_opsets_outside_the_range(opset: int, make_model: Make, save: Save) -> None:
    model = make_model(RELU, IMAGE, output_shape=IMAGE)
    model.opset_import[0].version = opset
    with pytest.raises(ModelError, match=f"opset {opset}: closecall reads 7 to"):
        read(save(model))


def test_a_model_has_one_input_and_one_output(make_model: Make, save: Save) -> None:
    two = helper.make_tensor_value_info("z", TensorProto.FLOAT, IMAGE)
    model = make_model([("Add", "x z -> y", {})], IMAGE, output_shape=IMAGE)
    model.graph.input.append(two)
    with pytest.raises(ModelError, match="2 inputs and 1 outputs"):
        read(save(model))
    model = make_model([("Relu", "x -> y", {}), ("Relu", "y -> z", {})], IMAGE, output_shape=IMAGE)
    model.graph.output.append(two)
    with pytest.raises(ModelError, match="1 inputs and 2 outputs"):
        read(save(model))


def test_training_parts_are_refused(make_model: Make, save: Save) -> None:
    constants = {name: weight(2) for name in "sbmv"}
    node = ("BatchNormalization", "x s b m v -> y q r", {"training_mode": 1})
    with pytest.raises(ModelError, match="eval mode"):
        read(save(make_model([node], IMAGE, constants, output_shape=IMAGE)))
    node = ("Dropout", "x r t -> y", {})
    constants = {"r": np.float32(0.5), "t": np.array(True)}
    with pytest.raises(ModelError, match="eval mode"):
        read(save(make_model([node], IMAGE, constants, output_shape=IMAGE)))


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"not a model at all", b"\x08" * 10_000])
def test_bytes_that_are_no_model(content: bytes, save: Save) -> None:
    with pytest.raises(ModelError):
        read(save(content))


def with_external_data(make_model: Make, location: str, **entries: int) -> onnx.ModelProto:
    model = make_model([("MatMul", "x w -> y", {})], (1, 4), {"w": weight(4, 3)}, output_shape=SCORES)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


def test_external_data_in_the_folder_is_read(make_model: Make, save: Save) -> None:
    path = save(with_external_data(make_model, "w.bin", offset=8, length=48))
    numbers = np.arange(12, dtype=np.float32).reshape(4, 3)
    (path.parent / "w.bin").write_bytes(b"12345678" + numbers.tobytes())
    network = read(path).network
    np.testing.assert_allclose(network.forward(np.eye(4)), numbers)


def test_external_data_outside_the_folder_is_refused(make_model: Make, save: Save, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(weight(4, 3).tobytes())
    model = save(with_external_data(make_model, "link.bin"))
    (model.parent / "link.bin").symlink_to(secret)
    outside = [
        str(secret),
        os.path.relpath(secret, model.parent),
        "../../etc/passwd",
        "/dev/zero",
        "",
        ".",
        "\0",
    ]
    for path in [model, *(save(with_external_data(make_model, location)) for location in outside)]:
        with pytest.raises(ModelError, match=r"not a file inside the model's own folder|not an ONNX file"):
            read(path)


@pytest.mark.parametrize("entries", [{"offset": -4}, {"offset": 10**15}, {"length": 10**15}, {"length": 4}])
def test_external_data_of_another_length_is_refused(
    entries: dict[str, int], make_model: Make, save: Save
) -> None:
    path = save(with_external_data(make_model, "w.bin", **entries))
    (path.parent / "w.bin").write_bytes(weight(4, 3).tobytes())
    with pytest.raises(ModelError):
        read(path)


def test_sparse_weights_and_local_functions_are_refused(make_model: Make, save: Save) -> None:
    model = make_model(RELU, IMAGE, output_shape=IMAGE)
    values = numpy_helper.from_array(weight(1), "sparse")
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(whole(0)), [2**40])
    )
    with pytest.raises(ModelError, match="sparse"):
        read(save(model))
    model = make_model(RELU, IMAGE, output_shape=IMAGE)
    node = helper.make_node("Again", ["a"], ["b"], domain="local")
    model.functions.append(helper.make_function("local", "Again", ["a"], ["b"], [node], model.opset_import))
    with pytest.raises(ModelError, match="local functions"):
        read(save(model))


def test_memory_stays_bounded(make_model: Make, save: Save) -> None:
    """The most wasteful graph that passes each limit: many large tensors, all kept alive."""
    tiles = {"r": whole(1, 1, 100, 100)}
    grown = [("Tile", "x r -> v0", {}), *[("Relu", f"v{k} -> v{k + 1}", {}) for k in range(300)]]
    path = save(make_model([*grown, ("Relu", "v300 -> y", {})], IMAGE, tiles, output_shape=SCORES))
    code = (
        "import resource, sys; from closecall.readers import read; from closecall.errors import ModelError\n"
        f"try: read({str(path)!r})\n"
        "except ModelError: sys.exit(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 2_500_000)\n"
        "sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
