"""One perturbation for many images, against linear programs over all activation patterns of all images."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import closecall
from closecall.ask.universal import universal
from closecall.errors import QueryError
from closecall.question.question import Question
from closecall.question.universal import Together
from closecall.verdict.universal import Universal

from .hidden_layer import HiddenLayer

torch.set_num_threads(1)

PIXELS, HIDDEN, CLASSES, MARGIN = 2, 2, 3, 0.001


class Tiny(HiddenLayer):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, (1, 1, PIXELS), HIDDEN, CLASSES, (1.5, 0.4))


def pieces(
    model: Tiny, image: np.ndarray, label: int, target: int | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """All polytopes A·δ ≤ b in which clip(x + δ) is turned: clip pattern × phases × new class."""
    inner, inner_bias, outer, outer_bias = model.weights()
    found = []
    for clips in itertools.product((-1, 0, 1), repeat=PIXELS):
        moves = np.diag([float(clip == 0) for clip in clips])
        base = np.array([{-1: 0.0, 0: x, 1: 1.0}[clip] for clip, x in zip(clips, image, strict=True)])
        rows, sides = [], []
        for pixel, clip in enumerate(clips):
            one = np.eye(PIXELS)[pixel]
            if clip <= 0:  # not above: x + δ ≤ 1, or for clip −1: ≤ 0
                rows.append(one)
                sides.append((1.0 if clip == 0 else 0.0) - image[pixel])
            if clip >= 0:
                rows.append(-one)
                sides.append(image[pixel] - (0.0 if clip == 0 else 1.0))
        for signs in itertools.product((0.0, 1.0), repeat=HIDDEN):
            on = np.array(signs)
            away = np.where(on == 1, -1.0, 1.0)[:, None]
            before = inner @ moves
            slopes = outer @ (on[:, None] * before)
            offset = outer @ (on * (inner @ base + inner_bias)) + outer_bias
            for new in range(CLASSES) if target is None else (target,):
                if new == label:
                    continue
                rivals = [label] if target is None else [j for j in range(CLASSES) if j != target]
                a = np.vstack([rows, away * before, slopes[rivals] - slopes[new]])
                b = np.concatenate(
                    [
                        sides,
                        -(away[:, 0] * (inner @ base + inner_bias)),
                        offset[new] - offset[rivals] - MARGIN,
                    ]
                )
                found.append((a, b))
    return found


def smallest(choices: list[list[tuple[np.ndarray, np.ndarray]]], norm: str) -> float:
    """The least norm of a δ that lies in one polytope of each image; branches that are empty are cut off."""
    best = math.inf

    def least(rows: list[np.ndarray], sides: list[np.ndarray]) -> float:
        extra = 1 if norm == "linf" else PIXELS
        size = np.ones((PIXELS, 1)) if norm == "linf" else np.eye(PIXELS)
        a, eye = np.vstack(rows), np.eye(PIXELS)
        whole = np.vstack(
            [np.hstack([a, np.zeros((len(a), extra))]), np.hstack([eye, -size]), np.hstack([-eye, -size])]
        )
        found = linprog(
            np.concatenate([np.zeros(PIXELS), np.ones(extra)]),
            A_ub=whole,
            b_ub=np.concatenate([*sides, np.zeros(2 * PIXELS)]),
            bounds=[(-1.0, 1.0)] * PIXELS + [(0.0, None)] * extra,
        )
        return float(found.fun) if found.status == 0 else math.inf

    def descend(depth: int, rows: list[np.ndarray], sides: list[np.ndarray]) -> None:
        nonlocal best
        for a, b in choices[depth]:
            value = least([*rows, a], [*sides, b])
            if value < best:
                if depth + 1 == len(choices):
                    best = value
                else:
                    descend(depth + 1, [*rows, a], [*sides, b])

    descend(0, [], [])
    return best


def posed(seed: int, count: int) -> tuple[Tiny, np.ndarray, list[int]]:
    """Images with black and white pixels among them, where clipping matters, and what the model says."""
    model, generator = Tiny(seed), np.random.default_rng(seed)
    images = generator.choice([0.0, 0.2, 0.5, 0.9, 1.0], size=(count, PIXELS)).astype(np.float32)
    with torch.no_grad():
        labels = model(torch.from_numpy(images)).argmax(dim=1).tolist()
    return model, images, labels


def seen(model: Tiny, images: np.ndarray, delta: np.ndarray) -> list[int]:
    """What torch sees once δ is added and clipped, all in float32."""
    with torch.no_grad():
        moved = torch.clamp(torch.from_numpy(images) + torch.from_numpy(delta.ravel()), 0.0, 1.0)
        return [int(number) for number in model(moved).argmax(dim=1)]


def asked(model: Tiny, images: np.ndarray, labels: list[int], **more: object) -> Universal:
    return universal(model, images.reshape(-1, 1, 1, PIXELS), labels, time_limit=30, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", ["linf", "l1"])
@pytest.mark.parametrize("seed", range(3))
def test_no_smaller_perturbation_turns_all(seed: int, norm: str) -> None:
    model, images, labels = posed(seed, 2)
    target = None if seed % 2 else (labels[0] + 1) % CLASSES
    if target in labels:
        target = None
    truth = smallest([pieces(model, x, y, target) for x, y in zip(images, labels, strict=True)], norm)
    found = asked(model, images, labels, norm=norm, target=target)
    if math.isinf(truth):
        assert (found.outcome, found.delta, found.count_bound) == ("none", None, 1)
        return
    assert found.outcome == "smallest"
    assert found.distance == pytest.approx(truth, rel=2e-4, abs=2e-5)
    assert found.lower_bound is not None
    assert found.lower_bound <= truth * (1 + 1e-6) + 1e-7
    assert found.delta is not None
    after = seen(model, images, found.delta)
    assert after == list(found.predicted_after or ())
    assert all(
        new == target if target is not None else new != y for new, y in zip(after, labels, strict=True)
    )
    assert max(bound or 0.0 for bound in found.single_bounds) <= found.distance + 1e-6


@pytest.mark.parametrize(("seed", "many"), [(0, 2), (1, 3), (2, 2)])
def test_no_perturbation_within_the_radius_turns_more(seed: int, many: int) -> None:
    model, images, labels = posed(seed, many)
    whole = [pieces(model, x, y, None) for x, y in zip(images, labels, strict=True)]
    sizes = {
        some: smallest([whole[place] for place in some], "linf")
        for count in range(1, many + 1)
        for some in itertools.combinations(range(many), count)
    }
    for radius in (0.15, 0.4):
        truth = max((len(some) for some, size in sizes.items() if size <= radius), default=0)
        found = asked(model, images, labels, most=True, radius=radius)
        assert found.outcome == "most"
        assert (found.count, found.count_bound) == (truth, truth)
        assert found.delta is not None
        assert np.abs(found.delta).max() <= radius
        after = seen(model, images, found.delta)
        assert tuple(new != y for new, y in zip(after, labels, strict=True)) == found.flipped
        assert sum(found.flipped) == truth


def test_the_joint_network_is_the_network_of_each_clipped_image() -> None:
    model = Tiny(3)
    network, generator = closecall.read(model).network, np.random.default_rng(1)
    images = generator.choice([0.0, 0.25, 1.0], size=(3, PIXELS))
    questions = tuple(Question(image, 0, CLASSES, norm="linf") for image in images)
    for radius in (math.inf, 0.25):
        together = Together(network, questions, radius)
        least, most = together.domain.box()
        deltas = generator.uniform(least, most, size=(50, PIXELS))
        for place, image in enumerate(images):
            with torch.no_grad():
                scores = model.double()(torch.from_numpy(np.clip(image + deltas, 0.0, 1.0))).numpy()
            expected = scores[:, 1:].max(axis=1) - scores[:, 0] - MARGIN
            np.testing.assert_allclose(together.slack(deltas)[:, place], expected, atol=1e-9)


def test_images_that_are_wrong_already_need_nothing() -> None:
    model, images, labels = posed(0, 2)
    found = asked(model, images, [(label + 1) % CLASSES for label in labels])
    assert (found.outcome, found.distance, found.lower_bound) == ("smallest", 0.0, 0.0)


def test_stopped_at_once_the_interval_still_holds() -> None:
    model, images, labels = posed(1, 2)
    truth = smallest([pieces(model, x, y, None) for x, y in zip(images, labels, strict=True)], "linf")
    found = universal(model, images.reshape(-1, 1, 1, PIXELS), labels, time_limit=1e-4)
    assert found.distance is None or found.distance >= truth * (1 - 1e-6)
    assert (found.lower_bound or 0.0) <= truth * (1 + 1e-6)
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["outcome"] == found.outcome
    assert "delta" not in record


def test_ctrl_c_keeps_what_was_proven() -> None:
    model, images, labels = posed(1, 2)

    def press(*_: object) -> None:
        raise KeyboardInterrupt

    found = asked(model, images, labels, on_progress=press)
    assert found.outcome in ("unresolved", "found")
    assert any("interrupted" in note for note in found.notes)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        ({"most": True}, "the most images within which radius"),
        ({"radius": 0.0}, "the radius must be positive, got 0"),
        ({"target": 3}, "the target must be from 0 to 2, got 3"),
        ({"target": "all"}, "the target must be the number of a class, got 'all'"),
        ({"norm": "l3"}, "unknown norm 'l3'"),
        ({"labels": [0]}, "expected a label for each of 2 images, got 1"),
        ({"images": np.zeros((11, 1, 1, 2))}, "for 1 to 10 images, got 11"),
        ({"images": np.zeros((0, 1, 1, 2))}, "for 1 to 10 images, got 0"),
        ({"images": np.zeros(2)}, "expected images"),
        ({"images": np.full((2, 1, 1, 2), 2.0)}, "pixels must lie in"),
    ],
)
def test_bad_questions_are_refused(ask: dict[str, object], sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        universal(Tiny(0), **{"images": np.zeros((2, 1, 1, PIXELS)), **ask})  # type: ignore[arg-type]
