"""Pictures show the pixels they were given, on a scale that is the same both ways."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import closecall
from closecall.models import build
from closecall.verdict.picture import (
    as_picture,
    draw_difference,
    draw_scores,
    headline,
    image_picture,
    new_figure,
    verdict_figure,
    verdict_picture,
)

NAMES = ("cat", "dog", "trousers")


@pytest.fixture(scope="module")
def verdict() -> closecall.Verdict:
    model = build("dnn", {"sizes": [6], "input_shape": (3, 3, 3), "classes": 3}, seed=2).eval()
    return closecall.nearest(model, np.random.default_rng(1).random((3, 3, 3)), norm="linf")


def test_a_witness_makes_a_wider_picture(verdict: closecall.Verdict) -> None:
    with Image.open(io.BytesIO(verdict_picture(verdict, NAMES))) as whole:
        without = replace(verdict, outcome="robust", witness=None, predicted_after=None, distance=None)
        with Image.open(io.BytesIO(verdict_picture(without, NAMES))) as half:
            assert whole.width > 1.5 * half.width


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (3, 30, 10), (1, 8, 24), (1, 3, 60)])
def test_the_three_panels_are_of_one_size(verdict: closecall.Verdict, shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).random(shape).astype(np.float32)
    figure = verdict_figure(replace(verdict, image=pixels, witness=1 - pixels), NAMES)
    figure.canvas.draw()
    panels = [axes.get_window_extent() for axes in figure.axes[:3]]
    widths, heights = [panel.width for panel in panels], [panel.height for panel in panels]
    assert widths == pytest.approx([widths[0]] * 3, rel=1e-3)
    assert heights == pytest.approx([heights[0]] * 3, rel=1e-3)
    assert heights[0] / widths[0] == pytest.approx(shape[1] / shape[2], rel=1e-2)
    assert max(widths[0], heights[0]) > 200


def test_the_headline_says_what_is_proven(verdict: closecall.Verdict) -> None:
    assert headline(verdict, NAMES) == f"L∞ distance {verdict.distance:.4g} (proven nearest)"
    open_gap = replace(verdict, outcome="adversarial", lower_bound=0.25, distance=0.5)
    assert headline(open_gap, NAMES) == "L∞ distance 0.5 (the nearest is at 0.25 or more)"
    within = replace(verdict.question, radius=0.125)
    nothing = replace(
        verdict, outcome="robust", question=within, witness=None, predicted_after=None, distance=None
    )
    assert headline(nothing, NAMES) == "no adversarial within L∞ distance 0.125 (proven)"
    assert headline(replace(nothing, outcome="unresolved"), NAMES) == "no adversarial found"
    wrong = replace(verdict, distance=0.0, predicted_before=2)
    assert headline(wrong, NAMES) == "already seen as trousers: distance 0"


def test_the_difference_has_one_scale_for_both_signs() -> None:
    figure = new_figure((4, 4))
    axes = figure.subplots()
    shift = np.zeros((1, 2, 3))
    shift[0, 1, 2], shift[0, 0, 0] = -0.5, 0.125
    draw_difference(figure, axes, shift)
    drawn = axes.images[0]
    np.testing.assert_array_equal(drawn.get_array(), shift[0])
    assert drawn.get_clim() == (-0.5, 0.5)
    assert axes.get_title() == "difference: 2 of 6 values"


def test_of_many_classes_the_highest_are_shown() -> None:
    figure = new_figure((4, 4))
    axes = figure.subplots()
    scores = np.arange(100.0)
    draw_scores(axes, scores, scores[::-1].copy(), tuple(str(number) for number in range(100)))
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert shown == [str(number) for number in (*range(8), *range(92, 100))]


@pytest.mark.parametrize(
    ("shape", "shown"), [((1, 4, 5), (4, 5)), ((3, 4, 5), (4, 5, 3)), ((4, 5), (4, 5)), ((12,), (3, 4))]
)
def test_every_shape_of_image_can_be_shown(shape: tuple[int, ...], shown: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).random(shape)
    picture = as_picture(pixels)
    assert picture.shape == shown
    expected = pixels.transpose(1, 2, 0) if shape == (3, 4, 5) else pixels
    np.testing.assert_array_equal(picture.ravel(), expected.ravel())
    with Image.open(io.BytesIO(image_picture(pixels.astype(np.float32), "title"))) as image:
        assert image.format == "PNG"
