"""With the input fixed a MILP has one solution, the forward pass; forms and solvers agree on optima."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from closecall.bounds import interval_bounds, linear_bounds
from closecall.encoding.encode import Costs, Form, NetworkRows, encode, encode_box, encode_network
from closecall.milp import Limits, Solution, violation
from closecall.milp.builder import Expression
from closecall.models import CNN, DNN, Block
from closecall.network import Network
from closecall.network.layers import Relu
from closecall.question.domain import Domain
from closecall.question.norms import norm_named
from closecall.question.question import Question
from closecall.readers import read
from closecall.solvers import available, solve

torch.set_num_threads(1)

FORMS: tuple[Form, ...] = ("paper", "tight")
EXACT = 1e-6


class Residual(nn.Module):
    """A dense layer, a skip over two more, and a join of both ends."""

    input_shape = (1, 2, 3)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(6, width), nn.Linear(width + 6, 3)
        self.inner, self.outer = nn.Linear(width, 3), nn.Linear(3, width)

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.flatten(1)
        entered = torch.relu(self.enter(pixels))
        added = torch.relu(entered + self.outer(torch.relu(self.inner(entered))))
        return self.leave(torch.cat([added, pixels], dim=1))


class PooledFirst(nn.Module):
    """Pooling before the ReLU, with windows that may overlap and reach into the padding."""

    def __init__(self, shape: tuple[int, int, int], window: int, step: int, padding: int) -> None:
        super().__init__()
        self.input_shape = shape
        self.features = nn.Sequential(
            nn.Conv2d(shape[0], 2, 2), nn.MaxPool2d(window, step, padding), nn.ReLU(), nn.Flatten()
        )
        with torch.no_grad():
            width = self.features(torch.zeros(1, *shape)).shape[1]
        self.scores = nn.Linear(width, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.scores(self.features(images))


@st.composite
def models(draw: st.DrawFn) -> nn.Module:
    """A random DNN, CNN of either convolution, pooling-first network or residual network, in eval mode."""
    torch.manual_seed(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["dnn", "standard", "paper", "pooled first", "residual"]))
    channels, height, width = draw(st.integers(1, 2)), draw(st.integers(4, 5)), draw(st.integers(4, 6))
    model: nn.Module
    if kind == "dnn":
        sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
        outputs = draw(st.sampled_from(["logits", "relu"]))
        model = DNN(sizes, (channels, 2, 2), 3, bias=draw(st.booleans()), outputs=outputs)
    elif kind == "pooled first":
        window = draw(st.integers(2, 3))
        step, padding = draw(st.integers(1, window)), draw(st.integers(0, 1))
        model = PooledFirst((channels, height, width), window, step, padding)
    elif kind == "residual":
        model = Residual(draw(st.integers(1, 5)))
    else:
        block = Block(
            kernels=draw(st.integers(1, 2)),
            size=draw(st.integers(1, 3)),
            stride=draw(st.integers(1, 2)),
            padding=draw(st.integers(0, 1)),
            pool=2,
            pool_stride=draw(st.integers(1, 2)),
        )
        shape = (channels, height + 2, width + 2)
        model = CNN([block], [3], shape, 3, convolution=kind, strict=False)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_(std=0.3)
    return model.eval()


def whole_box(network: Network) -> Domain:
    size = network.input_size
    return Domain(np.full(size, 0.5), np.zeros(size), np.ones(size), norm_named("l1"))


def pushed(rows: NetworkRows, expressions: Expression, costs: np.ndarray, solver: str = "highs") -> Solution:
    """Minimise costs·expressions over the rows."""
    objective = np.zeros(rows.builder.width)
    total = expressions.mapped(costs[None])
    objective[total.matrix.indices] = total.matrix.data
    return solve(rows.builder.build(objective), solver, Limits(30.0))


def in_float64(model: nn.Module, image: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return copy.deepcopy(model).double()(torch.from_numpy(image[None])).numpy().ravel()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models(), st.sampled_from(FORMS), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_with_the_input_fixed_the_only_solution_is_the_forward_pass(
    model: nn.Module, form: Form, simplified: bool, linear: bool, seed: int
) -> None:
    """The bounds are those of the whole box, so that every binary is still there to be decided."""
    network = read(model).network
    network = network.simplified() if simplified else network
    domain = whole_box(network)
    bounds = (linear_bounds if linear else interval_bounds)(network, domain)
    generator = np.random.default_rng(seed)
    image = generator.random(network.input_shape)
    costs = generator.normal(size=network.classes)
    expected = in_float64(model, image)
    for side in (1.0, -1.0):
        rows = encode_network(network, domain, bounds, form)
        rows.builder.add_rows(rows.pixels, image.ravel(), image.ravel())
        solution = pushed(rows, rows.scores, side * costs)
        assert solution.status == "optimal"
        assert solution.values is not None
        np.testing.assert_allclose(rows.pixels.at(solution.values), image.ravel(), atol=EXACT)
        np.testing.assert_allclose(rows.scores.at(solution.values), expected, atol=EXACT)
        for value, truth in zip(rows.values, network.values(image[None]), strict=True):
            np.testing.assert_allclose(value.at(solution.values), truth[0], atol=EXACT)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lowest", [-4e-11, -1e-13, -1e-8])
def test_a_unit_that_is_all_but_active_does_not_make_a_model_infeasible(form: Form, lowest: float) -> None:
    """Outward rounding leaves such a unit open, with a big-M that a solver cannot tell from zero."""
    torch.manual_seed(304)
    network = read(DNN([4], (2, 2, 2), 3, bias=False).eval()).network
    domain = whole_box(network)
    bounds = interval_bounds(network, domain)
    assert -1e-9 < bounds.lower[1][3] < 0
    bounds.lower[1][3] = lowest
    image = np.random.default_rng(1245).random(8)
    rows = encode_network(network, domain, bounds, form)
    rows.builder.add_rows(rows.pixels, image, image)
    solution = pushed(rows, rows.scores, np.array([0.7, -0.4, 0.1]))
    assert solution.values is not None
    np.testing.assert_allclose(rows.scores.at(solution.values), network.forward(image[None])[0], atol=EXACT)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l0"])
@pytest.mark.parametrize("form", FORMS)
def test_a_domain_of_one_point_gives_the_forward_pass(norm: str, form: Form) -> None:
    torch.manual_seed(0)
    model = CNN(["2x2/2s1"], [4], (1, 5, 5), 3, strict=False).eval()
    network = read(model).network
    image = np.random.default_rng(0).random(25)
    domain = Domain(image, image, image, norm_named(norm))
    rows = encode_network(network, domain, linear_bounds(network, domain), form)
    solution = pushed(rows, rows.scores, np.array([1.0, -2.0, 0.5]))
    assert solution.values is not None
    expected = in_float64(model, image.reshape(1, 5, 5))
    np.testing.assert_allclose(rows.scores.at(solution.values), expected, atol=EXACT)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models(), st.integers(0, 10**6))
def test_both_forms_and_both_networks_have_the_same_optimum(model: nn.Module, seed: int) -> None:
    """Over a small box around a random image, so that the solver needs no tree to speak of."""
    generator = np.random.default_rng(seed)
    network = read(model).network
    centre = generator.random(network.input_size)
    domain = Domain(centre, centre - 0.05, centre + 0.05, norm_named("linf"))
    costs = generator.normal(size=network.classes)
    optima = []
    for graph in (network, network.simplified()):
        for form in FORMS:
            rows = encode_network(graph, domain, linear_bounds(graph, domain), form)
            optima.append(pushed(rows, rows.scores, costs).objective)
            optima[-1] += float(costs @ rows.scores.constant)
    np.testing.assert_allclose(optima, optima[0], atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", ["l1", "linf", "l2", "l0"])
def test_all_solvers_agree_on_the_nearest_image(norm: str, form: Form) -> None:
    torch.manual_seed(2)
    network = read(DNN([5, 4], (1, 1, 4), 3).eval()).network
    image = np.array([0.2, 0.9, 0.5, 0.4])
    label = int(network.forward(image[None])[0].argmax())
    query = Question(image, label, 3, norm=norm, margin=0.01)
    domain = query.domain()
    encoding = encode(network, domain, query.goal(), linear_bounds(network, domain), form)
    found = {name: solve(encoding.milp, name, Limits(30.0)) for name in available()}
    assert len(found) >= 2
    for solution in found.values():
        assert solution.status == "optimal"
        assert solution.values is not None
        assert violation(encoding.milp, solution.values) < 1e-5
        assert solution.objective == pytest.approx(found["highs"].objective, abs=1e-5)
        pixels = encoding.pixels.at(solution.values)
        assert domain.distance(pixels) == pytest.approx(encoding.distance(solution.objective), abs=1e-4)
        assert query.goal().slack(network.forward(pixels[None]))[0] > -1e-5


def test_the_papers_costs_are_what_the_objective_counts() -> None:
    """Σ unit·x + Σ inactive·[off] − wanted·y_t, computed again from the network's own values."""
    torch.manual_seed(4)
    network = read(DNN([4, 3], (1, 1, 3), 3).eval()).network
    image = np.array([0.3, 0.6, 0.9])
    label = int(network.forward(image[None])[0].argmax())
    query = Question(image, label, 3, target=(label + 1) % 3)
    domain, costs = query.domain(), Costs(unit=0.3, inactive=0.2, wanted_class=0.1)
    encoding = encode(network, domain, query.goal(), interval_bounds(network, domain), "paper", costs)
    solution = solve(encoding.milp, "highs", Limits(30.0))
    assert solution.values is not None
    pixels = encoding.pixels.at(solution.values)
    values = network.values(pixels[None])
    hidden = [index for index, node in enumerate(network.nodes, 1) if isinstance(node.layer, Relu)]
    active = sum(values[index].sum() for index in hidden)
    # A unit at exactly zero may be called active, which is the cheaper of the two.
    off = sum(int((values[index - 1] < -1e-6).sum()) for index in hidden)
    score = values[-1][0][(label + 1) % 3]
    constant = -0.1 * encoding.scores.constant[(label + 1) % 3]
    assert off > 0
    assert solution.objective + constant == pytest.approx(
        domain.distance(pixels) + 0.3 * active + 0.2 * off - 0.1 * score, abs=1e-5
    )


