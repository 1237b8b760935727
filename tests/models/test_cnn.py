"""CNN: the paper's convolution against its sum, shapes against formulas, initial weights, fx."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.fx
from torch import nn

from closecall.errors import ModelError
from closecall.models import CNN, Block, PaperConv2d, count_parameters, count_units


def paper_convolution(layer: PaperConv2d, maps: np.ndarray) -> np.ndarray:
    """B_δ(λ, ξ) = b_γ + Σᵢⱼ A_β(i + Sλ, j + Sξ) k_γ(i, j) with δ = β + γ·α, counted from 0, term by term."""
    padding, stride = layer.padding, layer.stride
    padded = np.pad(maps, ((0, 0), (padding, padding), (padding, padding)))
    kernels = layer.kernels.detach().numpy().reshape(-1, *layer.kernels.shape[-2:])
    size, alpha = kernels.shape[-1], len(maps)
    height, width = ((side - size) // stride + 1 for side in padded.shape[1:])
    result = np.zeros((len(kernels) * alpha, height, width))
    for gamma, kernel in enumerate(kernels):
        for beta in range(alpha):
            for row in range(height):
                for column in range(width):
                    total = 0.0 if layer.bias is None else float(layer.bias.detach()[gamma])
                    for i in range(size):
                        for j in range(size):
                            total += padded[beta, i + stride * row, j + stride * column] * kernel[i, j]
                    result[beta + gamma * alpha, row, column] = total
    return result


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("alpha", "kernels", "size", "stride", "padding"), [(1, 3, 3, 1, 0), (3, 2, 3, 2, 1), (4, 1, 2, 2, 0)]
)
def test_paper_convolution(
    alpha: int, kernels: int, size: int, stride: int, padding: int, bias: bool
) -> None:
    torch.manual_seed(1)
    layer = PaperConv2d(alpha, kernels, size, stride=stride, padding=padding, bias=bias)
    for parameter in layer.parameters():
        parameter.data.normal_()
    images = torch.rand(2, alpha, 7, 6 if stride == 1 else 7)
    images = images[..., :6, :6] if size == 2 else images
    wanted = np.stack([paper_convolution(layer, image) for image in images.numpy()])
    np.testing.assert_allclose(layer(images).detach().numpy(), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer.as_conv2d()(images).detach().numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert count_parameters(layer) == kernels * size**2 + (kernels if bias else 0)


def test_gradients_reach_the_shared_kernels() -> None:
    torch.manual_seed(2)
    layer = PaperConv2d(2, 2, 2).double()
    images = torch.rand(1, 2, 4, 4, dtype=torch.float64)

    def loss(kernels: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, {"kernels": kernels, "bias": bias}, (images,)).square().sum()

    assert torch.autograd.gradcheck(loss, tuple(layer.parameters()))


@pytest.mark.parametrize(("alpha", "kernels", "size"), [(1, 4, 5), (6, 3, 3), (16, 8, 7)])
def test_paper_initialisation(alpha: int, kernels: int, size: int) -> None:
    torch.manual_seed(0)
    bound = math.sqrt(size / ((alpha + size) * kernels**2))
    drawn = torch.cat([PaperConv2d(alpha, kernels, size).kernels.flatten() for _ in range(200)])
    assert drawn.abs().max().item() <= bound
    assert drawn.abs().max().item() > 0.99 * bound
    assert drawn.var().item() == pytest.approx(bound**2 / 3, rel=0.05)


def test_he_initialisation() -> None:
    torch.manual_seed(0)
    model = CNN([Block(400, 5)], hidden=(50,))
    convolution = next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
    assert convolution.weight.std().item() == pytest.approx(math.sqrt(2 / 25), rel=0.05)
    assert convolution.bias is not None
    assert not convolution.bias.any()


@pytest.mark.parametrize(
    ("convolution", "bias", "parameters", "units"),
    [
        (
            "standard",
            True,
            4 * 36 + 4 + 8 * 4 * 9 + 8 + (32 * 20 + 20) + (20 * 10 + 10),
            576 + 144 + 128 + 32 + 20,
        ),
        ("standard", False, 4 * 36 + 8 * 4 * 9 + 32 * 20 + 20 * 10, 576 + 144 + 128 + 32 + 20),
        (
            "paper",
            True,
            4 * 36 + 4 + 8 * 9 + 8 + (128 * 20 + 20) + (20 * 10 + 10),
            576 + 144 + 512 + 128 + 20,
        ),
        ("paper", False, 4 * 36 + 8 * 9 + 128 * 20 + 20 * 10, 576 + 144 + 512 + 128 + 20),
    ],
)
def test_counts(convolution: str, bias: bool, parameters: int, units: int) -> None:
    model = CNN(["4x6s2/2", "8x3/2"], hidden=(20,), convolution=convolution, bias=bias)
    assert count_parameters(model) == parameters
    assert count_units(model) == units
    assert model(torch.zeros(3, 1, 28, 28)).shape == (3, 10)


def test_colour_images_overlapping_windows_and_no_pooling() -> None:
    blocks = [Block(2, 5, stride=3, padding=1, pool=0), Block(3, 4, pool=3, pool_stride=1)]
    model = CNN(blocks, hidden=(), input_shape=(3, 33, 30), classes=4, outputs="relu")
    assert model.layers[-2].in_features == 3 * 6 * 5
    scores = model(torch.rand(2, 3, 33, 30))
    assert scores.shape == (2, 4)
    assert scores.min() >= 0


def test_the_second_block_is_named() -> None:
    with pytest.raises(ModelError, match=r"Block 2, convolution: .*\(12 − 5 \+ 2·0\)/2 \+ 1 = 4.5"):
        CNN(["4x5", "4x5s2"])
    assert CNN(["4x5", "4x5s2"], strict=False)(torch.zeros(1, 1, 28, 28)).shape == (1, 10)


@pytest.mark.parametrize("convolution", ["standard", "paper"])
def test_traced_by_fx(convolution: str) -> None:
    torch.manual_seed(0)
    model = CNN(["3x6s2/2", "2x3/2"], hidden=(5,), convolution=convolution)
    traced = torch.fx.symbolic_trace(model)
    images = torch.rand(4, 1, 28, 28)
    assert torch.equal(traced(images), model(images))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"blocks": []}, "at least one block"),
        ({"blocks": "8x5"}, "list of at least one block"),
        ({"blocks": [{"kernel": 3}]}, "kernels, size, stride"),
        ({"blocks": [Block(8, 5)], "hidden": (0,)}, "hidden layers of a CNN"),
        ({"blocks": [Block(8, 5)], "convolution": "depthwise"}, '"standard" or "paper"'),
    ],
)
def test_bad_arguments(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        CNN(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "block", "strict"),
    [
        ((1, 28, 28), "16x8s4/0", True),
        ((3, 32, 32), "16x8s4/0", True),
        ((1, 30, 30), "16x8s4p1/0", True),
        ((1, 8, 8), "16x4s2/0", True),
        ((2, 9, 9), "16x4s2/0", False),
        ((3, 10, 31), "16x4s2/0", False),
        ((1, 3, 60), "16x2/0", True),
        ((1, 2, 2), "16x2/0", False),
        ((1, 1, 1), "16x1/0", False),
    ],
)
def test_without_blocks_there_is_one_that_suits(
    shape: tuple[int, int, int], block: str, strict: bool
) -> None:
    model = CNN(input_shape=shape, classes=3)
    assert [str(given) for given in model.blocks] == [block]
    assert model.strict is strict
    assert model(torch.rand(2, *shape)).shape == (2, 3)
    assert CNN(**model.config()).config() == model.config()


def test_blocks_that_are_given_are_strict_unless_told() -> None:
    with pytest.raises(ModelError, match="is not a whole number"):
        CNN(["4x3s2"], input_shape=(1, 8, 8))
    assert CNN(["4x3s2"], input_shape=(1, 8, 8), strict=False).strict is False
    with pytest.raises(ModelError, match="is not a whole number"):
        CNN(input_shape=(1, 9, 9), strict=True)
