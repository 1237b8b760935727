"""The four norms against numpy's own, and their furthest points against general optimisers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize_scalar

from closecall.errors import QueryError
from closecall.milp import Limits
from closecall.milp.builder import ProgramBuilder
from closecall.question.norms import NORMS, norm_named
from closecall.solvers import solve

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf, "l0": 0}
SIZE = 5


def most_l1(row: np.ndarray, down: np.ndarray, up: np.ndarray, radius: float) -> float:
    bounds = [(0, high) for high in up] + [(0, low) for low in down]
    found = linprog(
        -np.concatenate([row, -row]), A_ub=np.ones((1, 2 * len(row))), b_ub=[radius], bounds=bounds
    )
    return float(-found.fun)


def most_linf(row: np.ndarray, down: np.ndarray, up: np.ndarray, radius: float) -> float:
    bounds = [(-min(low, radius), min(high, radius)) for low, high in zip(down, up, strict=True)]
    return float(-linprog(-row, bounds=bounds).fun)


def most_l2(row: np.ndarray, down: np.ndarray, up: np.ndarray, radius: float) -> float:
    """The dual: min over t ≥ 0 of t·r²/2 + Σ max over the box of a·d − t·d²/2, a convex function of one t."""

    def dual(logarithm: float) -> float:
        t = np.exp(logarithm)
        d = np.clip(row / t, -down, up)
        return float(t * radius**2 / 2 + (row * d - t * d**2 / 2).sum())

    # Beyond the ends the ball is as good as absent, or holds every pixel back.
    refined = minimize_scalar(dual, bounds=(-25.0, 15.0), method="bounded", options={"xatol": 1e-10})
    return float(min(refined.fun, dual(-25.0), dual(15.0)))


def most_l0(row: np.ndarray, down: np.ndarray, up: np.ndarray, radius: float) -> float:
    gains = np.maximum(row * up, -row * down)
    subsets = itertools.combinations(range(len(row)), min(int(radius), len(row)))
    return max(float(gains[list(chosen)].sum()) for chosen in subsets)


MOST = {"l1": most_l1, "l2": most_l2, "linf": most_linf, "l0": most_l0}

entries = st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 3))
rooms = st.floats(0, 1).map(lambda x: round(x, 3))


@pytest.mark.parametrize("name", NORMS)
@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, SIZE, elements=entries), arrays(np.float64, (2, SIZE), elements=rooms), rooms)
def test_no_shift_in_the_ball_and_the_box_goes_further(
    name: str, row: np.ndarray, room: np.ndarray, share: float
) -> None:
    radius = float(round(share * SIZE)) if name == "l0" else 0.01 + 2.0 * share
    down, up = room
    shift = NORMS[name].furthest(row[None], down, up, radius)[0]
    assert (shift >= -down - 1e-12).all()
    assert (shift <= up + 1e-12).all()
    assert NORMS[name].distance(shift) <= radius + 1e-9
    assert row @ shift == pytest.approx(MOST[name](row, down, up, radius), abs=1e-5)


@pytest.mark.parametrize("radius", [0.3, 4.0, 40.0, 1000.0])
@pytest.mark.parametrize("largest_room", [1.0, 0.01])
def test_in_l1_as_many_gains_are_sorted_as_the_radius_takes(radius: float, largest_room: float) -> None:
    """With 300 pixels, some of them without room, a few gains will do for some radii and all for others."""
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(4, 300)) * (generator.random((4, 300)) < 0.8)
    down, up = largest_room * generator.random((2, 300)) * (generator.random((2, 300)) < 0.5)
    shifts = NORMS["l1"].furthest(rows, down, up, radius)
    assert (np.abs(shifts).sum(axis=1) <= radius + 1e-9).all()
    for row, shift in zip(rows, shifts, strict=True):
        assert row @ shift == pytest.approx(most_l1(row, down, up, radius), abs=1e-7)


@pytest.mark.parametrize("name", NORMS)
def test_without_a_radius_the_furthest_shift_is_a_corner_of_the_box(name: str) -> None:
    generator = np.random.default_rng(0)
    rows, room = generator.normal(size=(20, SIZE)), generator.random((2, SIZE))
    shifts = NORMS[name].furthest(rows, room[0], room[1], np.inf)
    np.testing.assert_array_equal(shifts, np.where(rows > 0, room[1], -room[0]))


@pytest.mark.parametrize("name", NORMS)
def test_many_rows_at_once_are_as_one_by_one(name: str) -> None:
    generator = np.random.default_rng(1)
    rows, room = generator.normal(size=(30, SIZE)), generator.random((2, SIZE))
    rows[:5, 2] = 0.0
    rows[7] = 0.0
    together = NORMS[name].furthest(rows, room[0], room[1], 1.3)
    alone = [NORMS[name].furthest(row[None], room[0], room[1], 1.3)[0] for row in rows]
    np.testing.assert_allclose(together, alone, atol=1e-15)
    np.testing.assert_array_equal(together[7], 0.0)


@pytest.mark.parametrize("name", NORMS)
def test_distances_are_numpys(name: str) -> None:
    shifts = np.random.default_rng(2).normal(size=(50, 7))
    shifts[::2, 1:4] = 0.0
    expected = np.linalg.norm(shifts, ord=ORDERS[name], axis=1)
    np.testing.assert_allclose(NORMS[name].distance(shifts), expected)
    assert NORMS[name].distance(shifts[0]) == pytest.approx(expected[0])


def test_every_change_counts_in_l0() -> None:
    assert norm_named("l0").distance(np.array([[0.0, 1e-7, -0.5]])).tolist() == [2.0]


@pytest.mark.parametrize("name", NORMS)
@settings(max_examples=25, deadline=None)
@given(arrays(np.float64, (2, SIZE), elements=rooms), arrays(np.float64, SIZE, elements=rooms))
def test_the_rows_of_a_milp_measure_the_distance(name: str, room: np.ndarray, share: np.ndarray) -> None:
    """Shifts fixed, distance minimised: what is left is the norm."""
    norm, (down, up) = NORMS[name], room
    up[0] = max(up[0], 0.1)  # a picture that cannot move at all has no columns
    shift = share * up - (1 - share) * down
    builder = ProgramBuilder()
    movement = norm.encode(builder, down, up)
    builder.add_rows(movement.shifts, shift, shift)
    objective = np.zeros(builder.width)
    quadratic = np.zeros(builder.width)
    if movement.distance is None:
        quadratic[movement.squared] = 1.0
    else:
        objective[movement.distance.matrix.indices] = movement.distance.matrix.data
    solution = solve(builder.build(objective, quadratic), "highs", Limits(10.0))
    assert solution.values is not None
    found = np.sqrt(solution.objective) if movement.distance is None else solution.objective
    assert found == pytest.approx(float(norm.distance(shift)), abs=1e-5)
    np.testing.assert_allclose(movement.shifts.at(solution.values), shift, atol=1e-6)


def test_an_unknown_norm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(QueryError, match="l1, l2, linf, l0"):
        norm_named("l3")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(
            ("L1", "l1"),
            ("1", "l1"),
            (1, "l1"),
            (" l2 ", "l2"),
            ("2", "l2"),
            (2.0, "l2"),
            ("L0", "l0"),
            (0, "l0"),
        ),
        *(
            ("Linf", "linf"),
            ("L∞", "linf"),
            ("inf", "linf"),
            ("INF", "linf"),
            (np.inf, "linf"),
            ("L_inf", "linf"),
        ),
    ],
)
def test_the_ways_to_write_a_norm(written: str | float, name: str) -> None:
    assert norm_named(written) is NORMS[name]
