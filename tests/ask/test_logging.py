"""What a question does is logged under the name of the package, and nobody sees it who does not ask."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import closecall
from closecall.models import build

IMAGE = np.random.default_rng(0).random((1, 3, 3))
SILENT = """
import logging, numpy as np, closecall
from closecall.models import build
model = build("dnn", {"sizes": [6], "input_shape": (1, 3, 3), "classes": 3}, seed=1).eval()
closecall.nearest(model, np.random.default_rng(0).random((1, 3, 3)))
logging.getLogger("closecall").warning("not even a warning")
"""


def model() -> object:
    return build("dnn", {"sizes": [6], "input_shape": (1, 3, 3), "classes": 3}, seed=1).eval()


def test_the_stages_are_logged_in_their_order(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="closecall"):
        verdict = closecall.nearest(model(), IMAGE)
    assert all(record.name.startswith("closecall.") for record in caplog.records)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert said[0].startswith(
        "asked for the nearest image: Question(label=2, classes=3, target=None, norm='l1'"
    )
    assert "method='auto'" in said[0]
    assert said[-2].startswith(f"{verdict.engine}: a witness at ")
    assert said[-2].endswith(f"nothing nearer than {verdict.lower_bound:.6g}")
    assert said[-1] == f"verdict: {verdict.summary()}"
    everything = [record.getMessage() for record in caplog.records]
    for words in (
        "read took ",
        "attack took ",
        "replay took ",
        f"asking: {verdict.engine}",
        "replayed in float32",
    ):
        assert any(message.startswith(words) for message in everything), words


def test_ideal_and_certify_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="closecall"):
        robust = closecall.certify(model(), IMAGE, radius=1e-5)
        best = closecall.ideal(model(), 1)
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("asked for any image: ")
    assert any(message.endswith(": no witness, nothing nearer than inf") for message in said)
    assert f"verdict: {robust}" in said
    assert said[-1] == f"found: {best}"


def test_it_is_silent_unless_asked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SILENT], capture_output=True, text=True, check=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("", "")
