"""Smooth ideal images, the paper's costs with penalties, and sheets, against programs that scipy solves."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from torch import nn

import closecall
from closecall.ask.ideal import ideal
from closecall.ask.ideals import ideals
from closecall.attacks.smooth import climb_smoothly
from closecall.encoding.encode import Costs
from closecall.errors import QueryError
from closecall.question.variation import neighbours, variation

from .hidden_layer import HiddenLayer

torch.set_num_threads(1)

HIDDEN, CLASSES, SHAPE = 5, 3, (1, 2, 3)
PIXELS = math.prod(SHAPE)
PAIRS = ((0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5))  # neighbours of a picture of 2 x 3
MARGIN = 0.001


class Tiny(HiddenLayer):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, SHAPE, HIDDEN, CLASSES, (1.0, 0.3))


def roughness(image: np.ndarray) -> float:
    flat = image.astype(np.float64).ravel()
    return float(sum(abs(flat[i] - flat[j]) for i, j in PAIRS))


def best_smooth_lead(model: Tiny, target: int, weight: float) -> float:
    """max over patterns of an LP in the pixels, the lead, and one number t ≥ |v_i − v_j| for each pair."""
    inner, inner_bias, outer, outer_bias = model.weights()
    rivals = [j for j in range(CLASSES) if j != target]
    apart = np.zeros((len(PAIRS), PIXELS))
    for row, (i, j) in enumerate(PAIRS):
        apart[row, i], apart[row, j] = 1.0, -1.0
    none, each = np.zeros((len(PAIRS), 1)), np.eye(len(PAIRS))
    steps = np.vstack([np.hstack([apart, none, -each]), np.hstack([-apart, none, -each])])
    best = -math.inf
    for signs in itertools.product([0.0, 1.0], repeat=HIDDEN):
        on = np.array(signs)
        slopes, offset = outer @ (on[:, None] * inner), outer @ (on * inner_bias) + outer_bias
        away = np.where(on == 1, -1.0, 1.0)
        rows = np.vstack([away[:, None] * inner, slopes[rivals] - slopes[target]])
        last = np.append(np.zeros(HIDDEN), np.ones(len(rivals)))
        whole = np.hstack([rows, last[:, None], np.zeros((len(rows), len(PAIRS)))])
        sides = np.concatenate([-away * inner_bias, offset[target] - offset[rivals], np.zeros(len(steps))])
        found = linprog(
            np.concatenate([np.zeros(PIXELS), [-1.0], np.full(len(PAIRS), weight)]),
            A_ub=np.vstack([whole, steps]),
            b_ub=sides,
            bounds=[(0.0, 1.0)] * PIXELS + [(None, None)] + [(0.0, None)] * len(PAIRS),
        )
        if found.status == 0:
            best = max(best, float(-found.fun))
    return best


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weight", [0.05, 0.4, 3.0])
def test_no_image_leads_by_more_for_its_variation(seed: int, weight: float) -> None:
    model, target = Tiny(seed), seed % CLASSES
    found = ideal(model, target, smooth=weight)
    truth = best_smooth_lead(model, target, weight)
    assert (found.outcome, found.aim) == ("ideal", "smooth lead")
    assert found.objective == pytest.approx(truth, rel=2e-4, abs=2e-4)
    assert found.objective is not None
    assert found.objective_bound is not None
    assert found.objective <= truth + 1e-5
    assert found.objective_bound >= truth - 1e-6
    assert found.variation == pytest.approx(roughness(found.image), abs=1e-6)
    assert found.objective == pytest.approx(found.lead - weight * roughness(found.image), abs=1e-6)
    assert found.lead_bound is not None
    assert found.lead_bound >= best_smooth_lead(model, target, 0.0) - 1e-6


def least_costs(model: Tiny, target: int, costs: Costs, weight: float) -> float:
    """The paper's model once more, written down for scipy's own MILP: x − s = a, z = 1 for inactive."""
    inner, inner_bias, outer, outer_bias = model.weights()
    rivals = [j for j in range(CLASSES) if j != target]
    big, count = 50.0, PIXELS + 3 * HIDDEN + len(PAIRS)
    v, x, s, z, t = np.split(np.arange(count), np.cumsum([PIXELS, HIDDEN, HIDDEN, HIDDEN]))
    rows, low, high = [], [], []

    def require(entries: list[tuple[int, float]], least: float, most: float) -> None:
        row = np.zeros(count)
        for column, entry in entries:
            row[column] += entry
        rows.append(row)
        low.append(least)
        high.append(most)

    for unit in range(HIDDEN):
        into = [(v[p], -inner[unit, p]) for p in range(PIXELS)]
        require([(x[unit], 1.0), (s[unit], -1.0), *into], inner_bias[unit], inner_bias[unit])
        require([(x[unit], 1.0), (z[unit], big)], -np.inf, big)
        require([(s[unit], 1.0), (z[unit], -big)], -np.inf, 0.0)
    for j in rivals:
        lead = [(x[unit], outer[target, unit] - outer[j, unit]) for unit in range(HIDDEN)]
        require(lead, MARGIN - outer_bias[target] + outer_bias[j], np.inf)
    for pair, (i, j) in enumerate(PAIRS):
        require([(v[i], 1.0), (v[j], -1.0), (t[pair], -1.0)], -np.inf, 0.0)
        require([(v[j], 1.0), (v[i], -1.0), (t[pair], -1.0)], -np.inf, 0.0)
    objective = np.zeros(count)
    objective[x] += costs.unit - costs.wanted_class * outer[target]
    objective[z] += costs.inactive
    objective[t] += weight
    upper = np.full(count, np.inf)
    upper[[*v, *z]] = 1.0
    whole = np.zeros(count)
    whole[z] = 1
    found = milp(
        objective,
        constraints=LinearConstraint(np.array(rows), low, high),
        bounds=Bounds(np.zeros(count), upper),
        integrality=whole,
        options={"mip_rel_gap": 1e-7},
    )
    return math.inf if found.x is None else float(found.fun - costs.wanted_class * outer_bias[target])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("costs", "weight"),
    [
        (Costs(unit=1.0), 0.0),
        (Costs(unit=0.3, inactive=0.5), 0.0),
        (Costs(inactive=-1.0, wanted_class=0.2), 0.1),
        (Costs(unit=1.0, inactive=1.0, wanted_class=0.5), 0.3),
    ],
)
def test_no_image_costs_less(seed: int, costs: Costs, weight: float) -> None:
    model, target = Tiny(seed), (seed + 1) % CLASSES
    truth = least_costs(model, target, costs, weight)
    assert math.isfinite(truth)  # some image is of this class
    found = ideal(model, target, costs=costs, smooth=weight)
    assert found.outcome == "optimal for costs"
    assert found.objective == pytest.approx(truth, rel=3e-4, abs=3e-4)
    assert found.objective_bound is not None
    assert found.objective_bound <= truth + 1e-4
    assert found.predicted == target
    stopped = ideal(model, target, costs=costs, smooth=weight, time_limit=1e-6)
    assert stopped.objective_bound is None or stopped.objective_bound <= truth + 1e-6


def test_neighbours_are_above_each_other_or_side_by_side_in_one_channel() -> None:
    generator = np.random.default_rng(0)
    for shape in ((3, 4, 5), (4, 5, 3), (1, 6, 6), (4, 4), (1, 1, 1)):
        image = generator.random(shape)
        planes = image[None] if image.ndim == 2 else np.moveaxis(image, 2, 0) if shape == (4, 5, 3) else image
        down, right = np.abs(np.diff(planes, axis=1)), np.abs(np.diff(planes, axis=2))
        assert variation(neighbours(shape), image.ravel()) == pytest.approx(down.sum() + right.sum())
    assert neighbours((16,)).shape == (24, 16)  # a flat image of 4 x 4


def test_a_climb_denoises_as_a_quadratic_program_does() -> None:
    """With the value −½‖v − z‖² the climb minimises what total variation denoising does: a known optimum."""
    differences = neighbours((1, 1, 4))
    wanted = np.array([0.0, 0.0, 1.0, 1.0])

    def value_and_slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        return -0.5 * float(((point - wanted) ** 2).sum()), wanted - point

    found = climb_smoothly(value_and_slope, (np.zeros(4), np.ones(4)), differences, 0.2, wanted, math.inf)
    # Two plateaus of two pixels: each is pulled towards the other by weight / 2.
    np.testing.assert_allclose(found, [0.1, 0.1, 0.9, 0.9], atol=0.01)


def test_a_sheet_holds_the_answers_one_by_one(tmp_path: Path) -> None:
    first, second, cells = Tiny(0), Tiny(1), []
    sheet = ideals([first, second], smooth=0.1, on_cell=lambda *cell: cells.append(cell[:2]))
    assert sheet.targets == (0, 1, 2)
    assert cells == [(row, target) for row in range(2) for target in range(3)]
    for row, model in enumerate((first, second)):
        truth = best_smooth_lead(model, row, 0.1)
        assert sheet.images[row][row].objective == pytest.approx(truth, abs=1e-3)
    assert sheet.proven == 6
    assert sheet.outcome == "ideal"
    assert json.loads(json.dumps(sheet.to_json(), allow_nan=False))["targets"] == [0, 1, 2]
    assert "6 of 6 found, 6 of them proven best" in str(sheet)
    assert ideals(first, [2]).images[0][0].target == 2


def test_ctrl_c_keeps_what_was_found() -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    sheet = closecall.ideals([Tiny(0)], on_cell=press)
    assert [len(row) for row in sheet.images] == [1]
    assert sheet.outcome == "unresolved"
    assert "interrupted" in sheet.notes[0]


class Flat(nn.Module):
    input_shape = (7,)

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.leave = nn.Linear(7, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.leave(images)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: ideal(Tiny(0), 0, smooth=-1.0), "must be 0 or a positive number, got -1"),
        (lambda: ideal(Tiny(0), 0, smooth=math.nan), "must be 0 or a positive number, got nan"),
        (lambda: ideal(Tiny(0), 0, smooth="much"), "the weight smooth must be a number, got 'much'"),
        (lambda: ideal(Flat().eval(), 0, smooth=1.0), "takes 7 numbers, which are no picture"),
        (lambda: ideals([]), "no model is given"),
        (lambda: ideals([Tiny(0), Flat().eval()]), "the models tell apart 2 and 3 classes"),
        (lambda: ideals(Tiny(0), "most"), "must be 'all' or a list of classes"),
        (lambda: ideals(Tiny(0), []), "must be 'all' or a list of classes"),
        (lambda: ideals(Tiny(0), [3]), "target must be from 0 to 2"),
    ],
)
def test_bad_questions_are_refused(ask, sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        ask()
