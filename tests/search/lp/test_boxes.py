"""Boxes closed by LPs with cuts, against the MILP of the same question in HiGHS."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import closecall
from closecall.attacks.gradient import find_witness
from closecall.bench.soundness.asking import CUTS_IN_EVERY_LAYER
from closecall.clock import Clock
from closecall.models import build
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.lp.boxes import close_boxes
from closecall.search.problem import Problem
from closecall.settings import DEFAULT, Settings

KINDS = {
    "dense": ("dnn", {"sizes": [8, 8], "input_shape": [1, 3, 3], "classes": 4}),
    "pooled": ("cnn", {"blocks": ["3x2/2"], "hidden": [6], "input_shape": [1, 5, 5], "classes": 3}),
    "overlapping": ("cnn", {"blocks": ["2x2/2s1"], "hidden": [5], "input_shape": [1, 4, 4], "classes": 3}),
}

ONE_TREE_FOR_A_BOX = replace(CUTS_IN_EVERY_LAYER, lp=replace(DEFAULT.lp, smaller_box=0.0, small_tree=2))


@pytest.mark.parametrize("settings", [DEFAULT, CUTS_IN_EVERY_LAYER, ONE_TREE_FOR_A_BOX])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_image_is_the_milps(kind: str, seed: int, settings: Settings) -> None:
    name, config = KINDS[kind]
    classifier = read(build(name, config, seed=seed).eval())
    image = np.random.default_rng(seed).random(classifier.network.input_size)
    label = classifier.predict(image)
    cap = 0.6 if seed == 3 else None
    query = Question(image, label, classifier.network.classes, norm="linf", cap=cap)
    clock = Clock(60.0)
    problem = Problem(classifier.network, query.domain(), query.goal(), clock, gap=1e-5, settings=settings)
    problem.incumbent.offer(find_witness(classifier.network, query.domain(), query.goal(), until=math.inf))
    close_boxes(problem)
    found = problem.incumbent
    solvers = closecall.nearest(
        classifier, image, label, norm="linf", cap=cap, method="milp", gap=1e-5, time_limit=60
    )
    if solvers.distance is None:
        assert found.witness is None
        return
    assert found.witness is not None
    distance = query.domain().distance(found.witness)
    assert distance == pytest.approx(solvers.distance, rel=3e-5, abs=1e-6)
    assert found.lower <= solvers.distance * (1 + 1e-6)
    assert found.lower >= distance * (1 - 1.1e-5)


def test_a_radius_without_a_witness_is_closed_and_one_with_a_witness_is_not() -> None:
    name, config = KINDS["pooled"]
    classifier = read(build(name, config, seed=1).eval())
    image = np.random.default_rng(1).random(classifier.network.input_size)
    label = classifier.predict(image)
    nearest = closecall.nearest(classifier, image, label, norm="linf", method="milp", time_limit=60)
    assert nearest.distance is not None
    for share in (0.98, 1.05):
        radius = share * nearest.distance
        query = Question(image, label, classifier.network.classes, norm="linf", radius=radius)
        problem = Problem(classifier.network, query.domain(), query.goal(), Clock(60.0), nearest=False)
        close_boxes(problem)
        found = problem.incumbent
        if share < 1:
            assert found.witness is None
            assert found.lower >= radius
        else:
            assert found.witness is not None
            assert query.goal().slack(classifier.network.forward(found.witness[None]))[0] >= -1e-6
