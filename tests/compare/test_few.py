"""Few images: the right number of each class, the same for every model, and more of them help."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from closecall import data
from closecall.compare.comparison import Comparison
from closecall.compare.contenders import Contender
from closecall.compare.few import few_images, measure_few


def test_so_many_of_each_class_and_fewer_are_among_more() -> None:
    digits = data.load_dataset("digits", "train")
    three, ten = few_images(digits, 3, seed=4), few_images(digits, 10, seed=4)
    assert np.bincount(three.labels).tolist() == [3] * 10
    kept = {image.tobytes() for image in ten.images}
    assert all(image.tobytes() in kept for image in three.images)
    other = few_images(digits, 3, seed=5)
    assert not np.array_equal(three.images, other.images)


def test_more_images_help_and_a_rerun_gives_the_same(made: Callable[..., Comparison]) -> None:
    comparison = made(
        "dnn",
        train_images=None,
        seeds=2,
        few_counts=(1, 30, 10_000),
        few_steps={"dnn": 100},
        moved_images=200,
    )
    rows = measure_few(comparison)
    assert [(row.images_per_class, row.seed) for row in rows] == [(1, 0), (1, 1), (30, 0), (30, 1)]
    assert min(row.accuracy for row in rows[2:]) > max(row.accuracy for row in rows[:2])
    assert "No training on 10000 images of each class" in comparison.narrowed[0]
    again = made(
        "dnn", train_images=None, seeds=2, few_counts=(1, 30), few_steps={"dnn": 100}, moved_images=200
    )
    before = again.record.path.read_bytes()
    assert measure_few(again) == rows
    assert again.record.path.read_bytes() == before


def test_an_onnx_file_is_left_out_with_a_sentence(made: Callable[..., Comparison]) -> None:
    comparison = made(contenders=[Contender("mine", "other", source="mine.onnx")])
    assert measure_few(comparison) == []
    assert comparison.narrowed == ["mine is not trained on few images: it is an ONNX file."]
