"""ONNX operators, one by one and in random graphs, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from closecall import nearest
from closecall.readers import Classifier

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


CONV = {"w": numbers(4, 2, 3, 2), "b": numbers(4)}
NORM = {"s": positive(2), "o": numbers(2), "m": numbers(2, seed=1), "v": positive(2)}

# name: (opset, nodes, constants)
OPERATORS: dict[str, tuple[int, list[tuple[str, str, dict[str, Any]]], dict[str, Any]]] = {
    "gemm": (
        17,
        [("Flatten", "x -> f", {}), ("Gemm", "f w b -> y", {})],
        {"w": numbers(60, 4), "b": numbers(4)},
    ),
    "gemm transposed and scaled": (
        9,
        [("Flatten", "x -> f", {}), ("Gemm", "f w b -> y", {"transB": 1, "alpha": 0.5, "beta": 3.0})],
        {"w": numbers(4, 60), "b": numbers(1, 4)},
    ),
    "gemm without bias": (13, [("Flatten", "x -> f", {}), ("Gemm", "f w -> y", {})], {"w": numbers(60, 4)}),
    "gemm of a column": (
        13,
        [("Reshape", "x s -> f", {}), ("Gemm", "f w -> y", {"transA": 1, "alpha": 2.0})],
        {"s": whole(60, 1), "w": numbers(60, 3)},
    ),
    "matmul and add": (
        7,
        [("Flatten", "x -> f", {}), ("MatMul", "f w -> m", {}), ("Add", "m b -> y", {})],
        {"w": numbers(60, 3), "b": numbers(3)},
    ),
    "matmul over the last side": (11, [("MatMul", "x w -> y", {})], {"w": numbers(6, 3)}),
    "matmul from the left": (11, [("MatMul", "w x -> y", {})], {"w": numbers(3, 5)}),
    "matmul of a vector": (11, [("Flatten", "x -> f", {}), ("MatMul", "f w -> y", {})], {"w": numbers(60)}),
    "conv": (
        11,
        [("Conv", "x w b -> y", {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]})],
        CONV,
    ),
    "conv in groups": (11, [("Conv", "x w -> y", {"group": 2, "pads": [1] * 4})], {"w": numbers(4, 1, 3, 3)}),
    "conv same upper": (
        11,
        [("Conv", "x w -> y", {"auto_pad": "SAME_UPPER", "strides": [2, 2]})],
        {"w": CONV["w"]},
    ),
    "conv same lower": (11, [("Conv", "x w -> y", {"auto_pad": "SAME_LOWER"})], {"w": CONV["w"]}),
    "conv valid": (11, [("Conv", "x w -> y", {"auto_pad": "VALID"})], {"w": CONV["w"]}),
    "conv in one dimension": (
        11,
        [("Reshape", "x s -> r", {}), ("Conv", "r w -> y", {"pads": [2, 0]})],
        {"s": whole(1, 2, 30), "w": numbers(3, 2, 4)},
    ),
    "batch norm": (15, [("BatchNormalization", "x s o m v -> y", {"epsilon": 0.01})], NORM),
    "batch norm of opset 7": (7, [("BatchNormalization", "x s o m v -> y", {})], NORM),
    "relu": (17, [("Relu", "x -> y", {})], {}),
    "leaky relu": (17, [("LeakyRelu", "x -> y", {"alpha": 0.3})], {}),
    "prelu": (17, [("PRelu", "x a -> y", {})], {"a": numbers(2, 1, 1)}),
    "max pool": (
        17,
        [
            (
                "MaxPool",
                "x -> y",
                {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1},
            )
        ],
        {},
    ),
    "max pool dilated": (17, [("MaxPool", "x -> y", {"kernel_shape": [2, 2], "dilations": [2, 3]})], {}),
    "max pool same": (
        17,
        [("MaxPool", "x -> y", {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"})],
        {},
    ),
    "average pool": (17, [("AveragePool", "x -> y", {"kernel_shape": [3, 3], "pads": [1, 1, 0, 1]})], {}),
    "average pool with pads counted": (
        19,
        [("AveragePool", "x -> y", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1})],
        {},
    ),
    "global pools": (
        17,
        [("GlobalAveragePool", "x -> a", {}), ("GlobalMaxPool", "x -> m", {}), ("Add", "a m -> y", {})],
        {},
    ),
    "reduce mean by attribute": (13, [("ReduceMean", "x -> y", {"axes": [-1, 2], "keepdims": 0})], {}),
    "reduce mean by input": (18, [("ReduceMean", "x a -> y", {})], {"a": whole(2, 3)}),
    "reduce mean of all": (18, [("ReduceMean", "x -> m", {}), ("Add", "m x -> y", {})], {}),
    "reduce sum": (13, [("ReduceSum", "x a -> y", {"keepdims": 0})], {"a": whole(1)}),
    "arithmetic": (
        14,
        [
            ("Sub", "x m -> a", {}),
            ("Div", "a d -> b", {}),
            ("Mul", "b t -> c", {}),
            ("Neg", "c -> e", {}),
            ("Sub", "one e -> y", {}),
        ],
        {"m": numbers(2, 1, 1), "d": positive(2, 1, 1), "t": numbers(6), "one": np.array(1, F32)},
    ),
    "branches": (
        14,
        [("Relu", "x -> r", {}), ("Add", "x r -> s", {}), ("Sub", "s x -> t", {}), ("Sum", "t x r -> y", {})],
        {},
    ),
    "abs, max, min": (
        14,
        [("Abs", "x -> a", {}), ("Max", "x a c -> b", {}), ("Min", "b d -> y", {})],
        {"c": np.array(0.5, F32), "d": np.array(0.75, F32)},
    ),
    "clip by attribute": (7, [("Clip", "x -> y", {"min": 0.0, "max": 0.5})], {}),
    "clip by input": (
        13,
        [("Clip", "x lo hi -> y", {})],
        {"lo": np.array(-0.25, F32), "hi": np.array(0.5, F32)},
    ),
    "clip below": (13, [("Clip", "x lo -> y", {})], {"lo": np.array(-0.25, F32)}),
    "clip above": (13, [("Clip", "x _ hi -> y", {})], {"hi": np.array(0.25, F32)}),
    "concat": (
        13,
        [("Relu", "x -> r", {}), ("Concat", "x r c -> y", {"axis": 1})],
        {"c": numbers(1, 3, 5, 6)},
    ),
    "transpose": (
        13,
        [("Transpose", "x -> t", {"perm": [0, 3, 1, 2]}), ("Flatten", "t -> y", {"axis": 2})],
        {},
    ),
    "transpose backwards": (13, [("Transpose", "x -> y", {})], {}),
    "pool of a transposed image": (
        13,
        [
            ("Transpose", "x -> t", {"perm": [0, 2, 1, 3]}),
            ("Relu", "t -> r", {}),
            ("MaxPool", "r -> y", {"kernel_shape": [2, 2]}),
        ],
        {},
    ),
    "squeeze and unsqueeze by attribute": (
        11,
        [
            ("Unsqueeze", "x -> u", {"axes": [1, 3]}),
            ("Squeeze", "u -> s", {"axes": [1]}),
            ("Squeeze", "s -> y", {}),
        ],
        {},
    ),
    "squeeze and unsqueeze by input": (
        13,
        [("Unsqueeze", "x a -> u", {}), ("Squeeze", "u b -> y", {})],
        {"a": whole(-1), "b": whole(0, -1)},
    ),
    "pad by attribute": (10, [("Pad", "x -> y", {"pads": [0, 0, 1, 2, 0, 1, -1, 0], "value": 0.5})], {}),
    "pad by input": (
        13,
        [("Pad", "x p v -> y", {})],
        {"p": whole(0, 0, 1, 2, 0, 0, 1, 0), "v": np.array(2, F32)},
    ),
    "pad some axes": (18, [("Pad", "x p _ a -> y", {})], {"p": whole(1, 2), "a": whole(-1)}),
    "pad reflected": (13, [("Pad", "x p -> y", {"mode": "reflect"})], {"p": whole(0, 0, 1, 2, 0, 0, 1, 0)}),
    "pad with edges": (13, [("Pad", "x p -> y", {"mode": "edge"})], {"p": whole(0, 0, 1, 2, 0, 0, 1, 0)}),
    "slice by attribute": (
        9,
        [("Slice", "x -> y", {"starts": [1, -3], "ends": [99, -1], "axes": [1, 3]})],
        {},
    ),
    "slice by input": (
        13,
        [("Slice", "x s e a t -> y", {})],
        {"s": whole(-1, 0), "e": whole(-99, 5), "a": whole(3, -2), "t": whole(-2, 2)},
    ),
    "split": (
        13,
        [("Split", "x l -> a b", {"axis": 3}), ("Concat", "b a x -> y", {"axis": 3})],
        {"l": whole(2, 4)},
    ),
    "gather": (13, [("Gather", "x i -> y", {"axis": 3})], {"i": whole(4, 0, -1)}),
    "expand": (
        13,
        [("ReduceMean", "x -> m", {"axes": [1]}), ("Expand", "m s -> y", {})],
        {"s": whole(2, 3, 1, 6)},
    ),
    "tile": (13, [("Tile", "x r -> y", {})], {"r": whole(1, 2, 1, 3)}),
    "where": (13, [("Relu", "x -> r", {}), ("Where", "c x r -> y", {})], {"c": numbers(5, 6) > 0}),
    "identity, dropout, cast": (
        13,
        [
            ("Identity", "x -> i", {}),
            ("Dropout", "i -> d", {}),
            ("Cast", "d -> e", {"to": TensorProto.DOUBLE}),
            ("Cast", "e -> y", {"to": TensorProto.FLOAT}),
        ],
        {},
    ),
    "constants as nodes": (
        13,
        [
            ("Constant", "-> c", {"value_floats": [0.5] * 6}),
            ("Constant", "-> s", {"value_ints": [1, -1]}),
            ("Mul", "x c -> m", {}),
            ("Reshape", "m s -> y", {}),
        ],
        {},
    ),
    "reshape keeps a zero": (13, [("Reshape", "x s -> y", {})], {"s": whole(0, -1, 6)}),
    "reshape by computed shape": (
        13,
        [
            ("Shape", "x -> s", {}),
            ("Gather", "s i -> n", {}),
            ("Unsqueeze", "n z -> u", {}),
            ("Concat", "u m -> t", {"axis": 0}),
            ("Reshape", "x t -> y", {}),
        ],
        {"i": np.array(0, np.int64), "z": whole(0), "m": whole(-1)},
    ),
    "shape arithmetic": (
        15,
        [
            ("Shape", "x -> s", {"start": 2}),
            ("Mul", "s k -> p", {}),
            ("Div", "p k -> q", {}),
            ("ConstantOfShape", "q -> z", {}),
            ("Cast", "z -> f", {"to": TensorProto.FLOAT}),
            ("Add", "x f -> y", {}),
        ],
        {"k": whole(3, 3)},
    ),
    "conv transpose": (
        11,
        [
            (
                "ConvTranspose",
                "x w b -> y",
                {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]},
            )
        ],
        {"w": numbers(2, 3, 3, 2), "b": numbers(3)},
    ),
    "conv transpose in groups, dilated": (
        11,
        [("ConvTranspose", "x w -> y", {"group": 2, "dilations": [2, 3]})],
        {"w": numbers(2, 2, 2, 3)},
    ),
    "conv transpose in one dimension": (
        11,
        [("Reshape", "x s -> r", {}), ("ConvTranspose", "r w -> y", {"strides": [2]})],
        {"s": whole(1, 2, 30), "w": numbers(2, 3, 4)},
    ),
    "reduce max by attribute": (13, [("ReduceMax", "x -> y", {"axes": [1, -1], "keepdims": 0})], {}),
    "reduce max by input": (18, [("ReduceMax", "x a -> m", {}), ("Sub", "x m -> y", {})], {"a": whole(2)}),
    "reduce max of all": (13, [("ReduceMax", "x -> m", {}), ("Add", "m x -> y", {})], {}),
    "reduce min": (13, [("ReduceMin", "x -> y", {"axes": [2]})], {}),
    "mean of branches": (13, [("Relu", "x -> r", {}), ("Mean", "x r c -> y", {})], {"c": numbers(6)}),
    "hard sigmoid": (13, [("HardSigmoid", "x -> y", {"alpha": 0.9})], {}),
    "soft shrink": (13, [("Shrink", "x -> y", {"lambd": 0.3, "bias": 0.3})], {}),
    "thresholded relu": (13, [("ThresholdedRelu", "x -> y", {"alpha": 0.0})], {}),
    "depth to space and back": (
        13,
        [
            ("Concat", "x x -> c", {"axis": 1}),
            ("DepthToSpace", "c -> d", {"blocksize": 2, "mode": "CRD"}),
            ("MaxPool", "d -> m", {"kernel_shape": [3, 1]}),
            ("SpaceToDepth", "m -> y", {"blocksize": 2}),
        ],
        {},
    ),
    "gather elements": (
        13,
        [("GatherElements", "x i -> y", {"axis": 3})],
        {"i": np.zeros((1, 2, 5, 2), int) + 4},
    ),
    "gather by tuples": (13, [("GatherND", "x i -> y", {})], {"i": np.array([[[0, 1, 4], [0, 0, 2]]])}),
    "upsample by attribute": (7, [("Upsample", "x -> y", {"scales": [1.0, 1.0, 2.0, 1.5]})], {}),
    "upsample by input": (9, [("Upsample", "x s -> y", {})], {"s": np.array([1, 1, 2.5, 2], F32)}),
    "resize of opset 10": (10, [("Resize", "x s -> y", {})], {"s": np.array([1, 1, 0.6, 1.7], F32)}),
    "resize to sizes": (13, [("Resize", "x _ _ n -> y", {})], {"n": whole(1, 2, 7, 4)}),
    "resize some axes": (18, [("Resize", "x _ s -> y", {"axes": [3]})], {"s": np.array([2.3], F32)}),
    "where as a relu": (
        13,
        [("Greater", "x z -> g", {}), ("Where", "g x z -> y", {})],
        {"z": np.array(0, F32)},
    ),
    "where as a clip": (
        16,
        [("Conv", "x w -> h", {}), ("LessOrEqual", "h c -> g", {}), ("Where", "g c h -> y", {})],
        {"w": CONV["w"], "c": np.array(0.3, F32)},
    ),
    "where as a leaky relu": (
        13,
        [
            ("Conv", "x w -> h", {}),
            ("Mul", "h a -> s", {}),
            ("Less", "h z -> g", {}),
            ("Not", "g -> n", {}),
            ("Where", "n h s -> y", {}),
        ],
        {"w": CONV["w"], "a": np.array(0.125, F32), "z": np.array(0, F32)},
    ),
    "where as a maximum": (
        13,
        [("Mul", "x a -> b", {}), ("Greater", "x b -> g", {}), ("Where", "g x b -> y", {})],
        {"a": numbers(2, 1, 1)},
    ),
    "a mask as a relu": (
        13,
        [("Greater", "x z -> g", {}), ("Cast", "g -> m", {"to": TensorProto.FLOAT}), ("Mul", "x m -> y", {})],
        {"z": np.array(0, F32)},
    ),
    "constants folded": (
        14,
        [
            ("Relu", "c -> r", {}),
            ("Exp", "r -> e", {}),
            ("Softmax", "e -> s", {}),
            ("CumSum", "s zero -> t", {}),
            ("BatchNormalization", "t sc o m v -> n", {}),
            ("Mul", "x n -> y", {}),
        ],
        {
            "c": numbers(1, 2, 5, 6),
            "zero": np.array(3),
            "sc": NORM["s"],
            "o": NORM["o"],
            "m": NORM["m"],
            "v": NORM["v"],
        },
    ),
    "quantised weights": (
        13,
        [
            ("Flatten", "x -> f", {}),
            ("DequantizeLinear", "q s z -> w", {"axis": 1}),
            ("MatMul", "f w -> y", {}),
        ],
        {
            "q": np.random.default_rng(0).integers(-128, 127, (60, 3)).astype(np.int8),
            "s": positive(3),
            "z": np.array([1, -2, 3], np.int8),
        },
    ),
    "shape arithmetic of any kind": (
        13,
        [
            ("Shape", "x -> s", {}),
            ("Mod", "s k -> m", {}),
            ("Range", "zero end one -> r", {}),
            ("Gather", "m r -> p", {}),
            ("ReduceProd", "p -> q", {"keepdims": 1}),
            ("ConstantOfShape", "q -> z", {}),
            ("ReduceSum", "z -> t", {"keepdims": 0}),
            ("Add", "x t -> y", {}),
        ],
        {"k": whole(3), "zero": np.array(0), "end": np.array(2), "one": np.array(1)},
    ),
}


@pytest.mark.parametrize(
    "mode",
    [
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric",
        "tf_half_pixel_for_nn",
    ],
)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_the_nearest_pixel_is_the_one_that_onnxruntime_takes(
    mode: str, nearest: str, make_model: Make, save: Save, read_as_onnxruntime: Compare
) -> None:
    attributes = {"coordinate_transformation_mode": mode, "nearest_mode": nearest}
    opset = {"half_pixel_symmetric": 19, "tf_half_pixel_for_nn": 11}.get(mode, 13)
    scales = {"r": np.zeros(0, F32), "s": np.array([1, 1, 1.7, 0.6], F32)}
    model = make_model([("Resize", "x r s -> y", attributes)], IMAGE, scales, opset=opset)
    read_as_onnxruntime(save(model))


def test_the_nearest_image_by_a_choice_and_a_largest_entry_is_that_by_a_relu_and_a_pooling(
    make_model: Make, save: Save
) -> None:
    """The same network in two ways, with the same nearest image."""
    constants = {"w": numbers(6, 8), "z": np.array(0, F32), "v": numbers(4, 3), "s": whole(1, 1, 4, 2)}
    usual = [
        ("Relu", "h -> r", {}),
        ("Reshape", "r s -> q", {}),
        ("MaxPool", "q -> p", {"kernel_shape": [1, 2]}),
    ]
    odd = [
        ("Greater", "h z -> g", {}),
        ("Where", "g h z -> r", {}),
        ("Reshape", "r s -> q", {}),
        ("ReduceMax", "q -> p", {"axes": [3]}),
    ]
    ends = [("Flatten", "p -> f", {}), ("MatMul", "f v -> y", {})]
    found = [
        nearest(
            save(make_model([("MatMul", "x w -> h", {}), *nodes, *ends], (1, 6), constants)), np.full(6, 0.5)
        )
        for nodes in (usual, odd)
    ]
    assert [verdict.outcome for verdict in found] == ["nearest", "nearest"]
    assert found[0].distance == pytest.approx(found[1].distance, rel=1e-3)


@pytest.mark.parametrize("free_batch", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_read_as_onnxruntime_runs_them(
    name: str, free_batch: bool, make_model: Make, save: Save, read_as_onnxruntime: Compare
) -> None:
    opset, nodes, constants = OPERATORS[name]
    model = make_model(nodes, ("batch" if free_batch else 1, *IMAGE[1:]), constants, opset=opset)
    classifier = read_as_onnxruntime(save(model))
    assert classifier.network.input_shape == IMAGE[1:]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[str, str, dict[str, Any]]], dict[str, np.ndarray]]:
    """Random graphs of layers that keep the shape (1, 2, 5, 6), with branches, and a last matrix."""
    nodes: list[tuple[str, str, dict[str, Any]]] = []
    constants: dict[str, np.ndarray] = {"last": numbers(60, 3)}
    values = ["x"]
    for step in range(draw(st.integers(1, 6))):
        source, out = draw(st.sampled_from(values)), f"v{step}"
        constants[f"c{step}"] = numbers(2, 1, 1, seed=step)
        constants[f"w{step}"] = numbers(2, 2, 3, 3, seed=step) / 3
        choice = draw(
            st.sampled_from(
                [
                    ("Conv", f"{source} w{step} -> {out}", {"pads": [1] * 4}),
                    ("Relu", f"{source} -> {out}", {}),
                    ("LeakyRelu", f"{source} -> {out}", {"alpha": 0.2}),
                    ("Clip", f"{source} -> {out}", {}),
                    ("MaxPool", f"{source} -> {out}", {"kernel_shape": [3, 3], "pads": [1] * 4}),
                    ("AveragePool", f"{source} -> {out}", {"kernel_shape": [3, 3], "pads": [1] * 4}),
                    ("Add", f"{source} {draw(st.sampled_from(values))} -> {out}", {}),
                    ("Sub", f"{source} {draw(st.sampled_from(values))} -> {out}", {}),
                    ("Mul", f"{source} c{step} -> {out}", {}),
                    ("Max", f"{source} {draw(st.sampled_from(values))} c{step} -> {out}", {}),
                ]
            )
        )
        nodes.append(choice)
        values.append(out)
    return [*nodes, ("Flatten", f"{values[-1]} -> flat", {}), ("MatMul", "flat last -> y", {})], constants


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_random_graphs_are_read_as_onnxruntime_runs_them(
    make_model: Make, save: Save, read_as_onnxruntime: Compare, graph: tuple
) -> None:
    nodes, constants = graph
    read_as_onnxruntime(save(make_model(nodes, ("n", *IMAGE[1:]), constants)))
