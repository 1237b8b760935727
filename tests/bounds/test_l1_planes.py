"""Planes that start at the original hold for thousands of images within the radius, and cut the tree."""

from __future__ import annotations

import numpy as np
import pytest

from closecall.bounds import Bounds, interval_bounds, linear_bounds
from closecall.bounds.l1_planes import Anchored, anchor
from closecall.models import build
from closecall.network import Network
from closecall.network.layers import Relu
from closecall.question.domain import Domain
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.lp.relaxation import relax
from closecall.solvers.incremental_lp import WarmProgram

KINDS = {
    "dense": ("dnn", {"sizes": [9, 7], "input_shape": [1, 4, 4], "classes": 4}),
    "pooled": ("cnn", {"blocks": ["3x2/2"], "hidden": [6], "input_shape": [1, 5, 5], "classes": 3}),
    "overlapping": ("cnn", {"blocks": ["2x2/2s1"], "hidden": [5], "input_shape": [1, 4, 4], "classes": 3}),
}
RADIUS = 1.5
ROUNDING = 1e-9


def network_and_domain(kind: str, seed: int) -> tuple[Network, Domain]:
    name, config = KINDS[kind]
    network = read(build(name, config, seed=seed).eval()).network.simplified()
    generator = np.random.default_rng(seed)
    centre = np.round(generator.random(network.input_size), 1)  # some pixels have no room on one side
    return network, Question(centre, 0, network.classes, norm="l1", radius=RADIUS).domain()


def images_within(domain: Domain, count: int = 4000) -> np.ndarray:
    """Sparse and dense shifts of every length up to the radius."""
    generator = np.random.default_rng(7)
    rows = generator.normal(size=(count, len(domain.centre)))
    rows *= generator.random(rows.shape) < generator.choice([0.1, 0.3, 1.0], size=(count, 1))
    shares = generator.random((count, 1))
    return domain.centre + shares * domain.furthest(rows)


def movements(domain: Domain, images: np.ndarray) -> np.ndarray:
    shifts = images - domain.centre
    return np.hstack([np.maximum(shifts, 0)[:, domain.up > 0], np.maximum(-shifts, 0)[:, domain.down > 0]])


def check(network: Network, domain: Domain, anchored: Anchored, images: np.ndarray) -> None:
    d = movements(domain, images)
    for index, (planes, values) in enumerate(zip(anchored.planes, network.values(images), strict=True)):
        assert (values <= planes.high + d @ planes.above.T + ROUNDING).all()
        assert (values >= planes.low + d @ planes.below.T - ROUNDING).all()
        assert (values <= anchored.bounds.upper[index] + ROUNDING).all()
        assert (values >= anchored.bounds.lower[index] - ROUNDING).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_planes_and_bounds_hold(kind: str, seed: int) -> None:
    network, domain = network_and_domain(kind, seed)
    for bounds in (interval_bounds(network, domain), linear_bounds(network, domain)):
        check(network, domain, anchor(network, domain, bounds), images_within(domain))


@pytest.mark.parametrize("kind", KINDS)
def test_planes_are_exact_at_the_original(kind: str) -> None:
    network, domain = network_and_domain(kind, 1)
    anchored = anchor(network, domain, linear_bounds(network, domain))
    for planes, value in zip(anchored.planes, network.values(domain.centre[None]), strict=True):
        assert planes.low == pytest.approx(value[0], abs=1e-9)
        assert planes.high == pytest.approx(value[0], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_planes_hold_where_bounds_that_hold_for_a_part_only_hold(kind: str) -> None:
    network, domain = network_and_domain(kind, 2)
    bounds = linear_bounds(network, domain)
    first = next(index for index, node in enumerate(network.nodes) if isinstance(node.layer, Relu))
    source = network.nodes[first].inputs[0]
    images = images_within(domain)
    phases = network.values(images)[source] >= 0
    open_unit = int(np.argmin(np.abs(phases.mean(axis=0) - 0.5)))
    on = phases[:, open_unit]
    for side, chosen in (("lower", on), ("upper", ~on)):
        sides = {"lower": list(bounds.lower), "upper": list(bounds.upper)}
        sides[side][source] = sides[side][source].copy()
        sides[side][source][open_unit] = 0.0
        decided = Bounds(tuple(sides["lower"]), tuple(sides["upper"]))
        assert chosen.any()
        check(network, domain, anchor(network, domain, decided), images[chosen])


def test_leads_raise_the_bound_of_the_relaxation() -> None:
    raised = 0
    for seed in range(8):
        network, domain = network_and_domain("dense", seed)
        label = int(network.forward(domain.centre[None]).argmax())
        case = Question(domain.centre, label, network.classes, norm="l1", radius=RADIUS).goal().cases[0]
        bounds = linear_bounds(network, domain)
        leads = anchor(network, domain, bounds).leads
        plain, limited = (
            WarmProgram(relaxation.program).solve()
            for relaxation in (
                relax(network, domain, case, bounds),
                relax(network, domain, case, bounds, leads),
            )
        )
        if plain[0] != "optimal" or limited[0] != "optimal":
            raised += plain[0] == "optimal"
            continue
        assert limited[1] >= plain[1] - 1e-7
        raised += limited[1] > plain[1] * 1.02
    assert raised >= 4
