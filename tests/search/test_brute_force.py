"""The nearest image of tiny networks, against every activation pattern tried one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from torch import Tensor, nn

from closecall.ask.nearest import certify, nearest
from closecall.network import Network
from closecall.network.layers import Affine, Maximum, Relu
from closecall.readers import Classifier, read

torch.set_num_threads(1)

CLASSES = 3
MARGIN = 0.01
RATIO = 1.2
METHODS = ("milp-basic", "milp", "auto")


class Dense(nn.Module):
    input_shape = (1, 1, 3)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, CLASSES)
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class Pooled(nn.Module):
    """Windows that overlap, over a convolution of one row of pixels."""

    input_shape = (1, 1, 3)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 2, (1, 2), padding=(0, 1)),  # (2, 1, 4)
            nn.MaxPool2d((1, 2), (1, 2)),  # (2, 1, 2)
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4, CLASSES),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


class Skipping(nn.Module):
    """A ReLU layer added to what it read."""

    input_shape = (1, 1, 2)

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(2, 4), nn.Linear(4, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        entered = self.enter(images.flatten(1))
        return self.leave(entered + torch.relu(entered))


ARCHITECTURES = {"dense": Dense, "pooled": Pooled, "skipping": Skipping}


@dataclass(frozen=True)
class Region:
    """A piece on which the network is affine: scores = slopes·x + offset where rows·x ≤ sides."""

    slopes: np.ndarray
    offset: np.ndarray
    rows: np.ndarray
    sides: np.ndarray


def regions(network: Network) -> Iterator[Region]:
    """Every sign of every ReLU and every winner of every window, possible or not."""
    choices: list[list[int]] = []
    for node in network.nodes:
        if isinstance(node.layer, Relu):
            choices += [[0, 1]] * node.layer.size
        elif isinstance(node.layer, Maximum):
            choices += [[j for j in window if j >= 0] for window in node.layer.windows.tolist()]
    for pattern in itertools.product(*choices):
        yield region_of(network, iter(pattern))


def region_of(network: Network, pattern: Iterator[int]) -> Region:
    pixels = network.input_size
    values = [(np.eye(pixels), np.zeros(pixels))]
    rows, sides = [np.zeros((0, pixels))], [np.zeros(0)]
    for node in network.nodes:
        slopes, offset = values[node.inputs[0]]
        if isinstance(node.layer, Affine):
            parts = list(zip(node.layer.weights, node.inputs, strict=True))
            values.append(
                (
                    sum(weight @ values[source][0] for weight, source in parts),
                    sum(weight @ values[source][1] for weight, source in parts) + node.layer.bias,
                )
            )
        elif isinstance(node.layer, Relu):
            signs = np.array([next(pattern) for _ in range(node.layer.size)])
            away = np.where(signs == 1, -1.0, 1.0)
            rows.append(away[:, None] * slopes)
            sides.append(-away * offset)
            values.append((signs[:, None] * slopes, signs * offset))
        else:
            assert isinstance(node.layer, Maximum)
            winners = [next(pattern) for _ in range(node.layer.size)]
            for winner, window in zip(winners, node.layer.windows.tolist(), strict=True):
                others = [j for j in window if j >= 0 and j != winner]
                rows.append(slopes[others] - slopes[winner])
                sides.append(offset[winner] - offset[others])
            values.append((slopes[winners], offset[winners]))
    return Region(*values[-1], np.vstack(rows), np.concatenate(sides))


@dataclass(frozen=True)
class Question:
    norm: str
    target: int | None
    cap: float | None
    ratio: float | None
    outputs: str

    def cases(self, label: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows C and sides d: the scores must have C·y ≥ d in one of the cases."""
        if self.target is not None:
            pairs = [(self.target, [j for j in range(CLASSES) if j != self.target])]
        else:
            pairs = [(winner, [label]) for winner in range(CLASSES) if winner != label]
        for winner, rivals in pairs:
            factor = self.ratio if self.ratio is not None and self.outputs == "relu" else 1.0
            lead = MARGIN if self.ratio is None else math.log(self.ratio)
            rows = [np.eye(CLASSES)[winner] - factor * np.eye(CLASSES)[rival] for rival in rivals]
            sides = [lead] * len(rivals)
            if factor != 1.0:
                rows, sides = [*rows, np.eye(CLASSES)[winner]], [0.0] * len(rivals) + [MARGIN]
            yield np.array(rows), np.array(sides)

    def asked(self) -> dict[str, object]:
        return {
            "target": "any" if self.target is None else self.target,
            "norm": self.norm,
            "cap": self.cap,
            "ratio": self.ratio,
            "outputs": self.outputs,
            "margin": MARGIN,
        }


def brute_force(network: Network, image: np.ndarray, label: int, question: Question) -> float:
    """The smallest distance over all regions and cases; infinity when there is none."""
    network = network.with_relu_outputs() if question.outputs == "relu" else network
    reach = math.inf if question.cap is None else question.cap
    low, high = np.maximum(0.0, image - reach) - image, np.minimum(1.0, image + reach) - image
    cases = list(question.cases(label))
    best = math.inf
    for region in regions(network):
        for matrix, least in cases:
            rows = np.vstack([region.rows, -matrix @ region.slopes])
            sides = np.concatenate([region.sides, matrix @ region.offset - least]) - rows @ image
            lowest = np.where(rows > 0, rows * low, rows * high).sum(axis=1)
            if (lowest <= sides + 1e-9).all():  # else no point of the box is in the region
                best = min(best, DISTANCES[question.norm](rows, sides, low, high))
    return best