def test_a_large_model_stays_sparse() -> None:
    """Each unit has a handful of entries beside those of its own kernel."""
    torch.manual_seed(0)
    network = read(CNN(["8x5/2"], [32], (1, 28, 28), 10).eval()).network
    assert network.units > 5000
    domain = whole_box(network)
    bounds = interval_bounds(network, domain)
    rows = encode_network(network, domain, bounds, "paper")
    milp = rows.builder.build(np.zeros(rows.builder.width))
    convolution, pools, dense = 8 * 24 * 24, 8 * 12 * 12, 32
    most = convolution * (2 * 25 + 6) + pools * 4 * 6 + dense * (pools + 6) + 2 * 784
    assert milp.matrix.nnz < most
    assert milp.columns < 3 * convolution + 5 * pools + 3 * dense + 2 * 784 + 20


@pytest.mark.parametrize("solver", available())
@pytest.mark.parametrize("seed", range(3))
def test_a_box_holds_a_case_from_its_distance_on(seed: int, solver: str) -> None:
    torch.manual_seed(seed)
    network = read(Residual(4).eval()).network.simplified()
    image = np.random.default_rng(seed).random(6)
    label = int(network.forward(image[None])[0].argmax())
    question = Question(image, label, 3, norm="linf")
    whole, goal = question.domain(), question.goal()
    distance = solve(encode(network, whole, goal, linear_bounds(network, whole)).milp, "highs").objective
    for share in (0.99, 1.01):
        domain, leads = whole.within(share * distance), []
        for case in goal.cases:
            encoding, cutoff = encode_box(network, domain, case, linear_bounds(network, domain))
            said = solve(encoding.milp, solver)
            leads.append(cutoff - said.bound)
            reached = case.slack(network.forward(encoding.pixels.at(said.values)[None]))[0]
            assert reached == pytest.approx(leads[-1], abs=EXACT)
        assert (max(leads) > 0) == (share > 1)
