"""Answers of the batched search against the exact MILP optimum."""

from __future__ import annotations

import logging
import time
from contextlib import suppress

import numpy as np
import pytest
import torch

from closecall.clock import Clock
from closecall.milp import OnProgress
from closecall.network import Network, Node
from closecall.network.layers import Affine, Relu
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.question.norms import norm_named
from closecall.search.crown import approach, search
from closecall.search.crown.engine import BatchedSearch
from closecall.search.incumbent import Incumbent
from closecall.search.problem import Problem
from closecall.settings import DEFAULT, Crown, Pace, Settings, Sweeps

from .conftest import Vector, random_network, random_question, true_distance

NORMS = ("l1", "l2", "linf")


def problem_of(
    network: Network,
    domain: Domain,
    goal: Goal,
    *,
    nearest: bool,
    settings: Settings = DEFAULT,
    on_progress: OnProgress | None = None,
) -> Problem:
    clock = Clock(120.0)
    return Problem(
        network, domain, goal, clock, nearest=nearest, gap=1e-4, settings=settings, on_progress=on_progress
    )


def refute(
    network: Network, domain: Domain, goal: Goal, *, seconds: float, settings: Settings = DEFAULT
) -> Incumbent:
    """Ask for any witness."""
    problem = problem_of(network, domain, goal, nearest=False, settings=settings)
    search(problem, time.perf_counter() + seconds)
    return problem.incumbent


def shrink(
    network: Network,
    domain: Domain,
    goal: Goal,
    witness: Vector,
    *,
    seconds: float,
    on_progress: OnProgress | None = None,
) -> Incumbent:
    """Ask for the nearest witness, from a known one on."""
    problem = problem_of(network, domain, goal, nearest=True, on_progress=on_progress)
    with suppress(KeyboardInterrupt):
        problem.incumbent.offer(witness)
        search(problem, time.perf_counter() + seconds)
    return problem.incumbent


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_refute_agrees_with_the_exact_distance(seed: int, pooled: bool, norm: str) -> None:
    network = random_network(seed, pooled=pooled)
    domain, goal = random_question(network, seed, norm, targeted=seed % 2 == 0)
    truth = true_distance(network, domain, goal)
    far = truth if np.isfinite(truth) else 10.0
    for share in (0.3, 0.999, 1.001):
        outcome = refute(network, domain.within(share * far), goal, seconds=60)
        if share * far < truth:
            assert outcome.witness is None
            assert outcome.lower == np.inf
        else:
            assert_witness(network, domain.within(share * far), goal, outcome.witness)


