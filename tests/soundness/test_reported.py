"""False proofs that were once given, each in the words of whoever met it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import closecall
from closecall.bench.soundness.asking import Allowed, Claim, askers, false_claims
from closecall.bench.soundness.liars import liar
from closecall.errors import QueryError
from closecall.question.norms import norm_named
from closecall.readers import read
from closecall.solvers import available

GREY = np.full((1, 8, 8), 0.5)


def dense(scale: float) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)).eval()
    with torch.no_grad():
        model[1].weight *= scale
        model[1].bias *= scale
        model[3].weight /= scale
    return model


def strided(scale: float) -> nn.Module:
    torch.manual_seed(1)
    layers = nn.Conv2d(1, 2, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 4)
    model = nn.Sequential(*layers).eval()
    with torch.no_grad():
        model[0].weight *= scale
        model[0].bias *= scale
        model[3].weight /= scale
    return model


@pytest.mark.parametrize("method", ["auto", "milp", "milp-basic"])
@pytest.mark.parametrize("scale", [1e10, 1e-10])
@pytest.mark.parametrize(("model", "norm"), [(dense, "l1"), (strided, "linf")])
def test_the_scale_between_layers_changes_nothing(model: type, norm: str, scale: float, method: str) -> None:
    plain = closecall.nearest(model(1.0), GREY, norm=norm)
    assert plain.outcome == "nearest"
    said = closecall.nearest(model(scale), GREY, norm=norm, method=method, time_limit=10)
    assert said.outcome in ("nearest", "adversarial")
    assert said.distance is not None
    assert plain.distance is not None
    assert said.lower_bound <= plain.distance * (1 + 1e-6)
    assert said.distance >= plain.lower_bound * (1 - 1e-6)


@pytest.mark.parametrize(
    ("seed", "norm", "method", "solver"),
    [
        (131, "linf", "milp-basic", "highs"),  # 0.1767 for 0.1565: a big-M of 1e-6 beside 1
        (208, "linf", "milp-basic", "highs"),  # robust, for 67.3: rows with terms of 1e7
        (208, "l1", "milp", "gurobi"),
        (429, "l2", "milp", "cplex"),  # half a per cent off, at distances of 4e-4
        (1784, "l1", "milp", "cplex"),
        (1946, "l1", "milp-basic", "highs"),  # 1.17 for 0.56: rows with a range of 2e-11
        (3005, "linf", "auto", "highs"),  # robust, for 0.516: a unit of 5e-7, times 2e6
        (3005, "linf", "milp", "highs"),
        (3163, "l0", "auto", "highs"),  # 6 pixels for 5: rows with terms of 1e3
        (3163, "l0", "milp", "highs"),
        (5746, "l0", "milp", "gurobi"),  # 4 pixels for 3: a range of 8e-11
        (6179, "linf", "milp", "scip"),
        (7791, "l1", "milp", "scip"),  # 0.12 per cent off: an epsilon as large as the tolerance
        (7877, "linf", "milp", "scip"),  # 0.0172 for 0.0169, the same
        (9010, "l2", "auto", "highs"),  # robust, for 1.37: a rule of HiGHS's presolve
        (7358, "l2", "milp", "gurobi"),  # robust, for 1.19: columns with a room of 1e-11
    ],
)
def test_solvers_no_longer_lie_about_these(seed: int, norm: str, method: str, solver: str) -> None:
    if solver not in available():
        pytest.skip(f"{solver} is not installed")
    suspect = liar(seed)
    asked = askers(suspect, read(suspect.module, suspect.shape), norm, (solver,))
    who = method if solver == "highs" else f"{method} ({solver})"
    claim = Claim(who, *asked[who]())
    assert false_claims([claim], suspect.distance(norm), suspect.name, Allowed.of(suspect, norm)) == []


@pytest.mark.parametrize("low_high", [(-math.inf, math.inf), (0.0, math.inf), (math.nan, 1.0), (-1e39, 1e39)])
def test_boxes_that_cannot_be_meant_are_refused(low_high: tuple[float, float]) -> None:
    with pytest.raises(QueryError, match="pixel range"):
        closecall.nearest(dense(1.0), GREY, pixel_range=low_high)
    with pytest.raises(QueryError, match="pixel range"):
        closecall.ideal(dense(1.0), 3, pixel_range=low_high, input_shape=(1, 8, 8))


def test_numbers_that_overflow_prove_nothing() -> None:
    model = nn.Sequential(nn.Flatten(), *(nn.Linear(64, 64, bias=False) for _ in range(12)), nn.Linear(64, 3))
    with torch.no_grad():
        for layer in model[1:-1]:
            layer.weight.copy_(1e30 * torch.eye(64))
        model[-1].weight.mul_(0.0)
    with pytest.raises(closecall.ClosecallError, match=r"overflow|finite"):
        closecall.certify(model.eval(), GREY, radius=0.1)


def test_the_most_over_a_ball_is_a_bound_where_the_radius_ends_with_a_room() -> None:
    """Nearly all of the radius is spent on the first pixel; the rest must still be counted."""
    norm, many = norm_named("l2"), 500
    rows = np.append(1e3, np.ones(many))[None]
    rooms = np.append(0.5, np.full(many, 0.5))
    for more in (0.0, 1e-16, 1e-15, 1e-12):
        radius = math.sqrt(0.25 + more)
        truth = 500.0 + math.sqrt(more * many)
        assert norm.most(rows, rooms, rooms, radius)[0] >= truth * (1 - 1e-12)


def test_every_changed_pixel_counts_in_l0() -> None:
    """So steep a network changes its mind when all pixels move by a millionth, which is far in L0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[0.0] * 4, [1e6] * 4]))
        model[1].bias.copy_(torch.tensor([0.0, -2e6 - 3.0]))
    said = closecall.nearest(model.eval(), np.full((1, 2, 2), 0.5), norm="l0")
    assert said.outcome == "nearest"
    assert said.witness is not None
    assert said.distance == (said.witness != said.image).sum() == 1
