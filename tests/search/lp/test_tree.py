"""A tree searched by several threads: the same optimum, valid bounds when stopped, failures that are seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

import closecall
from closecall.bounds import linear_bounds
from closecall.models import build
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.incumbent import Statistics
from closecall.search.lp.relaxation import Relaxation, relax
from closecall.search.lp.tree import Tree

KINDS = {
    "dense": ("dnn", {"sizes": [12, 12], "input_shape": [1, 4, 4], "classes": 3}),
    "pooled": ("cnn", {"blocks": ["3x2/2"], "hidden": [8], "input_shape": [1, 5, 5], "classes": 3}),
}


def hard_relaxation(kind: str, seed: int) -> Relaxation:
    """The nearest image of another class within a large radius: a tree of some hundred nodes."""
    name, config = KINDS[kind]
    network = read(build(name, config, seed=seed).eval()).network.simplified()
    image = np.random.default_rng(seed).random(network.input_size)
    scores = network.forward(image[None])[0]
    least, most = int(scores.argmin()), int(scores.argmax())
    query = Question(image, most, network.classes, norm="l1", target=least, margin=0.01)
    domain = query.domain().within(8.0)
    (case,) = query.goal().cases
    return relax(network, domain, case, linear_bounds(network, domain))


class Search:
    """A tree and the best point that it came across, by the objective."""

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation = relaxation
        self.best = math.inf
        self.tree = Tree(relaxation, math.inf, self.look, Statistics())

    def look(self, values: np.ndarray) -> float:
        entries = self.relaxation.entries
        shares = values[entries.gap] / entries.most
        if max(shares[members].min() for members in self.relaxation.branches.members) <= 1e-8:
            self.best = min(self.best, float(self.relaxation.program.objective @ values))
        return self.best

    @property
    def nodes(self) -> int:
        return self.tree.open_nodes.statistics.nodes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 4, 5])
def test_several_threads_find_the_optimum_of_one(kind: str, seed: int) -> None:
    relaxation = hard_relaxation(kind, seed)
    alone, together = Search(relaxation), Search(relaxation)
    assert alone.tree.search(stop=lambda: False)
    assert together.tree.search(threads=3, stop=lambda: False)
    assert math.isfinite(alone.best)
    assert together.best == pytest.approx(alone.best, rel=1e-7)
    assert together.tree.bound == pytest.approx(alone.tree.bound, rel=1e-7)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_stopped_tree_claims_no_more_than_is_true_and_goes_on(threads: int) -> None:
    relaxation = hard_relaxation("dense", 5)
    whole = Search(relaxation)
    assert whole.tree.search(stop=lambda: False)
    parts = Search(relaxation)
    claims = []
    for _ in range(1000):
        if parts.tree.search(nodes=5, threads=threads, stop=lambda: False):
            break
        claims.append(parts.tree.bound)
    else:
        pytest.fail("five nodes at a time never end")
    assert claims
    assert max(claims) <= whole.best * (1 + 1e-9)
    assert parts.best == pytest.approx(whole.best, rel=1e-7)


def test_a_failure_in_a_thread_is_raised() -> None:
    def fail(values: np.ndarray) -> float:
        raise ArithmeticError("no such point")

    tree = Tree(hard_relaxation("dense", 5), math.inf, fail, Statistics())
    with pytest.raises(ArithmeticError, match="no such point"):
        tree.search(threads=2, stop=lambda: False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_nearest_with_two_threads_agrees_with_the_milp(kind: str, norm: str) -> None:
    name, config = KINDS[kind]
    model = build(name, config, seed=5).eval()
    image = np.random.default_rng(5).random(config["input_shape"])
    ours = closecall.nearest(model, image, norm=norm, threads=2, gap=1e-5)
    solvers = closecall.nearest(model, image, norm=norm, method="milp", gap=1e-5)
    assert ours.outcome == solvers.outcome == "nearest"
    assert ours.distance == pytest.approx(solvers.distance, rel=3e-5, abs=1e-6)
