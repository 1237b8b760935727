"""The exported MILP has the optimum that the search proves, in both forms."""

from __future__ import annotations

import numpy as np
import pytest

import closecall
from closecall.ask.export import export_milp
from closecall.encoding.encode import Costs
from closecall.errors import QueryError
from closecall.models import build
from closecall.readers import read
from closecall.solvers import solve

IMAGE = np.random.default_rng(3).random((1, 4, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def classifier() -> closecall.readers.Classifier:
    config = {"blocks": ["2x3p1/2"], "hidden": [4], "input_shape": (1, 4, 4), "classes": 3}
    return read(build("cnn", config, seed=4).eval())


@pytest.mark.parametrize("form", ["tight", "paper"])
@pytest.mark.parametrize("asked", [{"norm": "l1"}, {"norm": "linf", "target": "paper", "outputs": "relu"}])
def test_the_optimum_is_the_distance(classifier, form, asked) -> None:
    verdict = closecall.nearest(classifier, IMAGE, method="milp", **asked)
    solution = solve(export_milp(classifier, IMAGE, form=form, **asked))
    if verdict.outcome == "robust":
        assert solution.status == "infeasible"
    else:
        assert solution.objective == pytest.approx(verdict.distance, rel=1e-4, abs=1e-6)


def test_a_form_and_costs_that_do_not_fit(classifier) -> None:
    with pytest.raises(QueryError, match="the form must be tight or paper, got 'loose'"):
        export_milp(classifier, IMAGE, form="loose")
    with pytest.raises(QueryError, match="they need the form paper"):
        export_milp(classifier, IMAGE, costs=Costs(unit=1.0))
    assert export_milp(classifier, IMAGE, form="paper", costs=Costs(unit=1.0)).objective.max() >= 1.0
