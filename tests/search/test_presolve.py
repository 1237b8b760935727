"""A folded network is the network, within its domain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import closecall
from closecall.bounds import linear_bounds
from closecall.data import load_dataset
from closecall.network import Network
from closecall.network.layers import Affine, Maximum
from closecall.question.question import Question
from closecall.readers import read
from closecall.search.presolve import fold, lowered, presolve

SHAPE = (1, 8, 8)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.inner = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.last = nn.Linear(3 * 16, 4)

    def forward(self, images: Tensor) -> Tensor:
        values = torch.relu(self.first(images))
        values = torch.relu(values + self.inner(values))
        return self.last(nn.functional.max_pool2d(values, 2).flatten(1))


MODELS = {
    "dense": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 20), nn.ReLU(), nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 4)
    ),
    "pooled": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Conv2d(4, 6, 2), nn.MaxPool2d(2),
        nn.ReLU(), nn.Flatten(), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4),
    ),
    "residual": Residual,
}  # fmt: skip


def network_of(kind: str, seed: int) -> Network:
    torch.manual_seed(seed)
    return read(MODELS[kind]().eval(), SHAPE).network.simplified()


def images_in(question: Question, generator: np.random.Generator) -> np.ndarray:
    """Images of the domain, some of them on its rim."""
    domain = question.domain()
    directions = generator.normal(size=(200, 64))
    shares = np.minimum(1.0, generator.random((200, 1)) * 1.5)
    return domain.clip(domain.centre + shares * domain.furthest(directions))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.02), ("linf", 0.2), ("l1", 0.5), ("l2", 0.2)])
@pytest.mark.parametrize("seed", range(2))
def test_scores_and_open_units_are_the_networks_own(kind: str, norm: str, radius: float, seed: int) -> None:
    network = network_of(kind, seed)
    generator = np.random.default_rng(seed)
    image = generator.random(64)
    question = Question(image, 0, 4, norm=norm, radius=radius)
    domain = question.domain()
    bounds = linear_bounds(network, domain)
    folded = fold(network, domain, question.goal(), bounds)
    assert folded.open_units == bounds.undecided(network)
    images = images_in(question, generator)
    np.testing.assert_allclose(folded.network.forward(images), network.forward(images), rtol=0, atol=1e-9)
    for low, high, values in zip(
        folded.bounds.lower, folded.bounds.upper, folded.network.values(images), strict=True
    ):
        assert (values >= low).all()
        assert (values <= high).all()
    for case, lower in zip(question.goal().cases, folded.goal.cases, strict=True):
        assert (lower.threshold < case.threshold).all()
        np.testing.assert_allclose(lower.threshold, case.threshold, rtol=0, atol=1e-8)


def test_a_network_without_open_units_is_one_affine_map() -> None:
    network = network_of("dense", 0)
    question = Question(np.full(64, 0.5), 0, 4, norm="linf", radius=1e-6)
    folded = fold(network, question.domain(), question.goal(), linear_bounds(network, question.domain()))
    assert [type(node.layer) for node in folded.network.nodes] == [Affine]
    assert folded.network.nodes[0].inputs == (0,)


def test_scores_that_no_pixel_moves() -> None:
    """All units are off: the scores are constants."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.ReLU(), nn.Linear(3, 4)).eval()
    with torch.no_grad():
        model[1].bias.fill_(-100.0)
    network = read(model, SHAPE).network
    question = Question(np.full(64, 0.5), 0, 4, norm="linf", radius=0.1)
    folded = fold(network, question.domain(), question.goal(), linear_bounds(network, question.domain()))
    images = np.full((1, 64), 0.5)
    np.testing.assert_allclose(folded.network.forward(images), network.forward(images))


