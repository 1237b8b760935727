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

TESTS = Path(__file__).parent


def listed_as_slow() -> set[str]:
    """The lines of slow.txt, each of which must name a folder, a file or a test that is there."""
    written = (TESTS / "slow.txt").read_text(encoding="utf-8").splitlines()
    lines = {line.strip() for line in written if line.strip() and not line.startswith("#")}
    for line in lines:
        place, _, test = line.partition("::")
        path = TESTS.parent / place
        if not path.exists() or (test and f"def {test}(" not in path.read_text(encoding="utf-8")):
            raise pytest.UsageError(
                f"tests/slow.txt lists {line}, which is not there: mend or remove the line."
            )
    return lines


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = listed_as_slow()
    for item in items:
        place = item.path.relative_to(TESTS.parent)
        test = f"{place.as_posix()}::{item.name.partition('[')[0]}"
        if slow.intersection([test, place.as_posix(), *(folder.as_posix() for folder in place.parents)]):
            item.add_marker("slow")


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
