"""Cuts hold all over the box, are exact at its corners, and are the concave envelope of small functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from closecall.bounds import linear_bounds
from closecall.bounds.envelope_cuts import Envelopes, planes_above
from closecall.models import build
from closecall.network import Network
from closecall.network.layers import Maximum, Relu
from closecall.question.domain import Domain
from closecall.question.question import Question
from closecall.readers import read
from closecall.settings import LinearBounds

KINDS = {
    "dense": ("dnn", {"sizes": [9, 7], "input_shape": [1, 4, 4], "classes": 4}),
    "pooled": ("cnn", {"blocks": ["3x2/2"], "hidden": [6], "input_shape": [1, 5, 5], "classes": 3}),
    "overlapping": ("cnn", {"blocks": ["2x2/2s1"], "hidden": [5], "input_shape": [1, 4, 4], "classes": 3}),
}
ROUNDING = 1e-9
EVERY_LAYER = LinearBounds(deep_units_for_cuts=0)


def network_and_domain(kind: str, seed: int) -> tuple[Network, Domain]:
    name, config = KINDS[kind]
    network = read(build(name, config, seed=seed).eval()).network.simplified()
    centre = np.round(np.random.default_rng(seed).random(network.input_size), 1)
    return network, Question(centre, 0, network.classes, norm="linf", radius=0.3).domain()


def corners(domain: Domain, count: int, seed: int) -> np.ndarray:
    upper = np.random.default_rng(seed).random((count, len(domain.centre))) < 0.5
    return np.where(upper, domain.up, -domain.down)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_cuts_hold_all_over_the_box_and_are_exact_at_the_corner_they_are_made_for(
    kind: str, seed: int
) -> None:
    network, domain = network_and_domain(kind, seed)
    envelopes = Envelopes(network, domain, EVERY_LAYER)
    assert len(envelopes.pieces) == sum(isinstance(node.layer, (Relu, Maximum)) for node in network.nodes)
    ranges = envelopes.ranges(linear_bounds(network, domain))
    generator = np.random.default_rng(seed)
    shifts = np.vstack(
        [corners(domain, 300, 1), generator.uniform(-domain.down, domain.up, (300, len(domain.centre)))]
    )
    values = network.values(domain.centre + shifts)
    inputs = np.hstack([shifts, *(values[node] for node in envelopes.spans if node > 0)])
    assert (inputs >= ranges[0] - ROUNDING).all()
    assert (inputs <= ranges[1] + ROUNDING).all()
    for reader in envelopes.pieces:
        units = np.arange(network.nodes[reader - 1].layer.size)
        for place in (0, 1, 300, 301):  # two corners, two points inside
            true = values[reader][place]
            cuts = envelopes.cuts(reader, units, np.full(len(units), np.inf), inputs[place], ranges)
            assert len(cuts) == len(units)
            for cut in cuts:
                above = cut.height + inputs[:, cut.inputs] @ cut.slopes
                assert (values[reader][:, cut.output] <= above + ROUNDING).all()
                if place < 300 and cut.inputs.max() < len(domain.centre):  # of the pixels, a corner
                    assert above[place] == pytest.approx(true[cut.output], abs=1e-9)


def test_planes_are_the_concave_envelope() -> None:
    """The envelope at a point is the best convex combination of corners: an LP over all of them."""
    generator = np.random.default_rng(3)
    for _ in range(20):
        slopes, constant = generator.normal(size=5), float(generator.normal(scale=0.5))
        low, high = -generator.random(5), generator.random(5)
        here = generator.uniform(low, high)
        plane, height = planes_above(slopes, np.array(constant), (low, high), here)
        every = np.array(list(itertools.product(*zip(low, high, strict=True))))
        function = np.maximum(0.0, constant + every @ slopes)
        equations = np.vstack([every.T, np.ones(len(every))])
        best = linprog(-function, A_eq=equations, b_eq=np.append(here, 1.0), bounds=(0, None))
        assert height + plane @ here == pytest.approx(-best.fun, abs=1e-7)


def test_units_below_their_planes_give_no_cut() -> None:
    network, domain = network_and_domain("dense", 0)
    envelopes = Envelopes(network, domain)
    shifts = corners(domain, 1, 5)
    values = network.values(domain.centre + shifts)
    ranges = envelopes.ranges(linear_bounds(network, domain))
    inputs = np.concatenate([shifts[0], *(values[node][0] for node in envelopes.spans if node > 0)])
    for reader in envelopes.pieces:
        assert envelopes.cuts(reader, np.arange(9), values[reader][0], inputs, ranges) == []
