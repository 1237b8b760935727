"""Thousands of damaged files: an error of ours or a right answer, never anything else."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from closecall.errors import InputError
from closecall.readers import read
from closecall.readers.vnnlib import parse_property

Make = Callable[..., onnx.ModelProto]

FUZZING = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)
NUMBERS = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 12, 100, 300, 2**31 - 1, 2**31, 2**40, 2**63 - 1]


@pytest.fixture(scope="module")
def seeds(make_model: Make) -> list[onnx.ModelProto]:
    """Valid models that use every kind of field."""
    normal = np.random.default_rng(0).normal
    weights = {
        "w": normal(size=(3, 2, 2, 2)).astype(np.float32),
        "b": normal(size=3).astype(np.float32),
        "m": normal(size=(12, 4)).astype(np.float32),
        "s": np.array([1, -1], dtype=np.int64),
        "p": np.array([0, 0, 1, 0, 0, 0, 0, 1], dtype=np.int64),
        "c": np.float32(0.5),
    }
    conv = [
        ("Sub", "x c -> n", {}),
        ("Conv", "n w b -> a", {"strides": [1, 1], "pads": [0, 1, 1, 0], "dilations": [1, 1], "group": 1}),
        ("Relu", "a -> r", {}),
        ("MaxPool", "r -> q", {"kernel_shape": [2, 2], "strides": [1, 1], "ceil_mode": 0}),
        ("Reshape", "q s -> f", {}),
        ("Gemm", "f m -> g", {"alpha": 0.5, "transB": 0}),
        ("Softmax", "g -> y", {"axis": 1}),
    ]
    shapes = [
        ("Pad", "x p c -> a", {}),
        ("Transpose", "a -> t", {"perm": [0, 2, 3, 1]}),
        ("Split", "t -> h i", {"axis": 3}),
        ("LeakyRelu", "h -> j", {"alpha": 0.25}),
        ("Clip", "i c -> k", {}),
        ("Concat", "j k -> l", {"axis": 1}),
        ("AveragePool", "l -> o", {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "count_include_pad": 1}),
        ("ReduceMean", "o -> u", {"axes": [2], "keepdims": 0}),
        ("Flatten", "u -> y", {"axis": 1}),
    ]
    return [make_model(nodes, ("n", 2, 3, 3), weights, opset=13) for nodes in (conv, shapes)]


def check(content: bytes, path: Path) -> None:
    """Read what may be damaged; what is read must agree with onnxruntime on images of its own."""
    path.write_bytes(content)
    try:
        classifier = read(path)
    except InputError:
        return
    images = np.random.default_rng(9).uniform(-1, 2, (3, *classifier.network.input_shape)).astype(np.float32)
    values = classifier.network.values(images)
    largest = max(np.abs(value).max(initial=1.0) for value in values)
    if largest > 1e30:  # float32 overflows where float64 does not
        return
    original = classifier.engines["onnxruntime"](images)
    if classifier.notes:
        scores = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(scores, original, atol=min(1.0, 1e-4 * largest))
    else:
        np.testing.assert_allclose(values[-1], original, rtol=1e-3, atol=1e-4 * largest)


def test_the_seeds_are_read(seeds: list[onnx.ModelProto], tmp_path: Path) -> None:
    for number, seed in enumerate(seeds):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(seed.SerializeToString())
        assert read(path).network.units > 0


def damaged(content: bytes, source: random.Random) -> bytes:
    """Flip, cut, repeat or overwrite a few places."""
    changed = bytearray(content)
    for _ in range(source.choice([1, 1, 2, 5])):
        place = source.randrange(len(changed) or 1)
        kind = source.randrange(5)
        if kind == 0 and changed:
            changed[place] ^= 1 << source.randrange(8)
        elif kind == 1 and changed:
            changed[place] = source.choice([0, 1, 127, 128, 255])
        elif kind == 2:
            del changed[place : place + source.choice([1, 2, 30])]
        elif kind == 3:
            changed[place:place] = changed[place : place + source.choice([1, 8, 60])]
        else:
            changed[place : place + 2] = source.randbytes(2)
    return bytes(changed)


@settings(FUZZING, max_examples=1200)
@given(seed=st.integers(0, 2**40))
def test_damaged_bytes(
    seeds: list[onnx.ModelProto], tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    source = random.Random(seed)
    content = source.choice(seeds).SerializeToString()
    check(damaged(content, source), tmp_path_factory.getbasetemp() / "bytes.onnx")


def twisted(model: onnx.ModelProto, source: random.Random) -> bytes:
    """Change meaning, not spelling: attributes, shapes, names, operators, order."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    names = (
        [name for node in graph.node for name in node.output]
        + [t.name for t in graph.initializer]
        + ["x", "y", ""]
    )
    for _ in range(source.choice([1, 1, 2, 3])):
        node = source.choice(graph.node)
        kind = source.randrange(8)
        if kind <= 2 and node.attribute:
            attribute = source.choice(node.attribute)
            if attribute.ints:
                attribute.ints[source.randrange(len(attribute.ints))] = source.choice(NUMBERS)
            elif attribute.type == onnx.AttributeProto.INT:
                attribute.i = source.choice(NUMBERS)
            else:
                attribute.f = source.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
        elif kind == 3:
            constant = source.choice(graph.initializer)
            if constant.dims:
                constant.dims[source.randrange(len(constant.dims))] = source.choice(NUMBERS)
        elif kind == 4 and node.input:
            node.input[source.randrange(len(node.input))] = source.choice(names)
        elif kind == 5:
            node.op_type = source.choice(graph.node).op_type
        elif kind == 6:
            side = source.choice(graph.input[0].type.tensor_type.shape.dim)
            side.dim_value = source.choice(NUMBERS)
        else:
            constant = source.choice(graph.initializer)
            step = constant.raw_data[:4] if source.random() < 0.5 else source.randbytes(4)
            constant.raw_data = (step * len(constant.raw_data))[: len(constant.raw_data)]
    return bytes(changed.SerializeToString())


