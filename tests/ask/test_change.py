"""Brightness and contrast, against a walk along the segment, grids, linear programs and a MILP solver."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

import closecall
from closecall.batches.export import export
from closecall.batches.results import measure_of
from closecall.question.change import Change
from closecall.question.norms import norm_named
from closecall.readers import Classifier, read
from closecall.search.cells import Cell
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict, save_verdict

SHAPE = (1, 3, 3)
IMAGE = np.random.default_rng(4).integers(0, 257, SHAPE) / 256
MARGIN = 0.001


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.8)
    return model


def classifier_of(seed: int) -> Classifier:
    return read(network(seed), SHAPE)


def made(change: str, amounts: np.ndarray, image: np.ndarray = IMAGE) -> np.ndarray:
    """Rows of images by rows of amounts, as the docs say it."""
    flat, numbers = image.ravel(), dict(zip(change.split("+"), amounts.T, strict=True))
    alpha, beta = (numbers.get(name, np.zeros(len(amounts)))[:, None] for name in ("contrast", "brightness"))
    mean = flat.mean()
    return np.clip(mean + (1 + alpha) * (flat - mean) + beta, 0.0, 1.0)


def leads(model: nn.Sequential, images: np.ndarray, label: int) -> np.ndarray:
    with torch.no_grad():
        scores = model.double()(torch.from_numpy(images)).numpy()
    model.float()
    return np.delete(scores, label, axis=1).max(axis=1) - scores[:, label]


def walked(model: nn.Sequential, change: str, label: int, sign: float, end: float) -> float:
    """The first amount at which the lead is the margin: from one kink to the next, where all is linear."""
    first, last = (model[k].weight.detach().double().numpy() for k in (1, 3))
    bias, out = (model[k].bias.detach().double().numpy() for k in (1, 3))

    def image(t: float) -> np.ndarray:
        return made(change, np.array([[sign * t]]))[0]

    kinks = {0.0, end}
    flat = IMAGE.ravel()
    slope = sign * (np.ones(9) if change == "brightness" else flat - flat.mean())
    kinks |= {float((edge - x) / s) for x, s in zip(flat, slope, strict=True) if s for edge in (0, 1)}
    pieces = sorted(t for t in kinks if 0 <= t <= end)

    def cut(points: list[float], values) -> list[float]:
        """With the places where any of some functions, linear between the points, is zero."""
        found = set(points)
        for a, b in pairwise(points):
            va, vb = values(a), values(b)
            found |= {a + (b - a) * u / (u - v) for u, v in zip(va, vb, strict=True) if u * v < 0}
        return sorted(found)

    pieces = cut(pieces, lambda t: first @ image(t) + bias)

    def lead(t: float) -> np.ndarray:
        scores = last @ np.maximum(first @ image(t) + bias, 0) + out
        return np.delete(scores, label) - scores[label] - MARGIN

    pieces = cut(pieces, lead)
    return next((t for t in pieces if lead(t).max() >= -1e-12), np.inf)


@pytest.mark.parametrize("change", ["brightness", "contrast"])
@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6])
def test_one_number_against_a_walk(change: str, seed: int) -> None:
    model = network(seed)
    label = read(model, SHAPE).predict(IMAGE)
    ends = (1.0, 1.0) if change == "brightness" else (1.0, 9.0)
    truth = min(walked(model, change, label, sign, end) for sign, end in zip((-1, 1), ends, strict=True))
    verdict = closecall.nearest(model, IMAGE, change=change)
    assert np.isinf(truth) == ((change, seed) in (*(("contrast", k) for k in (0, 1, 5)), ("brightness", 5)))
    assert verdict.outcome == ("robust" if np.isinf(truth) else "nearest")
    if np.isfinite(truth):
        assert verdict.distance == pytest.approx(truth, rel=2e-4)
        assert verdict.lower_bound <= truth * (1 + 1e-9)
        assert closecall.certify(model, IMAGE, radius=0.99 * truth, change=change).outcome == "robust"
        assert closecall.certify(model, IMAGE, radius=1.01 * truth, change=change).outcome == "adversarial"


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_numbers_against_a_grid(norm: str, seed: int) -> None:
    """Nothing of a fine grid is nearer than the bound, and the witness is no farther than the grid's best."""
    change, model = "brightness+contrast", network(seed)
    verdict = closecall.nearest(model, IMAGE, norm=norm, change=change)
    reach = 9.0 if verdict.distance is None else 1.1 * verdict.distance
    line = np.linspace(-reach, reach, 401)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    grid = grid[(grid >= -1).all(axis=1) & (grid[:, 0] <= 1)]
    turned = leads(model, made(change, grid), verdict.label) >= MARGIN
    assert verdict.outcome == ("nearest" if turned.any() else "robust")
    assert turned.any() == (seed != 3)
    if not turned.any():
        return
    nearest = norm_named(norm).distance(grid[turned]).min()
    assert verdict.lower_bound <= nearest
    assert verdict.distance <= nearest * (1 + 2e-4)


