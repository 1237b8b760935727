"""Matrices and windows against torch's own convolutions and poolings."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from closecall.errors import ModelError
from closecall.network.layers import Maximum
from closecall.network.windows import (
    Sliding,
    adaptive_average_pool,
    average_pool,
    convolution,
    max_pool_windows,
)
from closecall.settings import DEFAULT

torch.set_num_threads(1)


@st.composite
def windows(draw: st.DrawFn, *, dilated: bool = True) -> tuple[tuple[int, ...], Sliding]:
    """Sides of an image and a window that fits them, in one, two or three dimensions."""
    count = draw(st.integers(1, 3))
    numbers = {
        name: tuple(draw(st.integers(*limits)) for _ in range(count))
        for name, limits in {
            "sides": (4, 8),
            "kernel": (1, 4),
            "strides": (1, 3),
            "dilations": (1, 2),
        }.items()
    }
    dilations = numbers["dilations"] if dilated else (1,) * count
    before = tuple(draw(st.integers(0, k // 2)) for k in numbers["kernel"])
    sliding = Sliding.over(
        numbers["kernel"],
        numbers["strides"],
        dilations=dilations,
        before=before,
        round_up=draw(st.booleans()),
    )
    for side, k, d, pad in zip(numbers["sides"], numbers["kernel"], dilations, before, strict=True):
        assume(side + 2 * pad >= d * (k - 1) + 1)
    return numbers["sides"], sliding


def random_image(channels: int, sides: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(1, channels, *sides, dtype=torch.float64)


@settings(max_examples=150, deadline=None)
@given(windows(), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2))
def test_convolution_equals_torch(
    window: tuple[tuple[int, ...], Sliding], groups: int, inputs: int, outputs: int
) -> None:
    sides, sliding = window
    sliding = Sliding.over(
        sliding.kernel, sliding.strides, dilations=sliding.dilations, before=sliding.before
    )
    weight = torch.randn(outputs * groups, inputs, *sliding.kernel, dtype=torch.float64)
    image = random_image(inputs * groups, sides)
    function = (F.conv1d, F.conv2d, F.conv3d)[len(sides) - 1]
    expected = function(image, weight, None, sliding.strides, sliding.before, sliding.dilations, groups)
    matrix, shape = convolution(weight.numpy(), tuple(image.shape[1:]), sliding, groups)
    assert (1, *shape) == expected.shape
    np.testing.assert_allclose(matrix @ image.numpy().ravel(), expected.numpy().ravel(), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_convolution_pads_each_end_by_itself(data: st.DataObject) -> None:
    left, right, top, bottom = (data.draw(st.integers(0, 4)) for _ in range(4))
    image, weight = random_image(2, (5, 4)), torch.randn(3, 2, 3, 2, dtype=torch.float64)
    expected = F.conv2d(F.pad(image, (left, right, top, bottom)), weight, stride=2)
    sliding = Sliding.over((3, 2), (2, 2), before=(top, left), after=(bottom, right))
    matrix, shape = convolution(weight.numpy(), (2, 5, 4), sliding)
    assert (1, *shape) == expected.shape
    np.testing.assert_allclose(matrix @ image.numpy().ravel(), expected.numpy().ravel(), atol=1e-12)


@settings(max_examples=150, deadline=None)
@given(windows(), st.integers(1, 3))
def test_max_pooling_equals_torch(window: tuple[tuple[int, ...], Sliding], channels: int) -> None:
    sides, sliding = window
    image = random_image(channels, sides)
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(sides) - 1]
    expected = function(
        image, sliding.kernel, sliding.strides, sliding.before, sliding.dilations, ceil_mode=sliding.round_up
    )
    try:
        found, shape = max_pool_windows(tuple(image.shape[1:]), sliding)
    except ModelError:
        assert bool(torch.isinf(expected).any())  # a window of padding alone
        return
    assert (1, *shape) == expected.shape
    np.testing.assert_array_equal(
        Maximum(found).forward(image.numpy().reshape(1, -1))[0], expected.numpy().ravel()
    )


@settings(max_examples=150, deadline=None)
@given(windows(dilated=False), st.booleans(), st.none() | st.integers(1, 9))
def test_average_pooling_equals_torch(
    window: tuple[tuple[int, ...], Sliding], count_pads: bool, divisor: int | None
) -> None:
    sides, sliding = window
    image = random_image(2, sides)
    settings = {"ceil_mode": sliding.round_up, "count_include_pad": count_pads}
    if len(sides) == 1:
        divisor = None
        expected = F.avg_pool1d(image, sliding.kernel, sliding.strides, sliding.before, **settings)
    else:
        function = F.avg_pool2d if len(sides) == 2 else F.avg_pool3d
        settings["divisor_override"] = divisor
        expected = function(image, sliding.kernel, sliding.strides, sliding.before, **settings)
    matrix, shape = average_pool(tuple(image.shape[1:]), sliding, count_pads=count_pads, divisor=divisor)
    assert (1, *shape) == expected.shape
    np.testing.assert_allclose(matrix @ image.numpy().ravel(), expected.numpy().ravel(), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3))
def test_adaptive_average_pooling_equals_torch(pairs: list[tuple[int, int]]) -> None:
    sides, out = tuple(side for side, _ in pairs), tuple(part for _, part in pairs)
    image = random_image(2, sides)
    function = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[len(sides) - 1]
    matrix, shape = adaptive_average_pool(tuple(image.shape[1:]), out)
    assert shape == (2, *out)
    np.testing.assert_allclose(
        matrix @ image.numpy().ravel(), function(image, out).numpy().ravel(), atol=1e-12
    )


def test_a_matrix_holds_only_the_weights_that_are_not_zero() -> None:
    weight = np.zeros((2, 2, 3, 3))
    weight[0, 0], weight[1, 1] = 1.0, 2.0
    matrix, _ = convolution(weight, (2, 5, 5), Sliding.over((3, 3)))
    assert matrix.nnz == 2 * 9 * 9
    assert (matrix.data != 0).all()


@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [((0, 1), (1, 1), (0, 0)), ((2, 2), (0, 1), (0, 0)), ((2, 2), (1, 1), (-1, 0)), ((2, 2), (1,), (0, 0))],
)
def test_impossible_windows_are_refused(kernel: tuple, strides: tuple, pads: tuple) -> None:
    with pytest.raises(ModelError):
        Sliding.over(kernel, strides, before=pads)


def test_windows_larger_than_the_image_are_refused() -> None:
    with pytest.raises(ModelError, match="does not fit a side of 4"):
        Sliding.over((5, 5)).output_sides((4, 8))


@pytest.mark.parametrize("channels", [0, 3])
def test_a_convolution_on_other_channels_is_refused(channels: int) -> None:
    with pytest.raises(ModelError, match="cannot read an input"):
        convolution(np.ones((1, 2, 3, 3)), (channels, 5, 5), Sliding.over((3, 3)))


def test_what_would_not_fit_into_memory_is_refused_before_it_is_made() -> None:
    side = math.isqrt(DEFAULT.sizes.most_entries)
    with pytest.raises(ModelError, match="more than the"):
        convolution(np.ones((9, 9, 3, 3)), (9, side, side), Sliding.over((3, 3)))
    with pytest.raises(ModelError, match="more than the"):
        max_pool_windows((1, 4, 4), Sliding.over((2, 2), before=(2**30, 2**30)))