@pytest.mark.parametrize("norm", NORMS)
def test_tightened_units_change_no_answer(norm: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without better slopes and a quick search, cases stay open and units are tightened by branching."""
    sweeps = Sweeps(pace=Pace(2), fewest_rounds=1, most_rounds=1)
    settings = Settings(crown=Crown(quick_nodes=0, unit_pace=Pace(0), case_pace=Pace(0), sweeps=sweeps))
    network = random_network(3, pooled=True)
    domain, goal = random_question(network, 3, norm, targeted=False)
    truth = true_distance(network, domain, goal)
    with caplog.at_level(logging.DEBUG, "closecall.search.crown"):
        inside = refute(network, domain.within(0.999 * truth), goal, seconds=60, settings=settings)
        assert inside.lower == np.inf
        assert "tightening begins" in caplog.text
        assert f"radius {0.999 * truth:g} proven" in caplog.text
    beyond = refute(network, domain.within(1.001 * truth), goal, seconds=60, settings=settings)
    assert beyond.witness is not None


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(3, 5))
def test_shrink_finds_the_nearest(seed: int, pooled: bool, norm: str) -> None:
    network = random_network(seed, pooled=pooled)
    domain, goal = random_question(network, seed, norm, targeted=seed % 2 == 0)
    truth = true_distance(network, domain, goal)
    found = refute(network, domain, goal, seconds=60)
    assert (found.witness is not None) == np.isfinite(truth)
    if found.witness is None:
        return
    nearest = shrink(network, domain, goal, found.witness, seconds=60)
    assert nearest.settled
    assert_witness(network, domain, goal, nearest.witness)
    assert nearest.lower <= truth * (1 + 1e-6)
    assert nearest.distance * (1 - 1.0001e-4) <= nearest.lower
    assert nearest.distance == pytest.approx(truth, rel=2e-4)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("pooled", [False, True])
def test_approach_comes_nearer_and_keeps_to_the_goal(pooled: bool, norm: str) -> None:
    shares = []
    for seed in range(3, 7):
        network = random_network(seed, pooled=pooled)
        domain, goal = random_question(network, seed, norm, targeted=False)
        far = refute(network, domain, goal, seconds=60).witness
        if far is None:
            continue
        for seconds in (60, 0):
            problem = problem_of(network, domain, goal, nearest=True)
            problem.incumbent.offer(far)
            approach(problem, time.perf_counter() + seconds)
            near = problem.incumbent
            assert_witness(network, domain, goal, near.witness)
            assert true_distance(network, domain, goal) <= near.distance * (1 + 1e-6)
            if seconds:
                shares.append(near.distance / domain.distance(far))
            else:
                assert near.distance <= domain.distance(far)
    assert max(shares) <= 1
    assert min(shares) < 0.9


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("norm", [*NORMS, "l0"])
def test_out_of_time_leaves_a_valid_interval(norm: str, seconds: float) -> None:
    network = random_network(3, pooled=True)
    domain, goal = random_question(network, 3, norm, targeted=False)
    truth = true_distance(network, domain, goal)
    outcome = refute(network, domain, goal, seconds=60 if norm != "l0" else 5)
    assert outcome.witness is not None
    nearest = shrink(network, domain, goal, outcome.witness, seconds=seconds)
    assert_witness(network, domain, goal, nearest.witness)
    assert 0.0 <= nearest.lower <= truth * (1 + 1e-6)


@pytest.mark.parametrize("calls", [1, 3])
def test_ctrl_c_leaves_a_valid_interval(calls: int) -> None:
    network = random_network(3, pooled=True)
    domain, goal = random_question(network, 3, "linf", targeted=False)
    truth = true_distance(network, domain, goal)
    found = refute(network, domain, goal, seconds=60)
    assert found.witness is not None
    seen: list[float] = []

    def stop(lower: float, upper: float, nodes: int, seconds: float) -> None:
        assert lower <= truth * (1 + 1e-6)
        assert upper >= truth * (1 - 1e-6)
        seen.append(lower)
        if len(seen) == calls:
            raise KeyboardInterrupt

    nearest = shrink(network, domain, goal, found.witness, seconds=60, on_progress=stop)
    assert nearest.settled or len(seen) == calls
    assert_witness(network, domain, goal, nearest.witness)
    assert 0.0 <= nearest.lower <= truth * (1 + 1e-6)


def test_the_same_question_has_the_same_answer() -> None:
    network = random_network(1, pooled=True)
    domain, goal = random_question(network, 1, "linf", targeted=False)
    first, second = (refute(network, domain.within(0.4), goal, seconds=60) for _ in range(2))
    assert first.statistics == second.statistics
    assert (first.lower, first.distance) == (second.lower, second.distance)


def test_a_network_beyond_float32_is_not_refuted_falsely() -> None:
    """Layers of [200, −199] pass one number on, while their bounds grow beyond what float32 holds.

    The goal is reached only where all pixels move together, from where no gradient leads there.
    """
    pixels = 40
    layers = [Affine.of([np.ones((2, pixels))], np.full(2, -0.8 * pixels))]
    layers += [Affine.of([np.array([[200.0, -199.0]] * 2)], np.zeros(2)) for _ in range(25)]
    layers.append(Affine.of([np.array([[0.0, 0.0], [1.0, 0.0]])], np.array([1.0, 0.0])))
    nodes = [Node(layers[0], (0,))]
    for layer in layers[1:]:
        nodes += [Node(Relu(2), (len(nodes),)), Node(layer, (len(nodes) + 1,))]
    network = Network((1, 1, pixels), tuple(nodes))
    centre = np.full(pixels, 0.5)
    domain = Domain(centre, np.zeros(pixels), np.ones(pixels), norm_named("linf"), 0.4)
    goal = Goal((Case(np.array([[-1.0, 1.0]]), np.array([0.001])),))
    assert goal.slack(network.forward((centre + 0.39)[None]))[0] > 0
    outcome = refute(network, domain, goal, seconds=2)
    assert outcome.lower <= 0.39


def assert_witness(network: Network, domain: Domain, goal: Goal, witness: Vector | None) -> None:
    assert witness is not None
    assert goal.slack(network.forward(witness[None]))[0] >= 0
    assert (witness >= domain.lower).all()
    assert (witness <= domain.upper).all()
    assert domain.distance(witness) <= domain.radius


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_where_no_unit_is_open_one_program_answers(seed: int, norm: str) -> None:
    """All units are on everywhere, so that the folded network is an affine map."""
    *hidden, last = random_network(seed, pooled=False).nodes
    loud = [
        Node(Affine.of(node.layer.weights, np.full(node.layer.size, 50.0)), node.inputs)
        if isinstance(node.layer, Affine)
        else node
        for node in hidden
    ]
    domain, _ = random_question(Network((1, 2, 3), (*loud, last)), seed, norm, targeted=True)
    scores = Network((1, 2, 3), (*loud, last)).forward(domain.centre[None])[0]
    level = Affine.of(last.layer.weights, last.layer.bias - scores + np.array([0.05, 0.0, 0.0]))
    network = Network((1, 2, 3), (*loud, Node(level, last.inputs)))
    domain, goal = random_question(network, seed, norm, targeted=True)
    truth = true_distance(network, domain, goal)
    problem = problem_of(network, domain, goal, nearest=True)
    batched = BatchedSearch(problem, time.perf_counter() + 20)
    with torch.no_grad():
        batched.ball = batched.ball.within(1.5 * truth)
        batched.fold_within(1.5 * truth)
        batched.begin_anew()
        batched.bound_units()
        batched.bound_cases()
        assert batched.networks.double.units == 0
        batched.any_will_do = False
        batched.step()
    assert problem.incumbent.distance == pytest.approx(truth, rel=2e-4)