def least_l1(rows: np.ndarray, sides: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    bounds = [(0, up) for up in high] + [(0, -down) for down in low]
    found = linprog(np.ones(2 * len(low)), A_ub=np.hstack([rows, -rows]), b_ub=sides, bounds=bounds)
    return float(found.fun) if found.status == 0 else math.inf


def least_linf(rows: np.ndarray, sides: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    size = len(low)
    each = np.hstack([np.eye(size), -np.ones((size, 1))])
    both = np.vstack([each, np.hstack([-np.eye(size), -np.ones((size, 1))])])
    found = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=np.vstack([np.hstack([rows, np.zeros((len(rows), 1))]), both]),
        b_ub=np.append(sides, np.zeros(2 * size)),
        bounds=[*zip(low, high, strict=True), (0, None)],
    )
    return float(found.fun) if found.status == 0 else math.inf


def least_l2(rows: np.ndarray, sides: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Least distance programming by non-negative least squares (Lawson & Hanson, chapter 23)."""
    size = len(low)
    over = np.vstack([-rows, np.eye(size), -np.eye(size)])
    least = np.concatenate([-sides, low, -high])
    wanted = np.append(np.zeros(size), 1.0)
    weights, missed = nnls(np.vstack([over.T, least]), wanted)
    if missed < 1e-9:
        return math.inf
    residual = np.vstack([over.T, least]) @ weights - wanted
    return float(np.linalg.norm(-residual[:-1] / residual[-1]))


def least_l0(rows: np.ndarray, sides: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    if linprog(np.zeros(len(low)), A_ub=rows, b_ub=sides, bounds=[*zip(low, high, strict=True)]).status:
        return math.inf
    for count in range(len(low) + 1):
        for moved in itertools.combinations(range(len(low)), count):
            bounds = [(low[j], high[j]) if j in moved else (0.0, 0.0) for j in range(len(low))]
            if linprog(np.zeros(len(low)), A_ub=rows, b_ub=sides, bounds=bounds).status == 0:
                return float(count)
    return math.inf


DISTANCES = {"l1": least_l1, "l2": least_l2, "linf": least_linf, "l0": least_l0}


def tiny(architecture: str, seed: int) -> tuple[Classifier, np.ndarray, int]:
    """A classifier, an image that float32 holds exactly, and what the classifier says of it."""
    torch.manual_seed(seed)
    model = ARCHITECTURES[architecture]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=1.5 if parameter.dim() > 1 else 0.5)
    image = (np.random.default_rng(seed).integers(0, 257, model.input_shape) / 256).astype(np.float64)
    classifier = read(model)
    return classifier, image, classifier.predict(image)


questions = st.builds(
    Question,
    norm=st.sampled_from(sorted(DISTANCES)),
    target=st.sampled_from([None, 1, 2]),
    cap=st.sampled_from([None, 0.3]),
    ratio=st.sampled_from([None, RATIO]),
    outputs=st.just("logits"),
)


def check(architecture: str, seed: int, question: Question) -> None:
    classifier, image, label = tiny(architecture, seed)
    if question.target is not None:
        question = Question(**{**vars(question), "target": (label + question.target) % CLASSES})
    truth = brute_force(classifier.network, image.ravel(), label, question)
    for method in METHODS:
        verdict = nearest(classifier, image, label, **question.asked(), method=method, gap=1e-6)
        if math.isinf(truth):
            assert (method, verdict.outcome) == (method, "robust")
            continue
        assert 0 <= verdict.lower_bound <= truth + 1e-6
        if question.norm == "l0":
            assert (method, verdict.distance) == (method, truth)
        else:
            assert (method, verdict.distance) == (method, pytest.approx(truth, rel=1e-5, abs=2e-6))
        assert verdict.lower_bound == pytest.approx(truth, rel=1e-4, abs=1e-5)
        assert verdict.outcome in ("nearest", "adversarial")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(ARCHITECTURES)), st.integers(0, 10**6), questions)
def test_the_optimum_is_that_of_all_activation_patterns(
    architecture: str, seed: int, question: Question
) -> None:
    check(architecture, seed, question)


@pytest.mark.parametrize("norm", sorted(DISTANCES))
@pytest.mark.parametrize("ratio", [None, RATIO])
@pytest.mark.parametrize("target", [None, 1])
def test_relu_outputs_have_the_same_optimum(norm: str, ratio: float | None, target: int | None) -> None:
    check("skipping", 5, Question(norm, target, None, ratio, "relu"))


def test_a_question_whose_optimum_the_presolve_of_highs_loses() -> None:
    check("skipping", 630706, Question("linf", 2, 0.3, None, "relu"))


@pytest.mark.parametrize("norm", sorted(DISTANCES))
@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_every_norm_on_every_architecture(architecture: str, norm: str) -> None:
    check(architecture, 11, Question(norm, None, None, None, "logits"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_certify_knows_on_which_side_of_the_optimum_a_radius_lies(norm: str, method: str) -> None:
    classifier, image, label = tiny("dense", 3)
    truth = brute_force(classifier.network, image.ravel(), label, Question(norm, None, None, None, "logits"))
    assert 0.01 < truth < 3
    for share, outcome in ((0.99, "robust"), (1.01, "adversarial")):
        verdict = certify(
            classifier, image, label, norm=norm, radius=share * truth, margin=MARGIN, method=method
        )
        assert verdict.outcome == outcome
        assert (verdict.witness is None) == (outcome == "robust")


def test_the_witness_of_the_nearest_image_reaches_the_margin() -> None:
    classifier, image, label = tiny("dense", 3)
    verdict = nearest(classifier, image, label, margin=MARGIN, gap=1e-6)
    assert verdict.witness is not None
    scores = classifier.network.forward(verdict.witness[None].astype(np.float64))[0]
    rivals = np.delete(scores, label)
    assert rivals.max() - scores[label] == pytest.approx(MARGIN, abs=1e-4)
