"""The table of engines: which plan a question gets, and that every engine in it exists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import closecall
from closecall.clock import Clock
from closecall.encoding.encode import Costs
from closecall.models import build
from closecall.question.question import Question
from closecall.readers import Classifier, read
from closecall.search.auto import ENGINES, TABLE
from closecall.search.methods import METHODS, search
from closecall.search.problem import Problem
from closecall.settings import DEFAULT, Settings

SMALL = ("dnn", {"sizes": [8, 8], "input_shape": [1, 3, 3], "classes": 3})
LOCAL = ("strided", {})
BATCHES_FIRST = replace(DEFAULT, auto=replace(DEFAULT.auto, units_for_boxes=10))
FEWER_UNITS = replace(DEFAULT, lp=replace(DEFAULT.lp, units_for_readings=0))
WIDE = ("dnn", {"sizes": [1600], "input_shape": [1, 3, 3], "classes": 3})


def classifier_of(kind: tuple[str, dict[str, object]]) -> Classifier:
    if kind == LOCAL:
        torch.manual_seed(0)
        strided = nn.Conv2d(1, 3, 3, stride=2)
        return read(nn.Sequential(strided, nn.ReLU(), nn.Flatten(), nn.Linear(75, 3)).eval(), (1, 12, 12))
    return read(build(kind[0], kind[1], seed=1).eval())


def problem_of(
    kind: tuple[str, dict[str, object]],
    norm: str,
    *,
    nearest: bool = True,
    radius: float = np.inf,
    settings: Settings = DEFAULT,
) -> Problem:
    network = classifier_of(kind).network
    image = np.random.default_rng(0).random(network.input_size)
    label = int(network.forward(image[None])[0].argmax())
    query = Question(image, label, network.classes, norm=norm, radius=radius)
    return Problem(network, query.domain(), query.goal(), Clock(30.0), nearest=nearest, settings=settings)


@pytest.mark.parametrize(
    ("problem", "first", "then"),
    [
        (problem_of(SMALL, "l1"), "attack", "linear programs"),
        (problem_of(SMALL, "linf"), "attack", "linear programs"),
        (problem_of(SMALL, "l2"), "attack", "linear programs, shortly"),
        (problem_of(SMALL, "l2", settings=FEWER_UNITS), "attack", "first bound"),
        (problem_of(WIDE, "l2"), "attack", "batched bounds"),
        (problem_of(SMALL, "l0"), "attack", "first bound"),
        (problem_of(LOCAL, "linf"), "attack", "boxes"),
        (problem_of(LOCAL, "linf", settings=BATCHES_FIRST), "attack", "batched bounds, shortly"),
        (problem_of(WIDE, "l1"), "attack", "batched bounds"),
        (problem_of(WIDE, "linf", nearest=False, radius=0.1), "attack", "batched bounds"),
        (problem_of(SMALL, "linf", nearest=False), "attack", "batched bounds, for half of the time"),
    ],
)
def test_each_question_gets_its_plan(problem: Problem, first: str, then: str) -> None:
    plan = next(plan for plan in TABLE if plan.applies(problem))
    later = next((plan.engines for plan in plan.then if plan.applies(problem)), ())
    assert (*plan.engines, *later)[:3] == ("linear bounds", first, then)


@pytest.mark.parametrize(
    ("kind", "engines"), [(SMALL, ("linear programs, shortly", "solver")), (WIDE, ("solver",))]
)
def test_pixels_are_counted_by_linear_programs_where_few_units_are_open(
    kind: tuple[str, dict[str, object]], engines: tuple[str, ...]
) -> None:
    problem = problem_of(kind, "l0")
    plan = next(plan for plan in TABLE if plan.applies(problem))
    assert next(later.engines for later in plan.then if later.applies(problem)) == engines


def test_every_engine_that_is_named_exists_and_every_question_has_a_plan() -> None:
    for table in METHODS.values():
        plans = [later for plan in table for later in (plan, *plan.then)]
        assert all(engine in ENGINES for plan in plans for engine in plan.engines)
        assert table[-1].applies(problem_of(SMALL, "l1"))


def test_what_comes_after_climbs_finds_what_a_solver_finds() -> None:
    climbing, solved = problem_of(LOCAL, "linf", settings=BATCHES_FIRST), problem_of(LOCAL, "linf")
    found = search(climbing, "auto")
    search(solved, "milp")
    nearer = ["linear regions", "climbs"]
    assert climbing.asked[:5] == ["linear bounds", "attack", *nearer, "batched bounds, shortly"]
    assert climbing.incumbent.distance == pytest.approx(solved.incumbent.distance, rel=3e-4)
    assert found.lower == pytest.approx(solved.incumbent.lower, rel=3e-4)


def test_costs_go_to_the_solver() -> None:
    classifier = classifier_of(SMALL)
    image = np.random.default_rng(0).random((1, 3, 3))
    verdict = closecall.nearest(classifier, image, costs=Costs(unit=0.1), time_limit=30)
    assert any("costs" in note for note in verdict.notes)


def test_a_finding_says_what_answered_and_why() -> None:
    found = search(problem_of(SMALL, "l1"), "auto")
    assert found.engine == "linear programs"
    assert "few units" in found.why[-1]
    assert search(problem_of(SMALL, "l1"), "milp").engine == "highs"


def test_the_improved_model_gives_the_answer_of_the_basic_one() -> None:
    for seed in range(4):
        model = build("dnn", {"sizes": [6, 6], "input_shape": [1, 3, 3], "classes": 3}, seed=seed).eval()
        image = np.random.default_rng(seed).random((1, 3, 3))
        basic, improved = (
            closecall.nearest(model, image, norm="l1", method=method, time_limit=60)
            for method in ("milp-basic", "milp-improved")
        )
        assert basic.outcome == improved.outcome
        if basic.distance is not None:
            assert improved.distance == pytest.approx(basic.distance, rel=3e-4, abs=1e-6)
