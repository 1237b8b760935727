"""Moved images against numpy's own rolling and turning, and accuracy counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from closecall.compare.comparison import Comparison
from closecall.compare.moved import MOVES, amounts, measure_moved
from closecall.compare.subjects import subjects_of

IMAGES = np.random.RandomState(0).randint(0, 256, size=(3, 2, 9, 9)).astype(np.uint8)


@pytest.mark.parametrize("pixels", [-2, 1, 3])
def test_shift_is_a_roll_with_black_coming_in(pixels: int) -> None:
    rolled = np.roll(IMAGES, pixels, axis=3)
    rolled[..., :pixels] = 0 if pixels > 0 else rolled[..., :pixels]
    if pixels < 0:
        rolled[..., pixels:] = 0
    np.testing.assert_array_equal(MOVES["shift"](IMAGES, pixels), rolled)


def test_a_quarter_turn_is_a_quarter_turn() -> None:
    turned = MOVES["rotation"](IMAGES, 90.0)
    assert np.array_equal(turned, np.rot90(IMAGES, 1, axes=(2, 3))) or np.array_equal(
        turned, np.rot90(IMAGES, -1, axes=(2, 3))
    )


@pytest.mark.parametrize(("kind", "amount"), [("shift", 0), ("rotation", 0), ("scale", 1), ("shear", 0)])
def test_nothing_moves_by_nothing(kind: str, amount: float) -> None:
    np.testing.assert_array_equal(MOVES[kind](IMAGES, amount), IMAGES)


def test_larger_is_larger_and_shear_keeps_the_middle() -> None:
    dot = np.zeros((1, 1, 9, 9), np.uint8)
    dot[0, 0, 3:6, 3:6] = 255
    assert MOVES["scale"](dot, 1.4).sum() > dot.sum() > MOVES["scale"](dot, 0.6).sum()
    assert MOVES["shear"](dot, 0.4)[0, 0, 4, 4] == 255
    assert not np.array_equal(MOVES["shear"](dot, 0.4), dot)


def test_amounts_follow_the_width_and_include_nothing() -> None:
    assert amounts(8)["shift"] == (-2.0, -1.0, 0.0, 1.0, 2.0)
    assert amounts(28)["shift"] == (-7.0, -5.0, -2.0, 0.0, 2.0, 5.0, 7.0)
    assert amounts(3)["shift"] == (-1.0, 0.0, 1.0)
    for kind, chosen in amounts(28).items():
        assert (1.0 if kind == "scale" else 0.0) in chosen


def test_accuracy_of_every_seed(made: Callable[..., Comparison]) -> None:
    comparison = made("dnn", seeds=2)
    subjects = {"dnn": subjects_of(comparison, comparison.contenders[0])}
    rows = measure_moved(comparison, subjects)
    moved = {(row.kind, row.amount): row for row in rows}
    test = comparison.moved_test
    for kind, amount in (("shift", 1.0), ("rotation", 30.0)):
        images = MOVES[kind](test.images, amount)
        for subject, share in zip(subjects["dnn"], moved[kind, amount].accuracy, strict=True):
            assert share == np.mean(subject.predict(images) == test.labels)
    still = [moved["shift", 0.0], moved["rotation", 0.0], moved["scale", 1.0], moved["shear", 0.0]]
    assert all(row.accuracy == [s.accuracy(test) for s in subjects["dnn"]] for row in still)
    before = comparison.record.path.read_bytes()
    assert measure_moved(comparison, subjects) == rows
    assert comparison.record.path.read_bytes() == before