@settings(FUZZING, max_examples=1500)
@given(seed=st.integers(0, 2**40))
def test_twisted_graphs(
    seeds: list[onnx.ModelProto], tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    source = random.Random(seed)
    check(twisted(source.choice(seeds), source), tmp_path_factory.getbasetemp() / "twisted.onnx")


PROPERTY = """; two inputs, two outputs
(declare-const X_0 Real) (declare-const X_1 Real) (declare-const Y_0 Real) (declare-const Y_1 Real)
(assert (>= X_0 -1.5e-1)) (assert (<= X_0 1))
(assert (and (<= X_1 (+ 1 2 -0.5)) (>= X_1 0.25)))
(assert (or (and (>= Y_0 Y_1) (<= (* 2 Y_0) 3)) (and (<= (- Y_0 Y_1) -0.5) (<= X_0 0.5))))
"""
WORDS = [
    *PROPERTY.split(),
    "(",
    ")",
    "(or",
    "(and",
    "(assert",
    "X_99",
    "1e400",
    "-",
    "(- 1)",
    ";",
    "\0",
    "nan",
]


@settings(FUZZING, max_examples=1500)
@given(seed=st.integers(0, 2**40))
def test_damaged_properties(seed: int) -> None:
    source = random.Random(seed)
    if source.random() < 0.5:
        text = damaged(PROPERTY.encode(), source).decode(errors="replace")
    else:
        words = PROPERTY.replace("(", " ( ").replace(")", " ) ").split(" ")
        for _ in range(source.randrange(1, 4)):
            place = source.randrange(len(words))
            words[place : place + source.randrange(3)] = source.choices(WORDS, k=source.randrange(3))
        text = " ".join(words)
    try:
        found = parse_property(text, 2, 2)
    except InputError:
        return
    for case in itertools.islice((case for case in found.cases() if case is not None), 100):
        assert case.lower.shape == case.upper.shape == (2,)
        assert np.isfinite([case.lower, case.upper]).all()
        assert (case.lower <= case.upper).all()
        assert case.matrix.shape == (len(case.bound), 2)
        assert np.isfinite(case.matrix).all()
        assert np.isfinite(case.bound).all()


@settings(FUZZING, max_examples=300)
@given(st.text(alphabet="()<>=+-*0123456789.eXY_ \nandorssert;", max_size=200))
def test_nonsense_properties(text: str) -> None:
    with pytest.raises(InputError):
        parse_property(text, 1, 1)
