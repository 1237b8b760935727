"""A network whose answers are known by hand, and the command line as a user meets it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from closecall.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run closecall with arguments in this process; give its exit code and what it printed."""

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["closecall", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), said.out, said.err)

    return call


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


@pytest.fixture(scope="session")
def pixels(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write four pixels as an image file."""

    def write(*values: float) -> Path:
        path = tmp_path_factory.mktemp("image") / "image.npy"
        np.save(path, np.array(values, dtype=np.float32).reshape(1, 2, 2))
        return path

    return write
