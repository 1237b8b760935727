"""A verdict says what was asked, how hard it was tried, what answered, and how exact that is."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import closecall
from closecall.models import build
from closecall.question.effort import Effort
from closecall.readers import read
from closecall.solvers import SOLVERS, available, tolerances_of

IMAGE = np.random.default_rng(0).random((1, 3, 3))
# The keys of verdict.json, which programs read: none of them may go.
KEYS = {
    "outcome", "distance", "lower_bound", "norm", "label", "predicted_before", "predicted_after", "target",
    "margin", "ratio", "outputs", "radius", "cap", "gap", "seconds", "seconds_by_stage", "nodes", "solver",
    "method", "replayed", "network_sha256", "tolerances", "notes", "pixel_range", "png", "version",
}  # fmt: skip


@pytest.fixture(scope="module")
def classifier() -> closecall.readers.Classifier:
    return read(build("dnn", {"sizes": [6], "input_shape": (1, 3, 3), "classes": 3}, seed=1).eval())


@pytest.mark.parametrize("solver", available())
def test_a_solver_that_answers_is_named_with_its_own_tolerances(classifier, solver: str) -> None:
    verdict = closecall.nearest(classifier, IMAGE, method="milp", solver=solver)
    assert verdict.outcome == "nearest"
    assert verdict.engine == solver
    assert verdict.tolerances == tolerances_of(solver)
    assert verdict.to_json()["engine"] == solver


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
def test_our_own_search_trusts_no_solver(classifier, solver: str) -> None:
    """Also where a solver was named: it was not needed."""
    verdict = closecall.nearest(classifier, IMAGE, norm="l1", solver=solver)
    assert verdict.outcome == "nearest"
    assert verdict.engine not in SOLVERS
    assert verdict.tolerances == {"outward_rounding": 1e-11}


def test_an_image_that_is_wrong_already_needs_no_engine(classifier) -> None:
    label = (classifier.predict(IMAGE) + 1) % 3
    verdict = closecall.nearest(classifier, IMAGE, label, method="milp")
    assert (verdict.distance, verdict.engine) == (0.0, "the model itself")


def test_what_was_asked_can_be_read_flat_and_as_one(classifier) -> None:
    asked = {"norm": "L∞", "cap": 0.75, "margin": 0.01, "radius": 0.9, "pixel_range": (-1, 2)}
    verdict = closecall.nearest(classifier, IMAGE, target=1, **asked, gap=0.01, threads=1, time_limit=30.0)
    assert (verdict.norm, verdict.cap, verdict.margin, verdict.radius) == ("linf", 0.75, 0.01, 0.9)
    assert (verdict.target, verdict.ratio, verdict.outputs) == (1, None, "logits")
    assert verdict.pixel_range == (-1, 2)
    assert verdict.label == verdict.question.label == classifier.predict(IMAGE)
    assert verdict.effort == Effort(time_limit=30.0, gap=0.01)
    assert (verdict.method, verdict.solver, verdict.gap) == ("auto", "highs", 0.01)
    record = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert set(record) >= KEYS
    assert all(not isinstance(value, dict) or key in ("seconds_by_stage", "tolerances", "png")
               for key, value in record.items())  # fmt: skip
    for name in ("norm", "cap", "margin", "radius", "target", "ratio", "outputs", "label", "gap", "method"):
        assert record[name] == getattr(verdict, name)
    assert record["pixel_range"] == [-1, 2]


def test_the_whole_box_has_no_radius(classifier) -> None:
    verdict = closecall.nearest(classifier, IMAGE)
    assert math.isinf(verdict.question.radius)
    assert verdict.radius is None
    assert verdict.to_json()["radius"] is None
