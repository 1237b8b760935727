"""Every formula of affine forms against random points, and against gradients that look for violations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from closecall.arrays import Vector
from closecall.bounds.capsules.coupling import Couplings, coupled, sigmoid, sigmoid_slope, straightened
from closecall.bounds.capsules.curves import range_over
from closecall.bounds.capsules.forms import Ball, Form, length, spread
from closecall.bounds.capsules.lengths import furthest_ahead, ranges
from closecall.bounds.capsules.prefix import rectified
from closecall.bounds.capsules.routing import Votes, agreement, summed
from closecall.bounds.capsules.squashing import middle_of_phi, phi, phi_slope, squashed
from closecall.network.layers import Capsules
from closecall.question.domain import Domain
from closecall.question.norms import norm_named

POINTS = 20_000
Function = Callable[[torch.Tensor], torch.Tensor]


def ball(norm: str, pixels: int, radius: float, seed: int = 0) -> Ball:
    centre = np.random.default_rng(seed).uniform(0, 1, pixels).round(1)  # some on the ends of the box
    return Ball.around(Domain(centre, np.zeros(pixels), np.ones(pixels), norm_named(norm), radius))


def form(around: Ball, shape: tuple[int, ...], scale: float, seed: int, errors: int = 3) -> Form:
    draw = np.random.default_rng(seed)
    shared = draw.normal(size=(*shape, len(around.pixels) + errors)) * scale
    centre = draw.normal(size=shape) * draw.choice([0.0, 0.1, 1.0, 3.0])
    # Every form has an error of two numbers, whose length is at most 1, beside errors of one.
    return Form(
        around, centre, shared, np.abs(draw.normal(size=shape)) * scale * 0.1, ((errors - 2, 1), (1, 2))
    )


def shifts(around: Ball, count: int, seed: int) -> Vector:
    """Shifts of the movable pixels within the domain, many of them on its border."""
    draw, domain = np.random.default_rng(seed), around.domain
    rows = draw.normal(size=(count, domain.centre.size)) * (draw.random((count, domain.centre.size)) < 0.4)
    moved = domain.furthest(rows) * draw.choice([1.0, 1.0, 0.5], size=(count, 1))
    if domain.norm.name != "linf":
        return moved[:, around.pixels]
    reached = domain.centre + moved - around.middle
    return np.asarray((reached[:, around.pixels] / around.scale).clip(-1, 1))


def columns(around: Ball, count: int, errors: int, seed: int) -> Vector:
    draw = np.random.default_rng(seed + 1)
    chosen = np.sign(draw.normal(size=(count, errors))) * draw.choice([1.0, 1.0, 0.3], size=(count, 1))
    turned = draw.uniform(0, 2 * np.pi, count)
    chosen[:, 1:3] = chosen[:, :1] * np.stack([np.cos(turned), np.sin(turned)], axis=1)
    return np.hstack([shifts(around, count, seed), chosen])


def values(given: Form, points: Vector, seed: int) -> Vector:
    """What a form may stand for at some points of its columns, its slack used to the full here and there."""
    draw = np.random.default_rng(seed + 2)
    own = draw.uniform(-1, 1, (len(points), *given.centre.shape)).round(0) * given.slack
    used = given.shared[..., : points.shape[1]]
    return np.asarray(given.centre + np.einsum("...c,pc->p...", used, points) + own)


def excess(made: Form, points: Vector, exact: Vector, seed: int = 0) -> float:
    """By how much exact values leave a form at the points they belong to, in some directions.

    What is new may take any value: errors of one number, and vectors no longer than 1.
    """
    count, draw = points.shape[1], np.random.default_rng(seed)
    linear = made.centre + np.einsum("...c,pc->p...", made.shared[..., :count], points)
    missed = exact - linear
    found = float((np.abs(missed) - reach_of(made, made.shared, count) - made.slack).max())
    for _ in range(5):  # along the last axis
        way = draw.normal(size=made.centre.shape)
        across = np.einsum("...kc,...k->...c", made.shared, way)
        allowed = reach_of(made, across, count) + (np.abs(way) * made.slack).sum(-1)
        found = max(found, float((np.abs((missed * way).sum(-1)) - allowed).max()))
    return found


def reach_of(made: Form, shared: Vector, old: int) -> Vector:
    """The most that the columns behind the old ones add up to."""
    start, total = len(made.ball.pixels), np.zeros(shared.shape[:-1])
    for count, numbers in made.blocks:
        for _ in range(count):
            if start >= old:
                total = total + np.linalg.norm(shared[..., start : start + numbers], axis=-1)
            start += numbers
    return total * (1 + 1e-12)


def values_of(given: Form | Couplings, points: Vector) -> Vector:
    return np.asarray(given.centre + np.einsum("...c,pc->p...", given.shared, points))


def squash(vectors: Vector) -> Vector:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors * lengths / (1 + lengths**2))


CASES = [*product(("linf", "l1", "l2"), (1e-3, 0.1, 2.0), (0, 1))]


@pytest.mark.parametrize(("norm", "scale", "seed"), CASES)
def test_squash_stays_within_its_form(norm: str, scale: float, seed: int) -> None:
    around = ball(norm, 4, 0.3, seed)
    before = form(around, (5, 3), scale, seed)
    points = columns(around, POINTS, 3, seed)
    assert excess(squashed(before), points, squash(values(before, points, seed))) <= 0


@pytest.mark.parametrize(("norm", "scale", "seed"), CASES)
def test_couplings_stay_within_theirs(norm: str, scale: float, seed: int) -> None:
    around = ball(norm, 4, 0.3, seed)
    logits = form(around, (3, 4), scale, seed)
    points = columns(around, POINTS, 3, seed)
    powers = np.exp(values(logits, points, seed))
    exact = powers / powers.sum(-1, keepdims=True)
    found = coupled(logits)
    linear = values_of(found, points)
    assert (np.abs(exact - linear) - found.error).max() <= 0
    assert (np.abs(exact - found.centre) - found.reach).max() <= 0


@pytest.mark.parametrize(("norm", "scale", "seed"), CASES)
def test_routing_stays_within_its_forms(norm: str, scale: float, seed: int) -> None:
    around, draw = ball(norm, 4, 0.3, seed), np.random.default_rng(seed)
    children = form(around, (5, 3), scale, seed)
    agreed = form(around, (4, 2), scale, seed + 7)
    more = np.random.default_rng(seed).normal(size=(4, 2, 2)) * scale  # of errors that the children lack
    shared = np.concatenate([agreed.shared, more], axis=-1)
    agreed = Form(around, agreed.centre, shared, agreed.slack, (*agreed.blocks, (2, 1)))
    votes = Votes(Capsules(draw.normal(size=(5, 4, 2, 3)), 2), children)
    points = columns(around, POINTS // 2, 5, seed)
    made = np.einsum("ijkd,pid->pijk", votes.layer.votes, values(children, points[:, :-2], seed))
    assert (np.linalg.norm(made - votes.centre, axis=-1) - votes.reach).max() <= 0
    logits = agreement(votes, agreed)
    exact = np.einsum("pijk,pjk->pij", made, values(agreed, points, seed + 9))
    assert (np.abs(exact - values_of(logits, points)) - logits.slack).max() <= 0
    powers = np.exp(exact)
    shares = powers / powers.sum(-1, keepdims=True)
    sums = summed(votes, coupled(logits))
    assert excess(sums, points, np.einsum("pij,pijk->pjk", shares, made)) <= 0


@pytest.mark.parametrize(("norm", "scale", "seed"), CASES)
def test_rectifiers_and_leads_stay_below(norm: str, scale: float, seed: int) -> None:
    around = ball(norm, 4, 0.3, seed)
    before = form(around, (6, 5), scale, seed)
    points = columns(around, POINTS, 3, seed)
    exact = values(before, points, seed)
    flat = Form(around, before.centre[0], before.shared[0], before.slack[0], before.blocks)
    everything = np.full(5, np.inf)
    assert excess(rectified(flat, -everything, everything, flat.blocks), points, exact[:, 0].clip(0)) <= 0
    lengths = np.linalg.norm(exact, axis=-1)
    assert (np.linalg.norm(exact - before.centre, axis=-1) <= length(before)).all()
    low, high = ranges(before)
    assert ((lengths >= low) & (lengths <= high)).all()
    for ahead, behind in ((0, 1), (2, 3), (5, 4)):
        assert (lengths[:, ahead] - lengths[:, behind]).max() <= furthest_ahead(before, ahead, behind)


@given(st.floats(-40, 40), st.floats(0, 30), st.floats(0, 9), st.floats(0, 12))
@hypothesis_settings(max_examples=300)
def test_ranges_of_curves_hold_everywhere(low: float, width: float, length: float, wide: float) -> None:
    share = np.linspace(0, 1, 3001)
    steps = low + width * share
    slope, middle, error = straightened(np.array([low]), np.array([low + width]))
    assert (np.abs(sigmoid(steps) - slope * steps - middle) <= error).all()
    lengths = length + wide * share
    alpha, loose = middle_of_phi(np.array([length]), np.array([length + wide]))
    assert (np.abs(phi(lengths) - alpha) <= loose).all()
    beta = phi_slope(np.array([length]))
    bottom, top = range_over(
        lambda n: phi(n) - beta * n, lambda n: phi_slope(n) - beta, 2.0, np.array([length]),
        np.array([length + wide]),
    )  # fmt: skip
    bent = phi(lengths) - beta * lengths
    assert bottom[0] <= bent.min()
    assert bent.max() <= top[0]
    assert abs(sigmoid_slope(steps) - sigmoid(steps) * sigmoid(-steps)).max() < 1e-12


def worst(before: Form, made: Form, function: Function, seed: int, steps: int = 150) -> float:
    """The largest excess that gradient ascent finds over shifts, errors and slack, in L∞."""
    generator = torch.Generator().manual_seed(seed)
    shape, count = before.centre.shape, before.shared.shape[-1]
    start = torch.rand((60, count), generator=generator, dtype=torch.float64) * 2 - 1
    own = torch.rand((60, *shape), generator=generator, dtype=torch.float64) * 2 - 1
    free = [start.requires_grad_(), own.requires_grad_()]
    tensor = torch.from_numpy
    allowed = tensor(reach_of(made, made.shared, count) + made.slack)
    optimiser = torch.optim.Adam(free, lr=0.05)
    most = -np.inf
    for _ in range(steps):
        point, slack = (part.clamp(-1, 1) for part in free)
        pair = point[:, -2:]  # the error of two numbers
        point = torch.cat([point[:, :-2], pair / pair.norm(dim=1, keepdim=True).clamp_min(1.0)], dim=1)
        exact = function(
            tensor(before.centre) + torch.einsum("...c,pc->p...", tensor(before.shared), point)
            + slack * tensor(before.slack)
        )  # fmt: skip
        linear = tensor(made.centre) + torch.einsum("...c,pc->p...", tensor(made.shared[..., :count]), point)
        over = ((exact - linear).abs() - allowed).flatten(1).amax(1)
        most = max(most, float(over.detach().max()))
        optimiser.zero_grad()
        (-over.sum()).backward()
        optimiser.step()
        with torch.no_grad():
            for part in free:
                part.clamp_(-1, 1)
    return most


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.5])
def test_gradients_find_no_violation(scale: float) -> None:
    around = ball("linf", 4, 0.3)

    def shortened(vectors: torch.Tensor) -> torch.Tensor:
        lengths = vectors.norm(dim=-1, keepdim=True)
        return vectors * lengths / (1 + lengths**2)

    before = form(around, (2, 3), scale, 5)
    made = squashed(before)
    found = worst(before, made, shortened, 1)
    count = before.shared.shape[-1]
    assert -0.95 * (reach_of(made, made.shared, count) + made.slack).max() < found <= 0
    logits = form(around, (2, 4), scale, 6)
    shares = coupled(logits)
    as_form = Form(around, shares.centre, shares.shared, shares.error, logits.blocks)
    found = worst(logits, as_form, lambda b: b.softmax(-1), 2)
    assert -0.9 * shares.error.max() < found <= 0  # the search does come near the bound


def test_forms_of_numbers_that_overflow_prove_nothing() -> None:
    around = ball("linf", 4, 0.3)
    huge = form(around, (3, 2), 1e200, 0)
    with np.errstate(all="ignore"):
        sums = squashed(huge)
        assert not furthest_ahead(sums, 0, 1) < 0
        assert not furthest_ahead(huge, 0, 1) < 0


def test_the_spread_of_a_ball_is_that_of_its_points() -> None:
    for norm in ("linf", "l1", "l2"):
        around = ball(norm, 6, 0.3, 3)
        rows = np.random.default_rng(0).normal(size=(8, len(around.pixels)))
        reached = rows @ shifts(around, POINTS, 0).T
        assert (np.abs(reached).max(1) <= spread(around, rows, ())).all()
        assert (reached.max(1) <= around.most(rows)).all()
        assert (reached.max(1) >= 0.7 * around.most(rows)).all()
