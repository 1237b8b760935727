"""VNN-LIB properties of a small network, against sampling and onnxruntime."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

from closecall.cli import app
from closecall.models import build
from closecall.models.export import onnx_bytes
from closecall.readers import read
from closecall.readers.vnnlib import parse_property
from closecall.vnncomp import decide


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = build("dnn", {"sizes": [12, 8], "input_shape": [1, 1, 3], "classes": 3}, seed=3)
    path = tmp_path_factory.mktemp("vnncomp") / "network.onnx"
    path.write_bytes(onnx_bytes(module))
    return path


def scores_of(path: Path, points: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path))
    name = session.get_inputs()[0].name
    return np.vstack(
        [session.run(None, {name: point.reshape(1, 1, 1, 3).astype(np.float32)})[0] for point in points]
    )


def property_text(limit: float, *, reach: float = 1.0) -> str:
    """Violated where output 0 is at least `limit`."""
    declared = [f"(declare-const X_{i} Real)" for i in range(3)] + [
        f"(declare-const Y_{i} Real)" for i in range(3)
    ]
    boxes = [f"(assert (>= X_{i} 0))\n(assert (<= X_{i} {reach}))" for i in range(3)]
    return "\n".join([*declared, *boxes, f"(assert (>= Y_0 {limit!r}))"])


@pytest.fixture(scope="module")
def highest(network: Path) -> float:
    points = np.random.default_rng(0).random((4000, 3))
    return float(scores_of(network, points)[:, 0].max())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_reachable_output_is_sat_with_a_counterexample_that_onnxruntime_confirms(
    network: Path, highest: float, threads: int
) -> None:
    limit = highest - 1e-3
    classifier = read(network)
    decision = decide(classifier, parse_property(property_text(limit), 3, 3), seconds=30, threads=threads)
    assert decision.answer == "sat"
    assert decision.inputs is not None
    assert (decision.inputs >= 0).all()
    assert (decision.inputs <= 1).all()
    assert scores_of(network, decision.inputs.reshape(1, 3))[0, 0] >= limit


def test_an_output_that_nothing_reaches_is_unsat(network: Path, highest: float) -> None:
    decision = decide(read(network), parse_property(property_text(highest + 0.5), 3, 3), seconds=30)
    assert decision.answer == "unsat"
    assert decision.inputs is None


def test_the_command_prints_the_answer_in_the_competition_format(
    network: Path, highest: float, tmp_path: Path
) -> None:
    question, result = tmp_path / "question.vnnlib", tmp_path / "result.txt"
    question.write_text(property_text(highest - 1e-3))
    done = CliRunner().invoke(app, ["vnncomp", str(network), str(question), "--result", str(result)])
    assert done.exit_code == 0
    assert result.read_text() == done.stdout
    assert done.stdout.startswith("sat\n((X_0 ")
    values = {name: float(value) for name, value in re.findall(r"\(([XY]_\d+) ([^)]+)\)", done.stdout)}
    scores = scores_of(network, np.array([[values[f"X_{i}"] for i in range(3)]]))[0]
    np.testing.assert_allclose(scores, [values[f"Y_{i}"] for i in range(3)], rtol=1e-5, atol=1e-6)


def test_a_property_for_another_network_is_one_sentence(network: Path, tmp_path: Path) -> None:
    question = tmp_path / "question.vnnlib"
    question.write_text("(declare-const X_0 Real)\n(assert (<= X_0 1))")
    done = CliRunner().invoke(app, ["vnncomp", str(network), str(question)])
    assert done.exit_code != 0
    assert done.exception is not None
    assert len(str(done.exception).splitlines()) == 1
