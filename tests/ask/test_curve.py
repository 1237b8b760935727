"""The worst margin by radius, against all patterns of ReLUs, grids and the search for the nearest image."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

import closecall
from closecall.question.norms import norm_named
from closecall.readers import Classifier, read
from closecall.verdict.curve_picture import curve_figure
from closecall.verdict.saved import save_curve

SHAPE = (1, 2, 2)
IMAGE = np.random.default_rng(4).integers(32, 225, SHAPE) / 256
RADII = (0.05, 0.1, 0.2, 0.35)


def network(seed: int, inputs: int = 4, classes: int = 3) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 5), nn.ReLU(), nn.Linear(5, classes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=1.5)
    return model


def classifier_of(seed: int) -> Classifier:
    return read(network(seed), SHAPE)


def worst(model: nn.Sequential, cases: list[np.ndarray], norm: str, radius: float) -> float:
    """The least over all cases of the largest of their rows, one linear program for each pattern of ReLUs."""
    first, last = (model[k].weight.detach().double().numpy() for k in (1, 3))
    bias, out = (model[k].bias.detach().double().numpy() for k in (1, 3))
    image, size, found = IMAGE.ravel(), 4, np.inf
    for pattern in product((0.0, 1.0), repeat=len(bias)):
        on = np.array(pattern)
        sign = 1 - 2 * on
        linear = last @ (on[:, None] * first)
        constant = last @ (on * bias) + out
        # Columns: the pixels, how far each has moved, and the largest row.
        phases = np.hstack([sign[:, None] * first, np.zeros((len(bias), size + 1))])
        moved = [np.hstack([s * np.eye(size), -np.eye(size), np.zeros((size, 1))]) for s in (1, -1)]
        length = np.concatenate([np.zeros(size), np.ones(size), [0.0]])[None]
        for rows in cases:
            value = np.hstack([rows @ linear, np.zeros((len(rows), size)), -np.ones((len(rows), 1))])
            most = radius if norm == "linf" else np.inf
            solved = linprog(
                np.eye(2 * size + 1)[-1],
                A_ub=np.vstack([phases, *moved, length, value]),
                b_ub=np.concatenate(
                    [-sign * bias, image, -image, [radius if norm == "l1" else 1e9], -rows @ constant]
                ),
                bounds=[(0, 1)] * size + [(0, most)] * size + [(None, None)],
            )
            found = min(found, solved.fun if solved.status == 0 else np.inf)
    return found


def rows_for(label: int, target: object) -> list[np.ndarray]:
    """What has to be small for the verdict to change."""
    unit = np.eye(3)
    if target == "any":
        return [(unit[label] - unit[j])[None] for j in range(3) if j != label]
    return [np.array([unit[j] - unit[target] for j in range(3) if j != target])]


@pytest.mark.parametrize("norm", ["linf", "l1"])
@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("targeted", [False, True])
def test_against_all_patterns(norm: str, seed: int, targeted: bool) -> None:
    model = network(seed)
    label = classifier_of(seed).predict(IMAGE)
    target = (label + 1) % 3 if targeted else "any"
    curve = closecall.curve(model, IMAGE, norm=norm, radii=RADII, target=target, gap=0.001)
    assert curve.outcome == "closed"
    assert [point.radius for point in curve.points] == [0.0, *RADII]
    truth = [worst(model, rows_for(label, target), norm, radius) for radius in RADII]
    allowed = 0.001 * max(abs(point.upper) for point in curve.points) + 1e-6
    for point, value in zip(curve.points[1:], truth, strict=True):
        assert point.lower <= value + 1e-6
        assert point.upper >= value - 1e-6
        assert point.upper - point.lower <= allowed
    assert truth[0] > truth[-1]


@pytest.mark.parametrize("norm", ["l2", "l0"])
def test_against_a_grid(norm: str) -> None:
    model = network(3, inputs=2)
    image = np.array([[[0.5, 0.625]]])
    radii = (1, 2) if norm == "l0" else (0.1, 0.2, 0.4)
    curve = closecall.curve(read(model, (1, 1, 2)), image, norm=norm, radii=radii, gap=0.002)
    line = np.union1d(np.linspace(0, 1, 801), image)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    with torch.no_grad():
        scores = model.double()(torch.from_numpy(grid)).numpy()
    label = curve.question.label
    margins = scores[:, label] - np.delete(scores, label, axis=1).max(axis=1)
    lengths = norm_named(norm).distance(grid - image.ravel())
    for point in curve.points[1:]:
        least = margins[lengths <= point.radius].min()
        assert point.lower <= least
        assert point.upper <= least + 0.002 * np.abs(margins).max() + 1e-6


@pytest.fixture(scope="module")
def curve() -> closecall.Curve:
    return closecall.curve(classifier_of(3), IMAGE, points=8)


def test_both_sides_fall_and_the_images_are_what_is_said(curve) -> None:
    classifier = classifier_of(3)
    for one, other in zip(curve.points, curve.points[1:], strict=False):
        assert one.radius < other.radius
        assert one.lower >= other.lower
        assert one.upper >= other.upper
    for point, image in zip(curve.points, curve.images, strict=True):
        assert image.dtype == np.float32
        assert image.min() >= 0
        assert image.max() <= 1
        assert np.abs(image.astype(np.float64) - curve.image).max() == point.distance <= point.radius
        scores = classifier.network.forward(image[None].astype(np.float64))[0]
        label = curve.question.label
        assert point.upper == scores[label] - np.delete(scores, label).max()
        assert point.predicted == classifier.predict(image)
        assert point.changes == (point.predicted != label)
    assert any(point.changes for point in curve.points)
    assert curve.margin == curve.points[0].lower > 0


def test_it_crosses_zero_at_the_nearest_image(curve) -> None:
    verdict = closecall.nearest(classifier_of(3), IMAGE, norm="linf")
    low, high = curve.nearest
    assert low <= verdict.distance * (1 + 1e-6)
    assert high >= verdict.lower_bound
    assert (curve.safe, curve.lost) == pytest.approx((verdict.distance, verdict.distance), rel=0.01)
    assert f"proven to hold up to {curve.safe:.6g}, an image changes it at {curve.lost:.6g}" in str(curve)


def test_what_is_saved(curve, tmp_path: Path) -> None:
    save_curve(curve, {**curve.to_json(), "model": "m"}, tmp_path, class_names=("a", "b", "c"))
    record = json.loads((tmp_path / "curve.json").read_text())
    assert [point["radius"] for point in record["points"]] == [point.radius for point in curve.points]
    np.testing.assert_array_equal(np.load(tmp_path / record["images"]), np.stack(curve.images))
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    chart = next(axes for axes in curve_figure(curve, ("a", "b", "c")).axes if axes.get_xlabel())
    assert chart.get_xlabel() == "L∞ radius"
    drawn = {line.get_label(): line.get_ydata() for line in chart.lines}
    np.testing.assert_array_equal(drawn["proven"], [point.lower for point in curve.points])
    np.testing.assert_array_equal(drawn["found"], [point.upper for point in curve.points])


def test_of_brightness() -> None:
    """Against the brightest and darkest of a fine line of images."""
    model = network(2)
    curve = closecall.curve(model, IMAGE, change="brightness", radii=(0.1, 0.3, 0.6), gap=0.001)
    line = np.linspace(-0.6, 0.6, 4001)
    images = np.clip(IMAGE.reshape(1, -1) + line[:, None], 0, 1)
    with torch.no_grad():
        scores = model.double()(torch.from_numpy(images)).numpy()
    margins = scores[:, curve.question.label] - np.delete(scores, curve.question.label, axis=1).max(axis=1)
    assert curve.outcome == "closed"
    for point in curve.points[1:]:
        least = margins[np.abs(line) <= point.radius].min()
        assert point.lower <= least
        assert point.upper == pytest.approx(least, abs=0.002 * np.abs(margins).max())


def test_a_mask_and_a_cap_are_heeded() -> None:
    allowed = np.array([[[True, False], [False, True]]])
    free = closecall.curve(classifier_of(3), IMAGE, radii=[0.4])
    bound = closecall.curve(classifier_of(3), IMAGE, radii=[0.4], mask=allowed, cap=0.2)
    assert not (bound.images[-1] != bound.image)[~allowed].any()
    assert np.abs(bound.images[-1] - bound.image).max() <= 0.2 + 1e-7
    assert bound.points[-1].lower > free.points[-1].upper


def test_time_that_is_over_leaves_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("closecall.ask.margins.Margins.decide", lambda *_: pytest.fail("no time was left"))
    curve = closecall.curve(classifier_of(3), IMAGE, points=3, time_limit=1e-9)
    assert curve.outcome == "open"
    assert all(point.lower <= point.upper for point in curve.points)


def test_ctrl_c_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("closecall.ask.margins.Margins.narrow", interrupt)
    curve = closecall.curve(classifier_of(3), IMAGE, points=4)
    assert curve.notes[-1].startswith("interrupted: the curve holds as far as it was proven")
    assert np.isfinite([point.lower for point in curve.points]).all()


def test_progress_is_told() -> None:
    told = []
    closecall.curve(classifier_of(0), IMAGE, points=3, on_progress=lambda *args: told.append(args))
    assert told[-1][:2] == (3, 3)
    assert told[0][0] == 0


def test_an_image_that_is_misread_already() -> None:
    wrong = (classifier_of(3).predict(IMAGE) + 1) % 3
    curve = closecall.curve(classifier_of(3), IMAGE, wrong, points=2)
    assert curve.margin < 0
    assert curve.nearest is None
    assert "the verdict is another one from the beginning" in str(curve)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"radii": []}, "a curve has 1 to 1,000 radii, got 0"),
        ({"radii": [0.1, -0.1]}, "the radii must be positive and finite, got -0.1 to 0.1"),
        ({"radii": [np.inf]}, "the radii must be positive and finite"),
        ({"radii": ["far"]}, "radius must be a number"),
        ({"radii": [0.1], "radius": 0.1}, "the largest radius or all radii, not both"),
        ({"radius": 0}, "the radius must be positive"),
        ({"points": 0}, "a curve has 1 to 1,000 points, got 0"),
        ({"points": 1.5}, "number of points"),
        ({"patch": 2}, "a curve has no patch: leave it out"),
        ({"confidence": 0.9}, "a curve has no confidence: leave it out"),
        ({"pixels": "8bit"}, "a curve has no pixels: leave it out"),
        ({"norm": "l3"}, "unknown norm 'l3'"),
    ],
)
def test_what_cannot_be_meant(asked: dict, words: str) -> None:
    with pytest.raises(closecall.QueryError, match=words):
        closecall.curve(classifier_of(0), IMAGE, **asked)
