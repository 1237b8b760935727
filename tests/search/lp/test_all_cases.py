"""Our own search against the MILP of the same question, on many small random networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import closecall
from closecall.bounds import linear_bounds
from closecall.clock import Clock
from closecall.models import build
from closecall.question.question import Question
from closecall.readers import Classifier, read
from closecall.search import crown
from closecall.search.lp.all_cases import AllCases
from closecall.search.lp.obbt import tighten
from closecall.search.lp.one_case import CaseSearch
from closecall.search.lp.relaxation import relax
from closecall.search.methods import search
from closecall.search.problem import Problem
from closecall.settings import DEFAULT, LinearPrograms

DENSE = {"sizes": [8, 8], "input_shape": [1, 3, 3], "classes": 4}
POOLED = {"blocks": ["3x2/2"], "hidden": [6], "input_shape": [1, 5, 5], "classes": 3}
TINY = {"sizes": [4], "input_shape": [1, 2, 2], "classes": 3}
OVERLAPPING = {"blocks": ["2x2/2s1"], "hidden": [5], "input_shape": [1, 4, 4], "classes": 3}
KINDS = {"dense": ("dnn", DENSE), "pooled": ("cnn", POOLED), "overlapping": ("cnn", OVERLAPPING)}


def network_of(kind: str, seed: int) -> Classifier:
    name, config = ("dnn", TINY) if kind == "tiny" else KINDS[kind]
    return read(build(name, config, seed=seed).eval())


def image_for(classifier: Classifier, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(classifier.network.input_shape)


@pytest.mark.parametrize(
    ("kind", "norm", "seeds"),
    [
        *((kind, norm, seeds) for kind in KINDS for norm, seeds in (("l1", range(4)), ("linf", range(3)))),
        *(("tiny", norm, range(3)) for norm in ("l2", "l0")),
    ],
)
def test_auto_and_milp_agree(kind: str, norm: str, seeds: range) -> None:
    for seed in seeds:
        classifier = network_of(kind, seed)
        image = image_for(classifier, seed)
        label = classifier.predict(image)
        asked = {
            "norm": norm,
            "target": "any" if seed % 2 else (label + 1) % classifier.network.classes,
            "cap": 0.6 if seed % 3 == 2 else None,
            "gap": 1e-4 if norm == "l2" else 1e-5,
            "time_limit": 60.0,
        }
        ours = closecall.nearest(classifier, image, label, method="auto", **asked)
        solvers = closecall.nearest(classifier, image, label, method="milp", **asked)
        assert ours.outcome == solvers.outcome
        if solvers.distance is not None:
            assert ours.distance == pytest.approx(
                solvers.distance, rel=2e-4 if norm == "l2" else 3e-5, abs=1e-6
            )
            assert ours.lower_bound <= solvers.distance * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_is_cut_short_gives_an_interval_around_the_optimum(kind: str) -> None:
    classifier = network_of(kind, 1)
    image = image_for(classifier, 1)
    whole = closecall.nearest(classifier, image, norm="l1", time_limit=60)
    assert whole.distance is not None
    for limit in (0.001, 0.02, 0.1):
        cut = closecall.nearest(classifier, image, norm="l1", time_limit=limit)
        assert cut.lower_bound <= whole.distance * (1 + 1e-6)
        assert cut.distance is None or cut.distance >= whole.lower_bound * (1 - 1e-6)


def problem_of(classifier: Classifier, image: np.ndarray, settings: LinearPrograms) -> Problem:
    query = Question(image.ravel(), classifier.predict(image), classifier.network.classes, norm="l1")
    clock, changed = Clock(60.0), replace(DEFAULT, lp=settings)
    return Problem(classifier.network, query.domain(), query.goal(), clock, gap=9e-5, settings=changed)


@pytest.mark.parametrize("kind", KINDS)
def test_radius_by_radius_ends_at_the_same_distance(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    radii = []
    attempt = AllCases.attempt
    monkeypatch.setattr(
        AllCases, "attempt", lambda self, radius, until: radii.append(radius) or attempt(self, radius, until)
    )
    for seed in range(6):
        classifier = network_of(kind, seed)
        image = image_for(classifier, seed)
        problem = problem_of(classifier, image, LinearPrograms(patience=0.0))
        ours = search(problem, "auto")
        solvers = closecall.nearest(classifier, image, norm="l1", method="milp", time_limit=60)
        assert solvers.outcome == "nearest"
        distance = problem.domain.distance(ours.witness)
        assert distance == pytest.approx(solvers.distance, rel=3e-4, abs=1e-6)
        assert distance * (1 - 1e-4) <= ours.lower <= solvers.distance * (1 + 1e-6) + 1e-6
    assert radii  # without patience some case was left for smaller radii


@pytest.mark.parametrize("worth_a_new_tree", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_small_tree_leaves_open_ends_at_the_same_distance(kind: str, worth_a_new_tree: float) -> None:
    """Climbs, tightening, then the same tree or a new one."""
    every_stage = LinearPrograms(units_for_climbs=0, small_tree=1, worth_a_new_tree=worth_a_new_tree)
    for seed in range(3):
        classifier = network_of(kind, seed)
        image = image_for(classifier, seed)
        problem = problem_of(classifier, image, every_stage)
        ours = search(problem, "auto")
        solvers = closecall.nearest(classifier, image, norm="l1", method="milp", time_limit=60)
        distance = problem.domain.distance(ours.witness)
        assert distance == pytest.approx(solvers.distance, rel=3e-4, abs=1e-6)
        assert distance * (1 - 1e-4) <= ours.lower <= solvers.distance * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("stage", ["polish", "approach"])
def test_ctrl_c_while_coming_nearer_keeps_the_witness(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    classifier = network_of("dense", 4)
    monkeypatch.setattr(crown, stage, interrupt)
    settings = LinearPrograms(units_for_climbs=0, small_tree=0)
    found = search(problem_of(classifier, image_for(classifier, 4), settings), "auto")
    assert found.witness is not None
    assert found.interrupted


def test_a_case_that_rounding_leaves_open_is_left_to_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = network_of("dense", 4)
    image = image_for(classifier, 4)
    run, tried = CaseSearch.run, []

    def settle_all_but_the_first(self: CaseSearch) -> bool:
        tried.append(self.trial.case)
        return True if self.trial.case == tried[0] else run(self)

    monkeypatch.setattr(CaseSearch, "run", settle_all_but_the_first)
    ours = closecall.nearest(classifier, image, norm="l1", method="auto", time_limit=60)
    solvers = closecall.nearest(classifier, image, norm="l1", method="milp", time_limit=60)
    assert len(tried) == classifier.network.classes - 1  # each case once, the first one too
    assert ours.outcome == solvers.outcome == "nearest"
    assert ours.distance == pytest.approx(solvers.distance, rel=3e-4, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_tightened_bounds_keep_every_image_that_could_still_win(kind: str) -> None:
    classifier = network_of(kind, 4)
    network = classifier.network.simplified()
    image = image_for(classifier, 4).ravel()
    label = classifier.predict(image)
    verdict = closecall.nearest(classifier, image, label, norm="l1", time_limit=60)
    assert verdict.distance is not None
    query = Question(image, label, network.classes, norm="l1", radius=1.5 * verdict.distance + 0.05)
    domain = query.domain()
    for case in query.goal().cases:
        bounds = linear_bounds(network, domain)
        relaxation = relax(network, domain, case, bounds)
        tighter = tighten(relaxation, bounds, deadline=np.inf, reached=0.02)
        winners = winning_images(network, domain, case, verdict.witness)
        assert not (tighter.empty and len(winners))
        for low, high, values in zip(
            tighter.bounds.lower, tighter.bounds.upper, network.values(winners), strict=True
        ):
            assert (values >= low - 1e-7).all()
            assert (values <= high + 1e-7).all()


def winning_images(network, domain, case, witness) -> np.ndarray:
    """Images of the domain that reach the case, found by sampling around a witness."""
    generator = np.random.default_rng(0)
    start = witness.astype(np.float64).ravel()
    trials = domain.clip(start + generator.normal(scale=0.05, size=(4000, len(start))))
    near = np.abs(trials - domain.centre).sum(axis=1) <= domain.radius
    return trials[near & (case.slack(network.forward(trials)) >= 0)]
