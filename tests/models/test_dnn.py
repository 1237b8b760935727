"""DNN against the formula in numpy, He's variances, and torch.fx."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.fx
from torch import nn

from closecall.errors import ModelError
from closecall.models import DNN, count_parameters, count_units


def by_hand(model: DNN, image: np.ndarray) -> np.ndarray:
    """xᵏ = max(0, W x + b), without the ReLU on the last layer unless the outputs have one."""
    values = image.reshape(-1)
    linears = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    for layer in linears:
        values = layer.weight.detach().numpy() @ values
        if layer.bias is not None:
            values = values + layer.bias.detach().numpy()
        if layer is not linears[-1] or model.outputs == "relu":
            values = np.maximum(values, 0)
    return values


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", ["logits", "relu"])
def test_forward_is_the_formula(bias: bool, outputs: str) -> None:
    torch.manual_seed(3)
    model = DNN((7, 5, 4), input_shape=(2, 3, 3), classes=4, bias=bias, outputs=outputs)
    for parameter in model.parameters():
        parameter.data.normal_()
    image = torch.rand(2, 3, 3)
    scores = model(image[None])[0].detach().numpy()
    np.testing.assert_allclose(scores, by_hand(model, image.numpy()), rtol=1e-5, atol=1e-5)
    assert (scores.min() >= 0) == (outputs == "relu")


def test_counts_of_fischetti_and_jo() -> None:
    model = DNN((8, 8, 8))
    assert count_parameters(model) == 784 * 8 + 8 + 2 * (8 * 8 + 8) + 8 * 10 + 10
    assert count_units(model) == 24
    assert count_units(DNN((8, 8, 8), outputs="relu")) == 34
    assert count_parameters(DNN((8, 8, 8), bias=False)) == 784 * 8 + 2 * 64 + 80


def test_he_initialisation() -> None:
    torch.manual_seed(0)
    model = DNN((600, 500))
    first, second, last = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    for layer, gain in ((first, 2.0), (second, 2.0), (last, 1.0)):
        wanted = math.sqrt(gain / layer.in_features)
        assert layer.weight.std().item() == pytest.approx(wanted, rel=0.05)
        assert abs(layer.weight.mean().item()) < 0.05 * wanted
        assert not layer.bias.any()


def test_traced_by_fx_into_plain_layers() -> None:
    model = DNN((4,))
    traced = torch.fx.symbolic_trace(model)
    layers = [traced.get_submodule(str(n.target)) for n in traced.graph.nodes if n.op == "call_module"]
    assert [type(layer) for layer in layers] == [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear]
    image = torch.rand(2, 1, 28, 28)
    assert torch.equal(traced(image), model(image))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sizes": ()}, "hidden layers"),
        ({"sizes": (8, 0)}, "positive whole numbers"),
        ({"sizes": (8, 2.5)}, "positive whole numbers"),
        ({"sizes": 8}, "positive whole numbers"),
        ({"sizes": (True,)}, "positive whole numbers"),
        ({"sizes": (8,), "input_shape": (28, 28)}, "channels, height, width"),
        ({"sizes": (8,), "classes": 1}, "at least 2 classes"),
        ({"sizes": (8,), "outputs": "softmax"}, '"logits" or "relu"'),
    ],
)
def test_bad_arguments(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        DNN(**arguments)  # type: ignore[arg-type]
