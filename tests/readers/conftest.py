"""Small ONNX files, made node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from closecall.readers import Classifier, read


@pytest.fixture(scope="session")
def make_model() -> Callable[..., onnx.ModelProto]:
    """Build a model from `x` to `y`; a node is (operator, "inputs -> outputs", attributes)."""

    def make(
        nodes: Sequence[tuple[str, str, dict[str, Any]]],
        input_shape: Sequence[int | str | None],
        constants: dict[str, Any] | None = None,
        *,
        output_shape: Sequence[int | str] | None = None,
        opset: int = 17,
        kind: int = TensorProto.FLOAT,
    ) -> onnx.ModelProto:
        made = []
        for index, (operator, names, attributes) in enumerate(nodes):
            inputs, outputs = (side.strip().split() for side in names.split("->"))
            inputs = ["" if name == "_" else name for name in inputs]
            made.append(helper.make_node(operator, inputs, outputs, name=f"node{index}", **attributes))
        graph = helper.make_graph(
            made,
            "graph",
            [helper.make_tensor_value_info("x", kind, input_shape)],
            [helper.make_tensor_value_info("y", kind, output_shape)],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return model if output_shape is not None else onnx.shape_inference.infer_shapes(model)

    return make


@pytest.fixture(scope="session")
def save(tmp_path_factory: pytest.TempPathFactory) -> Callable[[onnx.ModelProto | bytes], Path]:
    """Write a model into a new folder."""

    def write(model: onnx.ModelProto | bytes) -> Path:
        path = tmp_path_factory.mktemp("onnx") / "model.onnx"
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        return path

    return write


@pytest.fixture(scope="session")
def read_as_onnxruntime() -> Callable[..., Classifier]:
    """Read a file and compare network and engine with another session of onnxruntime."""

    def compare(path: Path, *, peeled: bool = False) -> Classifier:
        classifier = read(path)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        entry = session.get_inputs()[0]
        sides = [side if isinstance(side, int) else 1 for side in entry.shape]
        images = (
            np.random.default_rng(5).uniform(-1, 2, (3, *classifier.network.input_shape)).astype(np.float32)
        )
        expected = np.stack(
            [session.run(None, {entry.name: image.reshape(sides)})[0].ravel() for image in images]
        )
        np.testing.assert_allclose(classifier.engines["onnxruntime"](images), expected, atol=1e-5, rtol=1e-5)
        if not peeled:
            scores = classifier.network.forward(images.astype(np.float64))
            np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-4)
        return classifier

    return compare
