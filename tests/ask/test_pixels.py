"""Images of 8 bits: the nearest against every image there is, and against a file that is read again."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import nn

import closecall
from closecall import data
from closecall.ask.export import export_milp
from closecall.clock import Clock
from closecall.models import load_model
from closecall.question.domain import Domain
from closecall.question.levels import levels_of
from closecall.question.norms import norm_named
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.methods import search
from closecall.search.problem import Finding, Problem
from closecall.verdict.checking import check_verdict
from closecall.verdict.saved import load_verdict, save_verdict

NORMS = ("l1", "l2", "linf", "l0")
COARSE = np.linspace(0, 1, 6).astype(np.float32).astype(np.float64)


def network(seed: int, inputs: int, scale: float = 1.0) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU())
    model.append(nn.Linear(6, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=scale)
    return model.eval()


def every_image(levels: np.ndarray, pixels: int) -> np.ndarray:
    return np.array(list(itertools.product(levels, repeat=pixels)))


def coarse_search(seed: int, norm: str, *, on_levels: bool, **limits: float) -> tuple[Finding, Domain, float]:
    """A search for images of six levels, and the distance of the nearest of all 7,776 of them."""
    generator = np.random.default_rng(seed)
    classifier = read(network(seed, 5), (1, 1, 5))
    centre = COARSE[generator.integers(0, 6, 5)] if on_levels else generator.random(5)
    centre = centre.astype(np.float32).astype(np.float64)
    label = classifier.predict(centre.reshape(1, 1, 5))
    question = Question(centre, label, 3, norm=norm, **limits)
    images = every_image(COARSE, 5)
    shifts = images - question.image
    allowed = np.abs(shifts).max(axis=1) <= limits.get("cap", 1.0) + 1e-7
    reached = question.goal().reached(classifier.network.forward(images)) & allowed
    distances = norm_named(norm).distance(shifts[reached])
    domain = question.domain().of_levels(COARSE)
    problem = Problem(classifier.network, domain, question.goal(), Clock(60))
    return search(problem, "milp" if seed % 3 == 2 else "auto"), domain, distances.min(initial=math.inf)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("on_levels", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_of_all_images_of_six_levels(norm: str, seed: int, on_levels: bool) -> None:
    cap = {"cap": 0.45} if seed % 2 else {}
    found, domain, nearest = coarse_search(seed, norm, on_levels=on_levels, **cap)
    if math.isinf(nearest):
        assert found.witness is None
        assert math.isinf(found.lower)
        return
    assert np.isin(found.witness, COARSE).all()
    assert domain.distance(found.witness) == pytest.approx(nearest, rel=2e-4)
    assert nearest * (1 - 2e-4) <= found.lower <= nearest + 1e-9


@pytest.mark.parametrize("norm", NORMS)
def test_within_a_radius(norm: str) -> None:
    """None just below the nearest distance, one at it."""
    for seed in range(2):
        _, domain, nearest = coarse_search(seed, norm, on_levels=True)
        if math.isinf(nearest):
            continue
        below, _, _ = coarse_search(seed, norm, on_levels=True, radius=nearest - 0.01)
        assert (below.witness, below.lower) == (None, math.inf)
        at, _, _ = coarse_search(seed, norm, on_levels=True, radius=nearest)
        assert domain.distance(at.witness) == pytest.approx(nearest)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("rounded", "asked"),
    [(True, {}), (False, {}), (True, {"target": 1, "also": "linf:0.2"}), (False, {"confidence": 0.8})],
)
def test_two_pixels_in_all_ways(norm: str, rounded: bool, asked: dict) -> None:
    """All 65,536 images of two pixels."""
    classifier = read(network(10, 2, 2.0), (1, 1, 2))
    image = np.array([[[0.41, 0.52]]], dtype=np.float32)
    if rounded:
        image = levels_of((0, 1))[[[[104, 133]]]].astype(np.float32)
    label = classifier.predict(image)
    verdict = closecall.nearest(classifier, image, label, norm=norm, pixels="8bit", **asked)
    images = every_image(levels_of((0, 1)), 2)
    scores = classifier.network.forward(images)
    question = verdict.question
    reached = question.goal().reached(scores)
    if "confidence" in asked:
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        reached = np.delete(shares, label, axis=1).max(axis=1) >= 0.8
    shifts = images - question.image
    if "also" in asked:
        reached &= np.abs(shifts).max(axis=1) <= 0.2
    nearest = norm_named(norm).distance(shifts[reached]).min(initial=math.inf)
    assert verdict.outcome == ("robust" if math.isinf(nearest) else "nearest")
    if verdict.outcome == "nearest":
        assert verdict.distance == pytest.approx(nearest, rel=2e-4)
        assert verdict.lower_bound <= nearest
        assert verdict.png.fools


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("on_levels", [True, False])
def test_no_distance_is_missed(norm: str, on_levels: bool) -> None:
    """What is rounded up never passes a distance that some image has; a limit keeps all that it includes."""
    levels, generator = levels_of((0, 1)), np.random.default_rng(0)
    centre = levels[generator.integers(0, 256, 40)] if on_levels else generator.random(40)
    domain = Domain(centre, np.zeros(40), np.ones(40), norm_named(norm)).of_levels(levels)
    places = np.rint(centre * 255).astype(int) + generator.integers(-9, 10, (400, 40)) * (
        generator.random((400, 40)) < generator.random((400, 1))
    )
    taken = np.sort(domain.norm.distance(levels[places.clip(0, 255)] - centre))
    values = domain.distances
    for lower in [*(taken * (1 - 1e-9)), *(taken - 1e-7), *(taken * 1.003), *generator.random(50)]:
        raised = values.at_least(float(lower))
        assert raised >= lower or raised == values.least
        assert not ((taken > lower + 1e-12) & (taken < raised - 1e-12)).any()
    for most in [*taken, *(taken * 1.001)]:
        assert values.up_to(float(most)) >= taken[taken <= most].max()
        assert values.up_to(float(most)) <= most + 1e-6 * max(1.0, most)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_hair_is_no_step(norm: str) -> None:
    """A bound that passes a distance by what solvers may be off by is not rounded up to the next."""
    levels = levels_of((0, 1))
    domain = Domain(levels[[100, 7]], np.zeros(2), np.ones(2), norm_named(norm)).of_levels(levels)
    assert domain.distances.at_least(12 / 255 + 1e-6) < 12.001 / 255
    assert domain.distances.at_least(12.1 / 255) == pytest.approx(13 / 255, abs=1e-6)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("form", ["tight", "paper"])
def test_another_solver_on_the_exported_model(norm: str, form: str) -> None:
    """The model with pixels as integers, solved by scipy."""
    model, image = network(1, 4), levels_of((0, 1))[[[[40, 90, 140, 200]]]]
    verdict = closecall.nearest(model, image, norm=norm, pixels="8bit")
    program = export_milp(model, image, norm=norm, pixels="8bit", form=form)
    assert program.integer.sum() >= 4
    answer = milp(
        program.objective,
        integrality=program.integer,
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
    )
    assert verdict.outcome == "nearest"
    assert answer.fun == pytest.approx(verdict.distance, abs=1e-5)


def test_robust_where_only_images_between_the_levels_fool_it() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2)).eval()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[0.0], [100.0]]))
        model[1].bias.copy_(torch.tensor([0.0, -100 * 10.6 / 255]))
    image = np.array([[[10 / 255]]], dtype=np.float32)
    real = closecall.certify(model, image, 0, radius=0.9 / 255)
    assert (real.outcome, real.png.fools) == ("adversarial", True)
    assert closecall.certify(model, image, 0, radius=0.9 / 255, pixels="8bit").outcome == "robust"
    step = closecall.certify(model, image, 0, radius=1 / 255, pixels="8bit")
    assert step.outcome == "adversarial"
    assert float(step.witness.item()) == np.float32(11 / 255)


def test_an_original_between_the_levels() -> None:
    """The way to the nearest level is part of the distance, also where the original is misclassified."""
    model, image = network(10, 4), np.full((1, 2, 2), 0.3, dtype=np.float32)
    label = int(read(model, (1, 2, 2)).predict(image))
    wrong = closecall.nearest(model, image, (label + 1) % 3, norm="linf", pixels="8bit")
    assert wrong.outcome == "nearest"
    assert wrong.distance == pytest.approx(abs(np.float32(0.3) - np.float32(77 / 255)), rel=1e-6)
    assert wrong.png.fools
    assert closecall.nearest(model, image, (label + 1) % 3).distance == 0
    with pytest.raises(closecall.QueryError, match="the image itself is not of 8 bits"):
        closecall.nearest(model, image, pixels="8bit", mask=np.eye(2))


@pytest.mark.parametrize("pixel_range", [(-1.0, 1.0), (0.0, 255.0), (-2.1, 2.6)])
@pytest.mark.parametrize("shape", [(3, 2, 3), (2, 3, 2)])
def test_other_ranges_and_pictures(
    tmp_path: Path, shape: tuple[int, ...], pixel_range: tuple[float, float]
) -> None:
    """Two channels are no picture, but the question has a sense all the same; what is saved holds."""
    model = network(10, math.prod(shape))
    with torch.no_grad():
        model[1].weight.mul_(2 / (pixel_range[1] - pixel_range[0]))
    steps = np.random.default_rng(1).integers(0, 256, shape)
    image = levels_of(pixel_range)[steps].astype(np.float32)
    asked = {"norm": "linf", "pixels": "8bit", "pixel_range": pixel_range}
    verdict = closecall.nearest(model, image, **asked)
    assert verdict.outcome == "nearest"
    assert verdict.png.fools is (None if shape[0] == 2 else True)
    assert "no 8-bit image is nearer" in verdict.summary()
    save_verdict(verdict, tmp_path, model="m")
    saved, classifier = load_verdict(tmp_path), read(model, shape)
    assert [check.sentence for check in check_verdict(saved, classifier) if not check.holds] == []
    forged = replace(saved, witness=np.nextafter(saved.witness, np.float32(0.1)))
    assert any("none of the 256" in check.sentence for check in check_verdict(forged, classifier))


def test_a_hundred_files_that_fool_it(tmp_path: Path) -> None:
    """Each is written, read again by Pillow and shown to torch."""
    model, dataset = load_model("zoo:mnist-dnn1").eval(), data.load_dataset("mnist", "test")
    classifier, written = read("zoo:mnist-dnn1"), 0
    for index in range(100):
        label = int(dataset.labels[index])
        verdict = closecall.certify(classifier, dataset.image(index), label, radius=0.3, pixels="8bit")
        assert verdict.outcome == "adversarial"
        assert verdict.png.fools
        steps = np.rint(verdict.witness * 255).astype(np.uint8)
        Image.fromarray(steps[0]).save(tmp_path / "fools.png")
        again = np.asarray(Image.open(tmp_path / "fools.png"), dtype=np.float32) / np.float32(255)
        np.testing.assert_array_equal(again, verdict.witness[0])
        with torch.no_grad():
            assert int(model(torch.from_numpy(again)[None, None]).argmax()) != label
        written += 1
    assert written == 100


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"pixels": "4bit"}, "pixels must be '8bit' or left out, got '4bit'"),
        ({"pixels": 8}, "pixels must be '8bit' or left out, got 8"),
        ({"pixels": "8bit", "costs": closecall.Costs(unit=1)}, "are for pixels between the 8-bit ones, too"),
        ({"pixels": "8bit", "pixel_range": (0, 1e-45)}, "float32 has no 256 numbers from 0 to"),
    ],
)
def test_what_cannot_be_meant(asked: dict, words: str) -> None:
    with pytest.raises(closecall.QueryError, match=words):
        closecall.nearest(network(0, 4), np.zeros((1, 2, 2)), **asked)
