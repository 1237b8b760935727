"""Masks, patches and budgets in a second norm, against other ways to ask the same."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import closecall
from closecall.question.question import Question
from closecall.question.where import mask_from, mask_of, mask_text
from closecall.readers import Classifier, read
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict, save_verdict

SHAPE = (1, 3, 3)
IMAGE = np.random.default_rng(4).integers(64, 193, SHAPE) / 256


def network(seed: int, inputs: int = 9) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.8)
    return model


@pytest.fixture(scope="module")
def model() -> nn.Sequential:
    return network(2)


@pytest.fixture(scope="module")
def classifier(model: nn.Sequential) -> Classifier:
    return read(model, SHAPE)


def with_pixels_fixed(model: nn.Sequential, allowed: np.ndarray) -> nn.Sequential:
    """The same network of the pixels that may change alone."""
    reduced = nn.Sequential(nn.Flatten(), nn.Linear(int(allowed.sum()), 8), nn.ReLU(), model[-1])
    weight, image = model[1].weight.detach(), torch.tensor(IMAGE.ravel(), dtype=torch.float32)
    flat = torch.from_numpy(allowed.ravel())
    with torch.no_grad():
        reduced[1].weight.copy_(weight[:, flat])
        reduced[1].bias.copy_(model[1].bias + weight[:, ~flat] @ image[~flat])
    return reduced.eval()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_mask_is_a_network_of_fewer_pixels(model, classifier, norm: str, seed: int) -> None:
    allowed = np.random.default_rng(seed).random(SHAPE) < 0.5
    masked = closecall.nearest(classifier, IMAGE, norm=norm, mask=allowed)
    alone = closecall.nearest(with_pixels_fixed(model, allowed), IMAGE[allowed].reshape(1, 1, -1), norm=norm)
    assert masked.outcome == alone.outcome
    if alone.distance is not None:
        assert masked.distance == pytest.approx(alone.distance, rel=3e-4)
        assert not (masked.witness != masked.image)[~allowed].any()


@pytest.mark.parametrize("norm", ["l1", "linf", "l0"])
def test_a_patch_is_the_nearest_of_all_its_places(classifier, norm: str) -> None:
    patched = closecall.nearest(classifier, IMAGE, norm=norm, patch=2)
    placed = []
    for top in range(2):
        for left in range(2):
            allowed = np.zeros(SHAPE, dtype=bool)
            allowed[:, top : top + 2, left : left + 2] = True
            placed.append(closecall.nearest(classifier, IMAGE, norm=norm, mask=allowed).distance)
    known = [distance for distance in placed if distance is not None]
    assert patched.outcome == ("nearest" if known else "robust")
    assert known
    assert patched.distance == pytest.approx(min(known), rel=3e-4)
    assert patched.lower_bound <= min(known)


def test_no_patch_within_a_radius(classifier) -> None:
    distance = closecall.nearest(classifier, IMAGE, norm="linf", patch=2).distance
    near = closecall.certify(classifier, IMAGE, radius=0.99 * distance, patch=2)
    assert near.outcome == "robust"
    far = closecall.certify(classifier, IMAGE, radius=1.01 * distance, patch=2)
    assert far.outcome == "adversarial"


def test_a_second_norm_that_is_a_box_is_a_cap(classifier) -> None:
    capped = closecall.nearest(classifier, IMAGE, cap=0.125)
    budgeted = closecall.nearest(classifier, IMAGE, also="linf:0.125")
    assert budgeted.distance == pytest.approx(capped.distance, rel=2e-4)


def test_the_same_norm_twice_is_a_radius(classifier) -> None:
    far = closecall.nearest(classifier, IMAGE).distance
    assert closecall.nearest(classifier, IMAGE, also=("l1", 0.9 * far)).outcome == "robust"
    assert closecall.nearest(classifier, IMAGE, also=("l1", 1.1 * far)).outcome == "nearest"


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("pixels", [1, 2])
def test_a_budget_of_pixels_is_the_nearest_mask(classifier, norm: str, pixels: int) -> None:
    """Of all masks of so many pixels, tried one by one."""
    budgeted = closecall.nearest(classifier, IMAGE, norm=norm, also=f"l0:{pixels}")
    best = np.inf
    for some in combinations(range(9), pixels):
        mask = np.isin(np.arange(9), some).reshape(SHAPE)
        reach = None if np.isinf(best) else best
        found = closecall.nearest(classifier, IMAGE, norm=norm, mask=mask, radius=reach)
        best = best if found.distance is None else min(best, found.distance)
    assert budgeted.outcome == ("robust" if np.isinf(best) else "nearest")
    if np.isfinite(best):
        assert budgeted.distance == pytest.approx(best, rel=3e-4)
        assert (budgeted.witness != budgeted.image).sum() <= pixels


@pytest.mark.parametrize("norm", ["linf", "l2", "l0"])
def test_a_budget_in_l1_against_a_grid(norm: str) -> None:
    """Two pixels: no image of a fine grid that keeps to the budget is nearer than the bound."""
    model = network(7, inputs=2)
    image = np.array([[[0.5, 0.625]]])
    free = closecall.nearest(read(model, (1, 1, 2)), image, norm="linf")
    spent = float(np.abs(free.witness - free.image).sum())
    amount = 0.8 * spent
    verdict = closecall.nearest(read(model, (1, 1, 2)), image, free.label, norm=norm, also=f"l1:{amount}")
    line = np.linspace(0, 1, 601)
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    shifts = np.abs(points - image.ravel())
    with torch.no_grad():
        scores = model.double()(torch.from_numpy(points)).numpy()
    turned = np.delete(scores, free.label, axis=1).max(axis=1) >= scores[:, free.label] + 0.001
    kept = turned & (shifts.sum(axis=1) <= amount)
    lengths = {"linf": shifts.max(axis=1), "l2": np.sqrt((shifts**2).sum(axis=1)),
               "l0": (shifts > 0).sum(axis=1)}[norm]  # fmt: skip
    assert verdict.outcome == ("nearest" if kept.any() else "robust")
    if kept.any():
        assert verdict.lower_bound <= lengths[kept].min() + 1e-9
        assert np.abs(verdict.witness - verdict.image).sum() <= amount + 1e-6
        assert norm != "linf" or verdict.distance >= free.lower_bound


@pytest.mark.parametrize("asked", [{"mask": IMAGE > 0.4}, {"also": "l0:3"}, {"also": "l1:2"}, {"patch": 2}])
def test_what_is_saved_can_be_checked(classifier, tmp_path: Path, asked: dict) -> None:
    verdict = closecall.nearest(classifier, IMAGE, norm="linf", **asked)
    assert verdict.witness is not None
    save_verdict(verdict, tmp_path, model="m")
    saved = load_verdict(tmp_path)
    assert [check.sentence for check in check_verdict(saved, classifier) if not check.holds] == []
    less = {"mask": "0:1", "also": "l0:1", "patch": 1}
    narrower = {name: value for name, value in less.items() if saved.record[name] is not None}
    forged = type(saved)(saved.folder, {**saved.record, **narrower}, saved.original, saved.witness)
    assert not all(check.holds for check in check_verdict(forged, classifier))


def test_masks_as_files_and_arrays(tmp_path: Path) -> None:
    allowed = np.array([[True, False], [False, True]])
    Image.fromarray((allowed * 255).astype(np.uint8)).save(tmp_path / "mask.png")
    np.save(tmp_path / "mask.npy", allowed)
    for given in (allowed, allowed[None], tmp_path / "mask.png", str(tmp_path / "mask.npy")):
        assert mask_of(given, (1, 2, 2)) == "0:1,3:4"
    assert mask_of(allowed, (3, 2, 2)) == "0:1,3:5,7:9,11:12"
    assert mask_of(allowed, (2, 2, 3)) == "0:3,9:12"
    some = np.random.default_rng(0).random(50) < 0.5
    np.testing.assert_array_equal(mask_from(mask_text(some), 50), some)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"mask": np.ones((1, 2, 2), bool)}, r"the mask has shape \(1, 2, 2\), the model takes"),
        ({"mask": np.zeros(SHAPE)}, "the mask lets no pixel change"),
        ({"mask": np.full(SHAPE, "a")}, "a mask is an array of numbers or truth values"),
        ({"also": "linf"}, "a norm and an amount such as linf:0.3, got 'linf'"),
        ({"also": "linf:much"}, "must be a number, got 'much'"),
        ({"also": ("linf", 0)}, "must be positive, got 0"),
        ({"also": "l2:1"}, "a second budget is in l1, linf, l0, got l2"),
        ({"also": "l3:1"}, "unknown norm 'l3'"),
        ({"patch": 0}, "at least 1 pixel a side, got 0"),
        ({"patch": 4}, "4 x 4 pixels does not fit into the image: it has 3 x 3"),
    ],
)
def test_what_cannot_be_meant(classifier, asked: dict, words: str) -> None:
    with pytest.raises(closecall.QueryError, match=words):
        closecall.nearest(classifier, IMAGE, **asked)


def test_a_mask_that_a_record_makes_up() -> None:
    with pytest.raises(closecall.QueryError, match="the mask has no pixels '3:99' of 9"):
        Question(IMAGE.ravel(), 0, 4, mask="0:2,3:99")
