"""The best example of a class, against every activation pattern of tiny networks."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import nn

from closecall.ask.ideal import Ideal, ideal
from closecall.encoding.encode import Costs
from closecall.errors import QueryError

from .hidden_layer import HiddenLayer

torch.set_num_threads(1)

PIXELS, HIDDEN, CLASSES = 3, 5, 3


class Tiny(HiddenLayer):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, (1, 1, PIXELS), HIDDEN, CLASSES, (1.0, 0.3))


def best_lead(model: Tiny, target: int, low: float, high: float) -> float:
    """max over all patterns of: maximise g with y_t − y_j ≥ g, an LP in (x, g)."""
    inner, inner_bias, outer, outer_bias = model.weights()
    rivals = [j for j in range(CLASSES) if j != target]
    best = -math.inf
    for signs in itertools.product([0.0, 1.0], repeat=HIDDEN):
        on = np.array(signs)
        slopes, offset = outer @ (on[:, None] * inner), outer @ (on * inner_bias) + outer_bias
        away = np.where(on == 1, -1.0, 1.0)
        rows = np.vstack([away[:, None] * inner, slopes[rivals] - slopes[target]])
        last = np.append(np.zeros(HIDDEN), np.ones(len(rivals)))
        sides = np.concatenate([-away * inner_bias, offset[target] - offset[rivals]])
        found = linprog(
            np.append(np.zeros(PIXELS), -1.0),
            A_ub=np.hstack([rows, last[:, None]]),
            b_ub=sides,
            bounds=[(low, high)] * PIXELS + [(None, None)],
        )
        if found.status == 0:
            best = max(best, float(-found.fun))
    return best


def lead_in_torch(model: Tiny, found: Ideal) -> float:
    with torch.no_grad():
        scores = model(torch.from_numpy(found.image)[None]).numpy()[0].astype(np.float64)
    return float(scores[found.target] - np.delete(scores, found.target).max())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(0, CLASSES - 1), st.sampled_from([(0.0, 1.0), (-2.0, 1.5)]))
def test_no_image_leads_by_more(seed: int, target: int, pixel_range: tuple[float, float]) -> None:
    model = Tiny(seed)
    found = ideal(model, target, pixel_range=pixel_range)
    truth = best_lead(model, target, *pixel_range)
    assert found.outcome == "ideal"
    assert found.lead == pytest.approx(truth, rel=2e-4, abs=2e-4)
    assert found.lead <= truth + 1e-5
    assert found.lead_bound is not None
    assert found.lead_bound >= truth - 1e-6
    assert lead_in_torch(model, found) == pytest.approx(found.lead, abs=1e-5)
    assert found.image.min() >= pixel_range[0]
    assert found.image.max() <= pixel_range[1]
    assert found.replayed == (found.predicted == target)
    if truth > 1e-4:
        assert found.predicted == target


def test_stopped_at_once_the_bound_still_holds() -> None:
    model = Tiny(3)
    found = ideal(model, 1, time_limit=1e-6)
    truth = best_lead(model, 1, 0.0, 1.0)
    assert found.lead <= truth + 1e-5
    assert found.lead_bound is None or found.lead_bound >= truth - 1e-6


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        (lambda: {"unit": 1.0}, "give costs as closecall.Costs"),
        (lambda: Costs(unit="dear"), "the cost unit must be a number, got 'dear'"),
        (lambda: Costs(wanted_class=math.nan), "the costs must be finite numbers"),
    ],
)
def test_costs_that_cannot_be_paid(costs, sentence: str) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)).eval()
    with pytest.raises(QueryError, match=sentence):
        ideal(model, 1, costs=costs(), input_shape=(1, 2, 2))


def test_with_the_papers_costs_no_activation_is_wasted() -> None:
    """Σ unit·x is the least over all images of the class, found pattern by pattern."""
    model, target = Tiny(1), 2
    inner, inner_bias, outer, outer_bias = model.weights()
    rivals = [j for j in range(CLASSES) if j != target]
    best = math.inf
    for signs in itertools.product([0.0, 1.0], repeat=HIDDEN):
        on = np.array(signs)
        slopes, offset = outer @ (on[:, None] * inner), outer @ (on * inner_bias) + outer_bias
        away = np.where(on == 1, -1.0, 1.0)
        rows = np.vstack([away[:, None] * inner, slopes[rivals] - slopes[target]])
        sides = np.concatenate([-away * inner_bias, offset[target] - offset[rivals] - 0.001])
        active = on @ inner
        found = linprog(active, A_ub=rows, b_ub=sides, bounds=[(0.0, 1.0)] * PIXELS)
        if found.status == 0:
            best = min(best, float(found.fun + on @ inner_bias))
    answer = ideal(model, target, costs=Costs(unit=1.0))
    assert math.isfinite(best)
    assert answer.outcome == "optimal for costs"
    assert answer.lead_bound is None
    hidden = np.maximum(inner @ answer.image.ravel().astype(np.float64) + inner_bias, 0.0)
    assert hidden.sum() == pytest.approx(best, abs=1e-4)
    assert answer.predicted == target


def test_an_answer_becomes_strict_json() -> None:
    found = ideal(Tiny(0), 0)
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["target"] == 0
    assert "image" not in record
    assert "class 0" in found.summary()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"target": 3}, "target must be from 0 to 2"),
        ({"target": -1}, "target must be from 0 to 2"),
        ({"target": 0, "pixel_range": (1.0, 1.0)}, "pixel range must rise"),
        ({"target": 0, "time_limit": 0.0}, "time limit"),
        ({"target": 0, "solver": "abacus"}, "unknown solver"),
    ],
)
def test_bad_questions_are_refused(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        ideal(Tiny(0), **arguments)
