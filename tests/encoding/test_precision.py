"""What a solver may be off by, followed through the network, and when its word is not taken for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import closecall
from closecall.bounds import interval_bounds
from closecall.encoding.precision import TOLERANCE, is_trustworthy, score_errors
from closecall.network.layers import Affine, Maximum, Relu
from closecall.question.question import Question
from closecall.readers import read

PIXELS = 9


def dense() -> nn.Module:
    layers = nn.Flatten(), nn.Linear(PIXELS, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)
    return nn.Sequential(*layers)


def pooled() -> nn.Module:
    layers = nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 3)
    return nn.Sequential(*layers)


@pytest.mark.parametrize("make", [dense, pooled])
@pytest.mark.parametrize("seed", range(4))
def test_no_rows_missed_by_the_tolerance_move_a_score_further(make: type, seed: int) -> None:
    torch.manual_seed(seed)
    network = read(make().eval(), (1, 3, 3)).network
    question = Question(np.full(PIXELS, 0.5), 0, 3, norm="linf")
    bounds = interval_bounds(network, question.domain())
    allowed, generator = score_errors(network, bounds), np.random.default_rng(seed)
    most = np.zeros(3)
    for _ in range(300):
        image = generator.random(PIXELS)
        exact, off = [image], [image + TOLERANCE * generator.choice([-1.0, 1.0], PIXELS)]
        for node_id, node in enumerate(network.nodes, start=1):
            exact.append(node.layer.forward(*(exact[source][None] for source in node.inputs))[0])
            value = node.layer.forward(*(off[source][None] for source in node.inputs))[0]
            if isinstance(node.layer, (Relu, Maximum)):
                value = value + TOLERANCE * generator.choice([-1.0, 1.0], len(value))
                value = np.where(bounds.upper[node_id] <= 0, 0.0, value)
            off.append(value)
        most = np.maximum(most, np.abs(off[-1] - exact[-1]))
    assert (most <= allowed + 1e-14).all()
    assert (most > allowed / 100).all()


@pytest.mark.parametrize("steep", [1.0, 2.0**24])
def test_a_solver_is_trusted_only_where_its_tolerance_is_small_beside_the_scores(steep: float) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)).eval()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[1.0, 1, 1, 1], [-1, -1, -1, -1]]))
        model[1].bias.copy_(torch.tensor([-2.5, 2.5]))
        model[3].weight.copy_(steep * torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
        model[3].bias.copy_(torch.tensor([0.0, -1.0]))
    network = read(model, (1, 2, 2)).network
    image = np.full(4, 0.625)
    question = Question(image, 0, 2, norm="linf")
    bounds = interval_bounds(network, question.domain())
    trusted = is_trustworthy(network, question.domain(), question.goal().cases, bounds)
    assert trusted == (steep == 1.0)
    said = closecall.nearest(model, image.reshape(1, 2, 2), norm="linf", method="milp-basic", time_limit=10)
    told = any("nothing that the solver says of distances is claimed" in note for note in said.notes)
    assert told != trusted
    assert (said.lower_bound > 0) == trusted


def test_affine_layers_pass_errors_on_by_their_weights() -> None:
    network = read(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).eval(), (1, 2, 2)).network
    weight = network.nodes[0].layer
    assert isinstance(weight, Affine)
    domain = Question(np.full(4, 0.5), 0, 2).domain()
    expected = TOLERANCE * np.abs(weight.forward(np.eye(4)) - weight.forward(np.zeros((1, 4)))).sum(axis=0)
    assert np.allclose(score_errors(network, interval_bounds(network, domain)), expected)
