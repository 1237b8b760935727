"""Folded layers are what exact arithmetic makes of them, or they are refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from closecall.errors import ModelError
from closecall.network import Network, Node
from closecall.network.layers import Affine


def chain(*layers: Affine) -> Network:
    nodes = tuple(Node(layer, (index,)) for index, layer in enumerate(layers))
    return Network((layers[0].weights[0].shape[1],), nodes)


def exactly(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    rows = [
        [sum(Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)) for column in second.T]
        for row in first.tolist()
    ]
    return np.array([[float(number) for number in row] for row in rows])


def test_a_matrix_and_its_inverse_are_told_from_the_identity() -> None:
    """Numbers of 1e8 that cancel: float64 alone would be off by 1e-8, which is a hundred tolerances."""
    generator = np.random.default_rng(0)
    there = generator.integers(-(10**8), 10**8, (6, 6)) * 1.0
    back = np.linalg.inv(there)
    folded = chain(Affine.of([back], np.zeros(6)), Affine.of([there], np.zeros(6))).simplified()
    (node,) = folded.nodes
    assert isinstance(node.layer, Affine)
    weight = node.layer.weights[0]
    assert np.asarray(weight) == pytest.approx(exactly(there, back), rel=1e-10, abs=1e-10)


def test_a_constant_taken_away_again_leaves_the_bias_exact() -> None:
    there = Affine.of([np.eye(4)], np.full(4, 2.0**24))
    back = Affine.of([np.eye(4)], np.full(4, 0.125 - 2.0**24))
    (node,) = chain(there, back).simplified().nodes
    assert isinstance(node.layer, Affine)
    assert node.layer.bias.tolist() == [0.125] * 4


def test_what_nobody_can_tell_is_refused() -> None:
    there = Affine.of([1e-3 * np.eye(2)], np.full(2, 1e18))
    back = Affine.of([np.array([[1.0, -1.0], [1.0, 1.0 / 3]])], np.array([0.1, -4e18 / 3]))
    with pytest.raises(ModelError, match="cancel each other"):
        chain(there, back).simplified()
