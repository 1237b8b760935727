"""Groups of classes, dropping out of the top k, and confidence, against all images of a fine grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import closecall
from closecall.question.question import Question
from closecall.readers import Classifier, read
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict, save_verdict

SIDE = 401  # points of the grid along each of two pixels
CLASSES = 5
IMAGE = np.array([[[0.375, 0.5]]])

Holds = Callable[[np.ndarray, float], np.ndarray]


@pytest.fixture(scope="module")
def model() -> nn.Sequential:
    torch.manual_seed(3)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, CLASSES)).eval()
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.normal_(std=1.5)
        layers[-1].bias -= layers(torch.tensor(IMAGE, dtype=torch.float32))[0] - torch.linspace(2, 0, CLASSES)
    return layers


@pytest.fixture(scope="module")
def classifier(model: nn.Sequential) -> Classifier:
    return read(model, (1, 1, 2))


def agrees(model: nn.Module, verdict: closecall.Verdict, holds: Holds) -> None:
    """The witness does what is asked, and no image of a fine grid that is nearer than the bound does."""
    assert verdict.outcome in ("nearest", "robust")
    if verdict.witness is not None:
        assert holds(scores_of(model, verdict.witness.astype(np.float64).reshape(1, 2)), 0.0009)[0]
    centre, reach = IMAGE.ravel(), verdict.distance or 1.0
    lines = [np.linspace(max(0.0, x - reach), min(1.0, x + reach), SIDE) for x in centre]
    points = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 2)
    shifts = np.abs(points - centre)
    distances = shifts.max(axis=1) if verdict.norm == "linf" else shifts.sum(axis=1)
    assert not holds(scores_of(model, points[distances < verdict.lower_bound]), 0.001).any()


def scores_of(model: nn.Module, points: np.ndarray) -> np.ndarray:
    """In float64, by torch."""
    with torch.no_grad():
        scores = model.double()(torch.from_numpy(points)).numpy()
    model.float()
    return scores


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("group", [(3, 4), (1, 4), (2, 3, 4)])
def test_a_group(model, classifier, norm: str, group: tuple[int, ...]) -> None:
    rivals = [j for j in range(CLASSES) if j not in group]

    def leads(scores: np.ndarray, margin: float) -> np.ndarray:
        return scores[:, group].max(axis=1) >= scores[:, rivals].max(axis=1) + margin

    verdict = closecall.nearest(classifier, IMAGE, 0, target=group, norm=norm)
    agrees(model, verdict, leads)
    assert verdict.predicted_after in group
    alone = [closecall.nearest(classifier, IMAGE, 0, target=t, norm=norm).distance or math.inf for t in group]
    assert verdict.distance <= min(alone) * (1 + 2e-4)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_out_of_the_top(model, classifier, norm: str, k: int) -> None:
    def drops(scores: np.ndarray, margin: float) -> np.ndarray:
        return (scores[:, 1:] >= scores[:, :1] + margin).sum(axis=1) >= k

    verdict = closecall.nearest(classifier, IMAGE, 0, out_of_top=k, norm=norm)
    agrees(model, verdict, drops)
    assert verdict.outcome == ("robust" if k == 4 else "nearest")


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize(("target", "p"), [("any", 0.6), ("any", 0.95), (2, 0.8), ((2, 3), 0.7)])
def test_a_confidence(model, classifier, norm: str, target: object, p: float) -> None:
    winners = [1, 2, 3, 4] if target == "any" else [target] if isinstance(target, int) else list(target)

    def is_confident(scores: np.ndarray, margin: float) -> np.ndarray:
        return torch.softmax(torch.from_numpy(scores), 1).numpy()[:, winners].max(axis=1) >= p

    verdict = closecall.nearest(classifier, IMAGE, 0, target=target, confidence=p, norm=norm)
    agrees(model, verdict, is_confident)
    assert verdict.outcome == "nearest"


def test_a_confidence_needs_all_tangents(classifier) -> None:
    """The condition on each rival alone is necessary, and not enough where several rivals are close."""
    verdict = closecall.nearest(classifier, IMAGE, 0, target=2, confidence=0.8)
    necessary = closecall.nearest(classifier, IMAGE, 0, target=2, ratio=0.8 / 0.2)
    assert necessary.distance < 0.999 * verdict.distance
    assert necessary.distance <= verdict.lower_bound * (1 + 1e-3)


def test_confidence_within_a_radius(classifier) -> None:
    distance = closecall.nearest(classifier, IMAGE, 0, target=2, confidence=0.8).distance
    asked = {"target": 2, "confidence": 0.8, "norm": "l1"}
    assert closecall.certify(classifier, IMAGE, 0, radius=0.99 * distance, **asked).outcome == "robust"
    found = closecall.certify(classifier, IMAGE, 0, radius=1.01 * distance, **asked)
    assert found.outcome == "adversarial"


def test_an_original_that_is_not_confident_enough_is_no_answer(classifier) -> None:
    seen = int(closecall.nearest(classifier, IMAGE, 0).predicted_before)
    assert seen == 0
    verdict = closecall.nearest(classifier, IMAGE, 3, confidence=0.9)
    assert verdict.distance > 0
    assert verdict.outcome == "nearest"


@pytest.mark.parametrize("asked", [{"target": (2, 3)}, {"out_of_top": 2}, {"target": 2, "confidence": 0.8}])
def test_what_is_saved_can_be_checked(classifier, tmp_path: Path, asked: dict) -> None:
    verdict = closecall.nearest(classifier, IMAGE, 0, **asked)
    save_verdict(verdict, tmp_path, model="m")
    saved = load_verdict(tmp_path)
    assert [check.sentence for check in check_verdict(saved, classifier) if not check.holds] == []
    asking_more = {"group": [1, 4], "out_of_top": 4, "confidence": 0.99}
    changed = {"group": None, "target": None} | {
        name: value for name, value in asking_more.items() if saved.record[name] is not None
    }
    forged = type(saved)(saved.folder, {**saved.record, **changed}, saved.original, saved.witness)
    assert not all(check.holds for check in check_verdict(forged, classifier))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"group": ()}, "the group of targets is empty"),
        ({"group": (1, 5)}, "the target must be from 0 to 4, got 5"),
        ({"group": (0, 1)}, "the label 0 is in the group of targets"),
        ({"out_of_top": 0}, "one can drop out of the top 1 to 4, got 0"),
        ({"out_of_top": 5}, "one can drop out of the top 1 to 4, got 5"),
        ({"out_of_top": 2, "target": 1}, "has no target and no confidence"),
        ({"confidence": 1.0}, "larger than 0.5 and smaller than 1, got 1.0"),
        ({"confidence": 0.5}, "larger than 0.5 and smaller than 1, got 0.5"),
        ({"confidence": math.nan}, "larger than 0.5 and smaller than 1, got nan"),
        ({"confidence": 0.9, "ratio": 2.0}, "leave out the ratio"),
        ({"confidence": 0.9, "outputs": "relu"}, "leave out the ratio and relu outputs"),
    ],
)
def test_a_question_that_means_nothing(asked: dict, words: str) -> None:
    with pytest.raises(closecall.QueryError, match=words):
        Question(IMAGE.ravel(), 0, CLASSES, **asked)


def test_too_many_ways_to_drop_out() -> None:
    with pytest.raises(closecall.QueryError, match="ask for fewer places"):
        Question(IMAGE.ravel(), 0, 1000, out_of_top=2)


def test_a_ratio_is_one_of_probabilities(classifier) -> None:
    verdict = closecall.nearest(classifier, IMAGE, 0, target=2, ratio=3.0)
    probabilities = torch.softmax(torch.from_numpy(verdict.scores_after), 0).numpy()
    assert probabilities[2] / np.delete(probabilities, 2).max() == pytest.approx(3.0, rel=1e-3)
