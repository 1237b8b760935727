"""A question stays under a gigabyte, also one about a network whose dense matrices would take twenty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GIGABYTE = 10**9

# A thick vertical stroke, which any digit classifier has an opinion about.
SCRIPT = """
import json, resource, sys
from pathlib import Path
import numpy as np
from closecall.ask.nearest import nearest
from closecall.readers import read
model, image = sys.argv[1], np.zeros((1, 28, 28))
image[0, 4:24, 12:16] = 0.9
if model == "residual":
    from test_cut_off import Residual
    model, image = Residual(16).eval(), np.random.default_rng(0).random((3, 32, 32))
classifier = read(model)
classifier.prepare()  # which is no part of the search, and takes long where torch has just been started
verdict = nearest(classifier, image, norm=sys.argv[2], method=sys.argv[3], time_limit=5)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
if Path("/proc/self/status").exists():  # ru_maxrss counts the parent's memory before exec
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
moved = None if verdict.witness is None else np.abs(verdict.witness - image.astype(np.float32)).ravel()
seen = None if verdict.witness is None else classifier.predict(verdict.witness)
print(json.dumps({
    "outcome": verdict.outcome, "peak": peak, "lower": verdict.lower_bound, "distance": verdict.distance,
    "moved": moved is not None and float(moved.sum() if sys.argv[2] == "l1" else moved.max()),
    "changed": seen is not None and seen != classifier.predict(image),
}))
"""


@pytest.mark.parametrize(
    ("model", "norm", "method", "proven"),
    [
        ("zoo:mnist-cnn", "linf", "auto", True),
        ("zoo:mnist-cnn", "l1", "milp", True),
        ("zoo:mnist-cnn-paper", "l1", "auto", True),
        ("residual", "linf", "auto", False),  # too large for more than an attack in this time
    ],
)
def test_a_question_stays_under_a_gigabyte(model: str, norm: str, method: str, proven: bool) -> None:
    """And is answered meanwhile: by an image that does fool the model, and an interval that holds it."""
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, model, norm, method],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parent,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout.splitlines()[-1])
    assert report["peak"] < GIGABYTE
    assert report["outcome"] in ("nearest", "adversarial")
    assert report["changed"]
    assert report["moved"] == pytest.approx(report["distance"], rel=1e-4)
    assert 0 <= report["lower"] <= report["distance"]
    assert report["lower"] > 0 or not proven