@pytest.mark.parametrize(("change", "norm"), [("brightness", "l1"), ("brightness+contrast", "linf")])
def test_a_solver_says_the_same(change: str, norm: str) -> None:
    ours = closecall.nearest(classifier_of(1), IMAGE, norm=norm, change=change)
    solved = closecall.nearest(classifier_of(1), IMAGE, norm=norm, change=change, method="milp")
    assert (ours.engine, solved.engine) == ("boxes of numbers", "highs")
    assert ours.outcome == solved.outcome == "nearest"
    assert ours.distance == pytest.approx(solved.distance, rel=3e-4)


def test_the_witness_is_the_image_that_the_numbers_make() -> None:
    verdict = closecall.nearest(classifier_of(1), IMAGE, norm="l2", change="contrast + brightness")
    assert verdict.change == "brightness+contrast"
    numbers = np.array([[*verdict.amounts.values()]])
    expected = made("brightness+contrast", numbers, verdict.image.astype(np.float64))
    np.testing.assert_array_equal(verdict.witness.ravel(), expected[0].astype(np.float32))
    assert verdict.distance == pytest.approx(np.hypot(*verdict.amounts.values()), rel=1e-12)
    assert f"brightness {verdict.amounts['brightness']:+.6g} with contrast" in verdict.summary()


def test_brightness_is_a_share_of_the_pixel_range() -> None:
    """x = (z + 1) / 2 reads the same pixels from −1 to 1."""
    model = network(2)
    wide = nn.Sequential(nn.Flatten(), nn.Linear(9, 8), nn.ReLU(), model[3]).eval()
    with torch.no_grad():
        wide[1].weight.copy_(model[1].weight / 2)
        wide[1].bias.copy_(model[1].bias + model[1].weight.sum(dim=1) / 2)
    for change in ("brightness", "contrast"):
        plain = closecall.nearest(model, IMAGE, change=change)
        shifted = closecall.nearest(wide, 2 * IMAGE - 1, change=change, pixel_range=(-1, 1))
        assert shifted.distance == pytest.approx(plain.distance, rel=3e-4)


def test_only_pixels_of_the_mask_change() -> None:
    allowed = np.arange(9).reshape(SHAPE) % 2 == 0
    verdict = closecall.nearest(classifier_of(2), IMAGE, change="brightness", mask=allowed)
    assert verdict.outcome == "nearest"
    assert not (verdict.witness != verdict.image)[~allowed].any()
    amount = verdict.amounts["brightness"]
    expected = np.where(allowed, np.clip(IMAGE + amount, 0, 1), IMAGE)
    np.testing.assert_allclose(verdict.witness, expected, atol=1e-6)


def test_a_confidence() -> None:
    plain = closecall.nearest(classifier_of(2), IMAGE, change="brightness+contrast", norm="linf")
    sure = closecall.nearest(
        classifier_of(2), IMAGE, change="brightness+contrast", norm="linf", confidence=0.7
    )
    shares = np.exp(sure.scores_after) / np.exp(sure.scores_after).sum()
    assert sure.outcome == "nearest"
    assert sure.distance > plain.distance
    assert shares[sure.predicted_after] >= 0.7


def test_pixels_of_one_value_share_their_units() -> None:
    classifier = classifier_of(0)
    image = np.repeat([0.0, 0.5, 1.0], 3)
    changed = Change.of("brightness+contrast", image, (0.0, 1.0), None)
    reading = changed.before(classifier.network)
    assert reading.nodes[1].layer.size == 6
    amounts = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    images = np.array([changed.pixels(row) for row in amounts])
    np.testing.assert_allclose(reading.forward(amounts), classifier.network.forward(images), atol=1e-12)


def test_a_cut_box_bounds_as_a_linear_program_does() -> None:
    generator = np.random.default_rng(2)
    for _ in range(50):
        lower = generator.uniform(0, 0.5, 2)
        upper = lower + generator.uniform(0.1, 0.5, 2)
        direction, reach = generator.uniform(0.2, 1, 2), generator.uniform(0.1, 1.2)
        middle = (lower + upper) / 2
        cell = Cell(middle, lower, upper, norm_named("linf"), direction=direction, reach=reach)
        rows = generator.normal(size=(4, 2))
        for row, bound in zip(rows, cell.maximum(rows), strict=True):
            exact = linprog(-row, A_ub=[direction], b_ub=[reach], bounds=list(zip(lower, upper, strict=True)))
            if exact.status == 0:
                assert bound == pytest.approx(-exact.fun, abs=1e-8)
                assert bound >= -exact.fun - 1e-12


