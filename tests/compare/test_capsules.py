"""The insides of capsules and overlapping digits, against what the model itself says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from closecall import data
from closecall.compare.comparison import Comparison
from closecall.compare.insides import look_inside
from closecall.compare.overlapping import measure_one, measure_overlapping
from closecall.compare.subjects import subjects_of
from closecall.data.multimnist import overlap_digits
from closecall.models import CapsNet


def test_reconstructions_and_dimensions_are_the_decoders(made: Callable[..., Comparison]) -> None:
    comparison = made("dnn", "capsnet")
    subjects = [subjects_of(comparison, contender)[0] for contender in comparison.contenders]
    (row,) = look_inside(comparison, subjects)
    model = subjects[1].module
    assert isinstance(model, CapsNet)
    for shown in row.reconstructions:
        image = torch.from_numpy(comparison.test.image(shown.index))[None]
        with torch.no_grad():
            capsules, scores = model.encode(image)
            restored = model.decode(capsules, scores.argmax(1))[0].numpy()
        assert shown.predicted == int(scores.argmax())
        np.testing.assert_allclose(np.array(shown.restored), restored, atol=1e-4)
    (dimensions,) = row.dimensions
    assert np.array(dimensions.pictures).shape == (16, 11, 1, 8, 8)
    still = dimensions.steps.index(0.0)
    same = next(shown for shown in row.reconstructions if shown.index == dimensions.index)
    for pictures in dimensions.pictures:
        np.testing.assert_allclose(np.array(pictures[still]), np.array(same.restored), atol=2e-4)


def test_overlapping_digits_count_both_classes(made: Callable[..., Comparison]) -> None:
    comparison = made("cnn", "capsnet", overlapping_epochs=1)
    digits = data.load_dataset("digits", "train")
    train = overlap_digits(digits.subset(np.arange(200)), 1, "pairs")
    test = overlap_digits(digits.subset(np.arange(200, 260)), 2, "pairs")
    for contender in comparison.contenders:
        row = measure_one(comparison, contender, train, test)
        assert (row.model, row.trained_pairs, row.tested_pairs) == (contender.name, 200, 60)
        assert 0 <= row.accuracy <= 1
        assert len(row.shots) == (6 if contender.kind == "capsnet" else 0)
        for index, shot in enumerate(row.shots):
            assert shot.labels == sorted(test.both_labels()[index].tolist())
            assert len(shot.restored) == 2
            np.testing.assert_allclose(np.array(shot.image), test.image(index), atol=1e-4)
    folder = comparison.folder / "models"
    assert sorted(path.name for path in folder.iterdir()) == [
        "capsnet-overlapping-seed0",
        "cnn-overlapping-seed0",
    ]


def test_digits_have_no_pairs_and_it_is_said(made: Callable[..., Comparison]) -> None:
    comparison = made("capsnet")
    assert measure_overlapping(comparison) == []
    assert comparison.narrowed == ["No overlapping digits: they are made from mnist only, not from digits."]
    without = made("dnn")
    assert measure_overlapping(without) == []
    assert without.narrowed == []
