"""Nobody is taken in by a network whose answer is known, whatever its disguise."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch

from closecall.bench.soundness import LIARS, RECORD, hear_all, hear_block, recorded
from closecall.bench.soundness.asking import Claim, false_claims
from closecall.bench.soundness.disguises import DISGUISES
from closecall.bench.soundness.liars import liar
from closecall.bench.soundness.steps import computed, module_of
from closecall.bench.soundness.truths import MARGIN, Truth, half_spaces, planted_ball
from closecall.solvers import available

AT_ONCE = 10


@pytest.mark.parametrize("first", range(0, LIARS["quick"], AT_ONCE))
def test_nobody_is_taken_in(first: int) -> None:
    block = hear_block(first, AT_ONCE, available())
    assert block.lies == ()
    assert block.closed > block.claims / 2, "soundness is no art for who says nothing"


@pytest.mark.parametrize("kind", [half_spaces, planted_ball])
def test_known_distances_agree_with_random_search(kind: type[Truth]) -> None:
    """No random image that fools the network is nearer than the truth."""
    for seed in range(20):
        truth = kind(np.random.default_rng(seed))
        images = np.random.default_rng(seed).random((20_000, len(truth.image)))
        shares = np.linspace(0.02, 1.0, 50).repeat(400)[:, None]
        images = truth.image + shares * (images - truth.image)
        scores = computed(truth.steps, images)
        fooled = images[(scores[:, 1:] >= scores[:, :1] + MARGIN).any(axis=1)] - truth.image
        for norm, distances in (
            ("l1", np.abs(fooled).sum(axis=1)),
            ("l2", np.sqrt((fooled**2).sum(axis=1))),
            ("linf", np.abs(fooled).max(axis=1, initial=0.0)),
        ):
            assert distances.min(initial=np.inf) >= truth.distances[norm] * (1 - 1e-9)


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguise_changes_the_network_but_not_its_function(name: str) -> None:
    changed = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        truth = planted_ball(generator) if seed % 2 else half_spaces(generator)
        steps = DISGUISES[name](generator, truth.steps)
        changed += steps is not truth.steps
        images = generator.random((64, len(truth.image)))
        assert computed(steps, images) == pytest.approx(computed(truth.steps, images), abs=1e-6)
    assert changed


def test_a_false_interval_is_noticed() -> None:
    assert false_claims([Claim("one", 0.5, 0.6)], 0.55, "x") == []
    assert len(false_claims([Claim("too high", 0.56, 0.6)], 0.55, "x")) == 1
    assert len(false_claims([Claim("too low", 0.5, 0.54)], 0.55, "x")) == 1
    assert len(false_claims([Claim("robust", np.inf, np.inf)], 0.55, "x")) == 1
    assert len(false_claims([Claim("one", 0.5, 0.6), Claim("other", 0.7, 0.8)], 0.55, "x")) == 2


def test_the_same_number_makes_the_same_liar() -> None:
    first, second = liar(7), liar(7)
    assert first.name == second.name
    image = torch.from_numpy(first.image).float().reshape(1, *first.shape)
    assert torch.equal(first.module(image), second.module(image))


def test_modules_compute_the_steps() -> None:
    truth = half_spaces(np.random.default_rng(3))
    side = round(len(truth.image) ** 0.5)
    images = np.random.default_rng(0).random((5, len(truth.image)))
    for convolved in (False, True):
        module = module_of(truth.steps, (1, side, side), convolved=convolved)
        scores = module(torch.from_numpy(images).float().reshape(5, 1, side, side)).detach().numpy()
        assert scores == pytest.approx(computed(truth.steps, images), abs=1e-5)


def test_a_crash_costs_no_answer_and_repeats_none(tmp_path: Path) -> None:
    said: list[str] = []

    def kill_once(line: str) -> None:
        if not said:
            multiprocessing.active_children()[0].kill()
        said.append(line)

    heard = hear_all(8, tmp_path, kill_once, at_once=2)
    assert any(line.startswith("A process died") for line in said)
    assert sorted(block.first for block in recorded(tmp_path / RECORD)) == [0, 2, 4, 6]
    assert (heard.liars, heard.lies) == (8, ())
