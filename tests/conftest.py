"""What tests share: a network whose answers are known by hand, and examples that are the same every time."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import settings
from onnx import TensorProto, helper, numpy_helper

settings.register_profile("repeatable", derandomize=True, print_blob=True)
settings.load_profile("repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell does for what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def brightest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pixels, four classes: the brightest pixel wins, since y = ReLU(x − ½) − ReLU(½ − x) + ½ = x."""
    path = tmp_path_factory.mktemp("model") / "brightest.onnx"
    both = np.hstack([np.eye(4), -np.eye(4)]).astype(np.float32)
    shift = np.array([-0.5] * 4 + [0.5] * 4, dtype=np.float32)
    constants = {"in": both, "shift": shift, "out": both.T.copy(), "half": np.full(4, 0.5, dtype=np.float32)}
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("Gemm", ["flat", "in", "shift"], ["before"]),
        helper.make_node("Relu", ["before"], ["after"]),
        helper.make_node("Gemm", ["after", "out", "half"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "brightest",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 2, 2])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path
