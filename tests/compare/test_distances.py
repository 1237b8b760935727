"""Distances: the images in turn, proven intervals, and an upper bound where nothing can be proven."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from closecall.ask.nearest import nearest
from closecall.compare import subjects as subjects_module
from closecall.compare.comparison import Comparison
from closecall.compare.distances import choose_images, measure_distances
from closecall.compare.results import DistanceRow
from closecall.compare.subjects import Subject, subjects_of


def first_subjects(comparison: Comparison) -> list[Subject]:
    return [subjects_of(comparison, contender)[0] for contender in comparison.contenders]


@pytest.fixture
def asked(made: Callable[..., Comparison]) -> tuple[Comparison, list[Subject], list[DistanceRow]]:
    comparison = made("dnn", "capsnet", images=4, gallery=3, time_limit=5.0)
    subjects = first_subjects(comparison)
    return comparison, subjects, measure_distances(comparison, subjects)


def test_one_image_of_each_class_in_turn(made: Callable[..., Comparison]) -> None:
    comparison = made("dnn", images=12)
    chosen = choose_images(comparison)
    assert comparison.test.labels[chosen].tolist() == [*range(10), 0, 1]
    for position, index in enumerate(chosen[:10]):
        assert index == np.flatnonzero(comparison.test.labels == position)[0]
    assert len(choose_images(made("dnn", images=10**6))) == len(comparison.test)


def test_rows_are_what_the_search_says(asked: tuple[Comparison, list[Subject], list[DistanceRow]]) -> None:
    comparison, (dnn, capsnet), rows = asked
    assert [row.index for row in rows] == 2 * choose_images(comparison)
    outcomes = {row.outcome for row in rows}
    assert {"nearest", "adversarial"} <= outcomes
    for row in rows:
        image = comparison.test.image(row.index)
        subject = dnn if row.model == "dnn" else capsnet
        right = subject.score(image[None]).argmax() == row.label
        assert right == (row.outcome != "misclassified")
        if not right:
            assert (row.lower, row.upper, row.attack, row.proven) == (0, 0, 0, True)
        elif row.model == "capsnet":
            assert row.lower is not None
            assert row.upper is not None
            assert 0 < row.lower < row.upper
            assert not row.proven
        else:
            verdict = nearest(dnn.module, image, row.label, norm="linf", time_limit=10)
            assert row.upper == pytest.approx(verdict.distance, rel=1e-3)
            assert row.proven
            assert row.attack is not None
            assert row.upper is not None
            assert row.attack >= row.lower


def test_the_pictures_of_the_gallery_flip(
    asked: tuple[Comparison, list[Subject], list[DistanceRow]],
) -> None:
    comparison, _, rows = asked
    shown = [row for row in rows if row.original is not None]
    assert len({row.index for row in shown}) == 3
    assert len(shown) == 6
    for row in shown:
        assert row.nearest is not None
        original, nearer = np.array(row.original), np.array(row.nearest)
        np.testing.assert_allclose(original, comparison.test.image(row.index), atol=1e-4)
        assert np.abs(nearer - original).max() == pytest.approx(row.upper, abs=2e-4)


def test_a_rerun_asks_nothing_and_more_images_add_rows(
    asked: tuple[Comparison, list[Subject], list[DistanceRow]], made: Callable[..., Comparison]
) -> None:
    comparison, _, rows = asked
    before = comparison.record.path.read_bytes()
    again = made("dnn", "capsnet", images=4, gallery=3, time_limit=5.0)
    assert measure_distances(again, first_subjects(again)) == rows
    assert again.record.path.read_bytes() == before
    more = made("dnn", images=5, gallery=1, time_limit=5.0)
    assert len(measure_distances(more, first_subjects(more))) == 5
    assert more.record.path.read_bytes().count(b"\n") == before.count(b"\n") + 1


def test_a_network_that_is_too_large_is_attacked_only(
    made: Callable[..., Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects_module, "MOST_UNITS", 11)
    comparison = made("dnn", images=4)
    (dnn,) = first_subjects(comparison)
    assert dnn.too_large
    assert dnn.classifier is None
    outcomes = {row.outcome for row in measure_distances(comparison, [dnn])}
    assert outcomes <= {"attacked", "misclassified"}
