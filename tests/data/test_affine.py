"""Affine digits against transformations that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from closecall.data import load_dataset
from closecall.data.affine import warp


def l_shape(side: int = 9) -> np.ndarray:
    image = np.zeros((side, side), np.uint8)
    image[2:7, 3] = 200
    image[6, 3:6] = 100
    return image


def test_nothing_is_nothing() -> None:
    assert (warp(l_shape(), 0.0, 0.0, (1.0, 1.0)) == l_shape()).all()


@pytest.mark.parametrize(("degrees", "turns"), [(90, 1), (-90, 3), (180, 2)])
def test_right_angles_are_those_of_numpy(degrees: float, turns: int) -> None:
    """90° takes (row, column) to (−column, row): what was on the right is on top, as rot90 does it."""
    assert (warp(l_shape(), degrees, 0.0, (1.0, 1.0)) == np.rot90(l_shape(), turns)).all()


def test_shear_moves_columns_by_the_row() -> None:
    image = np.zeros((9, 9), np.uint8)
    image[2, 4] = image[4, 4] = image[6, 4] = 255
    sheared = warp(image, 0.0, 1.0, (1.0, 1.0))
    assert {tuple(place) for place in np.argwhere(sheared == 255)} == {(2, 2), (4, 4), (6, 6)}


def test_scale_spreads_rows_and_columns() -> None:
    image = np.zeros((9, 9), np.uint8)
    image[3:6, 4] = 255
    tall = warp(image, 0.0, 0.0, (3.0, 1.0))
    assert (tall[1:8, 4] > 150).all()
    assert not np.delete(tall, 4, axis=1).any()


@pytest.fixture(scope="module")
def generated() -> object:
    return load_dataset("mnist-affine", "test")


def test_it_is_said_to_be_generated(generated: object) -> None:
    assert generated.name == "affine MNIST (generated)"
    assert generated.images.shape == (10_000, 1, 40, 40)
    assert (generated.labels == load_dataset("mnist", "test").labels).all()


def test_no_digit_is_cut_off_and_every_place_is_used(generated: object) -> None:
    plain = load_dataset("mnist", "test").images.astype(float).sum(axis=(1, 2, 3))
    ratio = generated.images.astype(float).sum(axis=(1, 2, 3)) / plain
    # The area grows with the product of the scales, 0.64 to 1.44; interpolation blurs that a little.
    assert ratio.min() > 0.55
    assert ratio.max() < 1.55
    used = generated.images.any(axis=(0, 1))
    assert used[0].any()
    assert used[-1].any()
    assert used[:, 0].any()
    assert used[:, -1].any()