def test_what_would_grow_by_folding_stays_as_it_is() -> None:
    """Two layers of open units, each of which would read all pixels."""
    network = network_of("dense", 0)
    question = Question(np.full(64, 0.5), 0, 4, norm="linf", radius=0.5)
    bounds = linear_bounds(network, question.domain())
    presolved = presolve(network, question.domain(), question.goal(), bounds)
    assert presolved.network is network
    assert presolved.open_units == bounds.undecided(network)


def test_no_time_to_fold() -> None:
    network = network_of("pooled", 0)
    question = Question(np.full(64, 0.5), 0, 4, norm="linf", radius=1e-3)
    bounds = linear_bounds(network, question.domain())
    given = network, question.domain(), question.goal(), bounds
    assert presolve(*given).network is not network
    assert presolve(*given, until=0.0).network is network


def exact_scores(network: Network, image: np.ndarray) -> list[Fraction]:
    """The scores in rational arithmetic, without any rounding."""
    values = [[Fraction(pixel) for pixel in image.tolist()]]
    for node in network.nodes:
        inputs = [values[source] for source in node.inputs]
        if isinstance(node.layer, Affine):
            found = [Fraction(offset) for offset in node.layer.bias.tolist()]
            for weight, read_from in zip(node.layer.weights, inputs, strict=True):
                rows = (weight if isinstance(weight, np.ndarray) else weight.toarray()).tolist()
                for index, row in enumerate(rows):
                    found[index] += sum(
                        (
                            Fraction(factor) * value
                            for factor, value in zip(row, read_from, strict=True)
                            if factor
                        ),
                        Fraction(0),
                    )
        elif isinstance(node.layer, Maximum):
            found = [max(inputs[0][entry] for entry in window if entry >= 0) for window in node.layer.windows]
        else:
            found = [max(value, Fraction(0)) for value in inputs[0]]
        values.append(found)
    return values[-1]


@pytest.mark.parametrize("kind", MODELS)
def test_folding_rounds_by_no_more_than_thresholds_are_lowered(kind: str) -> None:
    network = network_of(kind, 3)
    generator = np.random.default_rng(3)
    question = Question(generator.random(64), 0, 4, norm="linf", radius=0.05)
    domain, goal = question.domain(), question.goal()
    folded = fold(network, domain, goal, linear_bounds(network, domain))
    for image in images_in(question, generator)[:3]:
        before, after = exact_scores(network, image), exact_scores(folded.network, image)
        assert before != after, "no rounding was seen at all"
        for case, lower in zip(goal.cases, folded.goal.cases, strict=True):
            allowed = (case.threshold - lower.threshold).tolist()
            for row, most in zip(case.matrix.tolist(), allowed, strict=True):
                moved = sum(
                    (Fraction(c) * (a - b) for c, a, b in zip(row, before, after, strict=True)), Fraction(0)
                )
                assert abs(moved) <= Fraction(most)


def test_what_folding_would_lower_below_the_tolerance_stays_as_it_is() -> None:
    """Large terms that cancel: the folded goal would be reached by images that reach nothing."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 4)).eval()
    with torch.no_grad():
        model[1].bias.fill_(1e4)
        model[3].weight.mul_(1e3)
    network = read(model, SHAPE).network.simplified()
    question = Question(np.full(64, 0.5), 0, 4, norm="linf", radius=1e-3)
    given = network, question.domain(), question.goal(), linear_bounds(network, question.domain())
    assert lowered(question.goal(), fold(*given).goal) > question.goal().tolerance
    assert presolve(*given).network is network


def test_a_nearest_image_that_folding_once_lost() -> None:
    """Six dense layers: their thresholds were lowered so far that no image of the tree's passed for one."""
    test = load_dataset("mnist", "test")
    label = int(test.labels[2])
    verdict = closecall.nearest(
        "zoo:mnist-dnn2", test.image(2), label, norm="l1", target=(label + 5) % 10, time_limit=60
    )
    assert verdict.outcome == "nearest"
    assert verdict.distance == pytest.approx(1.9147, abs=1e-4)
