"""L2 and L0 by linear programs: the solver's answer, with an image to begin with and without."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from closecall.clock import Clock
from closecall.models import build
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.auto import attack
from closecall.search.lp.all_cases import settle_by_few_nodes
from closecall.search.methods import search
from closecall.search.problem import Finding, Problem
from closecall.settings import DEFAULT

KINDS = {
    "dense": ("dnn", {"sizes": [5, 4], "input_shape": [1, 3, 3], "classes": 3}),
    "pooled": ("cnn", {"blocks": ["2x2/2"], "hidden": [4], "input_shape": [1, 5, 3], "classes": 3}),
}
WITHOUT_HASTE = replace(DEFAULT, lp=replace(DEFAULT.lp, share_for_few_nodes=1.0))


def problem_of(kind: str, seed: int, norm: str, radius: float = math.inf, **asked: object) -> Problem:
    name, config = KINDS[kind]
    network = read(build(name, config, seed=seed).eval()).network
    image = np.clip(np.random.default_rng(seed).normal(0.5, 0.5, network.input_size), 0, 1)
    label = int(network.forward(image[None])[0].argmax())
    query = Question(image, label, network.classes, norm=norm, margin=0.01, radius=radius, **asked)  # type: ignore[arg-type]
    return Problem(network, query.domain(), query.goal(), Clock(30.0), settings=WITHOUT_HASTE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["l2", "l0"])
@pytest.mark.parametrize("seed", range(2))
def test_the_answer_is_that_of_a_solver(kind: str, norm: str, seed: int) -> None:
    truth = search(problem_of(kind, seed, norm), "milp")
    for attacked in (True, False):
        problem = problem_of(kind, seed, norm)
        if attacked:
            attack(problem)
        compare(problem, truth)


def compare(problem: Problem, truth: Finding) -> None:
    settle_by_few_nodes(problem)
    incumbent = problem.incumbent
    assert incumbent.settled
    if truth.witness is None:
        assert math.isinf(incumbent.lower)
        assert incumbent.witness is None
        return
    distance = problem.domain.distance(truth.witness)
    assert incumbent.lower <= distance * (1 + 1e-6)
    assert incumbent.distance == pytest.approx(distance, rel=2e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_caps_and_several_threads(threads: int) -> None:
    for norm in ("l2", "l0"):
        truth = search(problem_of("dense", 1, norm, cap=0.4), "milp")
        problem = replace(problem_of("dense", 1, norm, cap=0.4), threads=threads)
        settle_by_few_nodes(problem)
        found = None if truth.witness is None else problem.domain.distance(truth.witness)
        assert problem.incumbent.settled
        assert problem.incumbent.distance == pytest.approx(math.inf if found is None else found, rel=2e-4)


def test_so_many_pixels_may_well_do_where_the_domain_ends_there() -> None:
    witness = search(problem_of("dense", 2, "l0"), "milp").witness
    assert witness is not None
    count = problem_of("dense", 2, "l0").domain.distance(witness)
    assert count >= 2
    for radius, reached in ((count - 1, False), (count, True), (count - 0.5, False)):
        problem = replace(problem_of("dense", 2, "l0", radius), nearest=False)
        settle_by_few_nodes(problem)
        assert problem.incumbent.settled
        assert (problem.incumbent.witness is not None) == reached
    incumbent = problem_of("dense", 2, "l0", 3.0).incumbent
    assert incumbent.proves_count(2.0) == 2.0
    assert incumbent.proves_count(3.0) < 3.0
    assert incumbent.proves_count(4.0) == math.inf
