"""The MILPs: pairs matched as said, sizes as exported, answers as the other search gives them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from closecall.ask.export import export_milp
from closecall.ask.nearest import nearest
from closecall.attacks.gradient import find_witness
from closecall.compare.comparison import Comparison
from closecall.compare.encodings import Rung, matched_accuracy, measure_encodings, milp_sizes
from closecall.compare.subjects import subjects_of
from closecall.question.question import Question


def rung(family: str, accuracy: float, units: int) -> Rung:
    return cast(Rung, SimpleNamespace(family=family, validation_accuracy=accuracy, units=units))


def test_the_pair_of_nearest_accuracy_then_the_better_then_the_smaller() -> None:
    dnns = [rung("dnn", 0.8, 10), rung("dnn", 0.9, 20), rung("dnn", 0.95, 40)]
    cnns = [rung("cnn", 0.7, 30), rung("cnn", 0.9, 60), rung("cnn", 0.95, 90), rung("cnn", 0.95, 70)]
    dnn, cnn = matched_accuracy(dnns, cnns)
    assert (dnn.units, cnn.units) == (40, 70)
    assert matched_accuracy(dnns[:1], cnns[:2]) == (dnns[0], cnns[1])


@pytest.fixture
def comparison(made: Callable[..., Comparison]) -> Comparison:
    return made("dnn", "cnn", milp_images=2, milp_time_limit=20.0)


def test_rows_in_pairs_with_the_distances_of_the_other_search(comparison: Comparison) -> None:
    subjects = [subjects_of(comparison, contender)[0] for contender in comparison.contenders]
    rows = measure_encodings(comparison, subjects)
    assert [(row.family, row.pairing) for row in rows] == [
        (family, pairing) for pairing in ("accuracy", "size", "as trained") for family in ("dnn", "cnn")
    ]
    assert rows[2].units == rows[3].units
    assert rows[2].matched_by == "ReLU and pooling units"
    assert [row.model for row in rows[4:]] == ["dnn", "cnn"]
    for row, subject in zip(rows[4:], subjects, strict=True):
        assert row.accuracy == subject.accuracy(comparison.test)
        assert row.binaries == np.median([answer.binaries for answer in row.answers])
        assert row.solved_share == np.mean([answer.solved for answer in row.answers])
        for answer in row.answers:
            image = comparison.test.image(answer.index)
            verdict = nearest(subject.module, image, norm="linf", time_limit=20)
            assert verdict.predicted_before == comparison.test.labels[answer.index]
            assert answer.lower <= verdict.distance * (1 + 1e-3)
            assert answer.upper >= verdict.lower_bound * (1 - 1e-3)
            if answer.solved:
                assert answer.upper == pytest.approx(verdict.distance, rel=1e-3)
                assert answer.gap == 0


def test_the_size_is_that_of_the_exported_model(comparison: Comparison) -> None:
    subject = subjects_of(comparison, comparison.contenders[1])[0]
    assert subject.classifier is not None
    image, label = comparison.test.image(0), int(comparison.test.labels[0])
    query = Question(image.astype(np.float64).ravel(), label, 10, norm="linf")
    witness = find_witness(subject.classifier.network, query.domain(), query.goal())
    assert witness is not None
    radius, sizes = milp_sizes(subject.classifier, query)
    assert radius == query.domain().distance(witness)
    milp = export_milp(subject.classifier, image, label, norm="linf", radius=radius)
    assert (sizes["variables"], sizes["binaries"], sizes["rows"]) == (milp.columns, milp.binaries, milp.rows)
    assert 0 < sizes["undecided"] <= subject.classifier.network.units


def test_without_an_image_that_all_get_right_there_is_a_sentence(made: Callable[..., Comparison]) -> None:
    comparison = made("dnn", "cnn", milp_images=0)
    subjects = [subjects_of(comparison, contender)[0] for contender in comparison.contenders]
    assert measure_encodings(comparison, subjects) == []
    assert comparison.narrowed[0].startswith("No MILPs: no test image")


def test_without_a_cnn_there_is_a_sentence(made: Callable[..., Comparison]) -> None:
    comparison = made("dnn")
    assert measure_encodings(comparison, subjects_of(comparison, comparison.contenders[0])) == []
    assert comparison.narrowed == [
        "No MILPs: they are compared between a DNN and a CNN, and there is no CNN."
    ]
