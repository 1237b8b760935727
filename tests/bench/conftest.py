"""A network whose nearest images are known by hand, its images, and measurements made up for arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from closecall.bench.record import Measurement
from closecall.bench.yardsticks import Contender, Family, Yardstick

# Four pixels; the brightest wins. Image 1 bears a wrong label, so the correct ones are 0, 2 and 3.
IMAGES = np.array([[204, 51, 0, 0], [0, 255, 0, 0], [0, 0, 102, 51], [51, 153, 0, 0]], dtype=np.uint8)
LABELS = np.array([0, 3, 2, 1])


@pytest.fixture(scope="session")
def brightest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = ReLU(x − ½) − ReLU(½ − x) + ½ = x, in a file of its own."""
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
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pixels.npz"
    pixels = IMAGES.reshape(-1, 2, 2)
    np.savez(path, x_train=pixels, y_train=LABELS, x_test=pixels, y_test=LABELS)
    return path


@pytest.fixture
def tiny(brightest: Path, images: Path) -> Yardstick:
    """Two contenders, all three correct images in a full run and one in a quick run."""
    return Yardstick(
        "tiny",
        "A yardstick for tests.",
        (Contender("auto", "highs", 20, 10), Contender("milp", "highs", 20, 10)),
        (Family((str(brightest),), dataset=str(images)),),
        images=3,
        quick_images=1,
    )


@pytest.fixture
def made_up() -> Callable[..., Measurement]:
    """A measurement of which only some fields matter."""

    def make(**given: Any) -> Measurement:
        usual: dict[str, Any] = {
            "yardstick": "tiny", "run": "full", "network": "net", "image": 0, "norm": "l1", "target": "any",
            "cap": None, "radius": None, "method": "auto", "solver": "highs", "limit": 100.0, "threads": 1,
            "version": "0", "network_sha256": "f", "outcome": "nearest", "seconds": 1.0,
        }  # fmt: skip
        return Measurement(**{**usual, **given})

    return make
