"""What counts as an incumbent, as proven and as settled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from closecall.clock import Clock
from closecall.network import Network, Node
from closecall.network.layers import Affine
from closecall.question.question import Question
from closecall.search.incumbent import Incumbent, is_closed

# Class 1 wins where x > 0.5: its score is x − 0.5, that of class 0 is 0. Class 2 never wins.
NETWORK = Network(
    (1, 1, 1), (Node(Affine((np.array([[0.0], [1.0], [0.0]]),), np.array([0.0, -0.5, -9.0])), (0,)),)
)


def incumbent_at(pixel: float, *, nearest: bool = True, radius: float = math.inf) -> Incumbent:
    query = Question(np.array([pixel]), 0, 3, norm="linf", margin=0.1, radius=radius)
    return Incumbent(NETWORK, query.domain(), query.goal(), Clock(60.0), gap=1e-3, nearest=nearest)


def test_only_images_that_reach_the_goal_within_the_domain_are_taken() -> None:
    incumbent = incumbent_at(0.25, radius=0.5)
    assert not incumbent.offer(np.array([0.59]))
    assert incumbent.offer(np.array([0.9]))  # pulled inside the radius
    assert incumbent.distance == pytest.approx(0.5)
    assert incumbent.offer(np.array([0.7]))
    assert incumbent.distance == pytest.approx(0.45)
    assert not incumbent.offer(np.array([0.72]))
    assert incumbent.wanted == pytest.approx(0.45 * 0.999)


def test_every_image_that_is_taken_is_shown_before_the_interval_is() -> None:
    shown: list[object] = []
    query = Question(np.array([0.25]), 0, 3, norm="linf", margin=0.1)
    incumbent = Incumbent(
        NETWORK, query.domain(), query.goal(), Clock(60.0), gap=1e-3, nearest=True,
        on_witness=lambda image, distance: shown.append((image.tolist(), round(distance, 6))),
        on_progress=lambda lower, upper, nodes, seconds: shown.append(round(upper, 6)),
    )  # fmt: skip
    for pixel in (0.9, 0.3, 0.7, 0.8):
        incumbent.offer(np.array([pixel]))
    assert shown == [([0.9], 0.65), 0.65, ([0.7], 0.45), 0.45]


def test_a_solvers_point_just_short_of_the_margin_is_taken_a_hair_further() -> None:
    incumbent = incumbent_at(0.25)
    short = np.array([0.6 - 2e-6])
    assert not incumbent.offer(short)
    assert incumbent.offer_beyond(short)
    assert incumbent.distance == pytest.approx(0.35, abs=1e-5)
    assert not incumbent_at(0.25).offer_beyond(np.array([0.59]))


def test_the_interval_is_that_of_the_worst_case() -> None:
    incumbent = incumbent_at(0.25)
    incumbent.prove(0.2)
    incumbent.prove(math.inf, 1)
    assert incumbent.lower == 0.2
    incumbent.prove(0.1)
    assert incumbent.lower == 0.2
    incumbent.offer(np.array([0.6]))
    assert not incumbent.settled
    incumbent.prove(0.35 * (1 - 1e-3), 0)
    assert incumbent.settled


def test_no_image_at_all_is_only_claimed_of_the_whole_domain() -> None:
    incumbent = incumbent_at(0.25, radius=0.3)
    assert incumbent.proves(0.2) == 0.2
    assert incumbent.proves(0.3) == math.inf
    incumbent.prove(incumbent.proves(0.3))
    assert incumbent.settled
    found = incumbent_at(0.25)
    found.offer(np.array([0.7]))
    assert found.proves(1.0) == pytest.approx(0.45 * 0.999)


def test_any_witness_settles_a_question_about_a_radius() -> None:
    incumbent = incumbent_at(0.25, nearest=False, radius=0.5)
    assert not incumbent.settled
    incumbent.offer(np.array([0.7]))
    assert incumbent.settled


def test_one_rule_for_closed() -> None:
    assert is_closed(0.999, 1.0, 1e-3)
    assert not is_closed(0.9989, 1.0, 1e-3)
    assert is_closed(0.9989, 1.0, 1e-3, rounding=2e-4)