@pytest.mark.parametrize("change", ["brightness", "brightness+contrast"])
def test_what_is_saved_can_be_checked(change: str, tmp_path: Path) -> None:
    classifier = classifier_of(1)
    verdict = closecall.nearest(classifier, IMAGE, norm="linf", change=change)
    save_verdict(verdict, tmp_path, model="m")
    saved = load_verdict(tmp_path)
    assert [check.sentence for check in check_verdict(saved, classifier) if not check.holds] == []
    other = {name: 0.9 * amount for name, amount in verdict.amounts.items()}
    for amounts in (other, None, {}, {"hue": 1.0}, dict.fromkeys(other, "much")):
        forged = type(saved)(
            saved.folder, {**saved.record, "amounts": amounts}, saved.original, saved.witness
        )
        assert not all(check.holds for check in check_verdict(forged, classifier))
    witness = saved.witness.copy()
    witness.flat[0] += 0.01
    forged = type(saved)(saved.folder, saved.record, saved.original, witness)
    refuted = [check.sentence for check in check_verdict(forged, classifier) if not check.holds]
    assert any("makes the witness of the original" in sentence for sentence in refuted)


def test_a_batch_keeps_changes_apart_from_norms(tmp_path: Path) -> None:
    images, classifier, store = np.stack([IMAGE, IMAGE[..., ::-1]]), classifier_of(1), tmp_path / "s.sqlite"
    plain = closecall.batch(classifier, images, norm="linf", store=store, workers=0)
    bright = closecall.batch(classifier, images, norm="linf", change="brightness", store=store, workers=0)
    assert {verdict.change for verdict in plain} == {None}
    again = [*bright, *bright]
    assert {verdict.change for verdict in again} == {"brightness"}
    first = closecall.nearest(classifier, IMAGE, norm="linf", change="brightness")
    assert {verdict.distance for verdict in again if verdict.image.flat[0] == IMAGE.flat[0]} == {
        first.distance
    }
    assert {measure_of(row) for row in [*plain.table(), *bright.table()]} == {"linf", "brightness"}
    export(bright.table(), tmp_path / "rows.csv")
    export(bright.table(), tmp_path / "rows.jsonl")
    kept = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["amounts"]["brightness"] for row in kept} == {v.amounts["brightness"] for v in again}


def test_a_radius_in_a_batch_is_not_that_of_a_box() -> None:
    """Bounds of many images at once know boxes of pixels only."""
    images, classifier = np.stack([IMAGE]), classifier_of(1)
    found = closecall.nearest(classifier, IMAGE, change="brightness").distance
    for share, outcome in ((0.9, "robust"), (1.1, "adversarial")):
        (verdict,) = closecall.batch(
            classifier, images, task="certify", radius=share * found, change="brightness", workers=0
        )
        assert verdict.outcome == outcome


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"change": "hue"}, "unknown change 'hue': choose one of brightness, contrast, brightness.contrast"),
        ({"change": 3}, "unknown change '3'"),
        ({"change": "contrast", "norm": "l0"}, "give the norm l1, l2 or linf, not l0"),
        ({"change": "contrast", "cap": 0.1}, "leave out the cap beside it"),
        ({"change": "contrast", "also": "linf:0.1"}, "leave out the also beside it"),
        ({"change": "contrast", "patch": 2}, "leave out the patch beside it"),
        ({"change": "contrast", "costs": closecall.Costs(unit=1.0)}, "which a change is measured by"),
    ],
)
def test_what_cannot_be_meant(asked: dict, words: str) -> None:
    with pytest.raises(closecall.QueryError, match=words):
        closecall.nearest(classifier_of(0), IMAGE, **asked)


def test_what_no_change_does_is_said_so() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 2)).eval()
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.copy_(torch.tensor([1.0, 0.0]))
    verdict = closecall.nearest(model, IMAGE, change="brightness+contrast")
    assert verdict.outcome == "robust"
    said = "no brightness from -1 to +1 with contrast from -1 to +9 changes the verdict"
    assert said in verdict.summary()
    already = closecall.nearest(model, IMAGE, 1, change="brightness")
    assert (already.distance, already.amounts) == (0.0, {"brightness": 0.0})
