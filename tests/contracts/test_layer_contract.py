"""What every kind of layer must be able to do, compared with torch and with random points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch.nn import functional as F

from closecall.milp import Limits
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.network.layers import Affine, Layer, Maximum, Relu
from closecall.network.windows import Sliding, average_pool, convolution, max_pool_windows
from closecall.solvers import solve

torch.set_num_threads(1)

SHAPE = (2, 5, 5)
PIXELS = 50


@dataclass(frozen=True)
class LayerCase:
    """A layer beside torch's own function on (batch, size) tensors, and the sizes of its inputs."""

    layer: Layer
    truth: Callable[..., torch.Tensor]
    sizes: tuple[int, ...]


def dense() -> LayerCase:
    weight, bias = torch.randn(7, 12, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    return LayerCase(Affine.of([weight.numpy()], bias.numpy()), lambda x: F.linear(x, weight, bias), (12,))


def sparse() -> LayerCase:
    weight = torch.zeros(9, 160, dtype=torch.float64)
    weight[torch.arange(9), torch.arange(9) * 3] = torch.randn(9, dtype=torch.float64)
    layer = Affine.of([csr_array(weight.numpy())], np.zeros(9))
    assert isinstance(layer.weights[0], csr_array)
    return LayerCase(layer, lambda x: x @ weight.T, (160,))


def addition() -> LayerCase:
    first, second = torch.randn(6, 6, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)
    layer = Affine.of([first.numpy(), second.numpy()], np.full(6, 0.5))
    return LayerCase(layer, lambda x, y: x @ first.T + y @ second.T + 0.5, (6, 4))


def strided_convolution() -> LayerCase:
    weight = torch.randn(3, 2, 3, 3, dtype=torch.float64)
    matrix, shape = convolution(weight.numpy(), SHAPE, Sliding.over((3, 3), (2, 2), before=(1, 1)))
    return LayerCase(
        Affine.of([matrix], np.zeros(int(np.prod(shape)))),
        lambda x: F.conv2d(x.reshape(-1, *SHAPE), weight, stride=2, padding=1).flatten(1),
        (PIXELS,),
    )


def averages() -> LayerCase:
    matrix, shape = average_pool(SHAPE, Sliding.over((2, 2), (1, 1)))
    return LayerCase(
        Affine.of([matrix], np.zeros(int(np.prod(shape)))),
        lambda x: F.avg_pool2d(x.reshape(-1, *SHAPE), 2, 1).flatten(1),
        (PIXELS,),
    )


def relu() -> LayerCase:
    return LayerCase(Relu(11), torch.relu, (11,))


def overlapping_pool() -> LayerCase:
    windows, _ = max_pool_windows(SHAPE, Sliding.over((3, 3), (1, 1)))
    return LayerCase(
        Maximum(windows), lambda x: F.max_pool2d(x.reshape(-1, *SHAPE), 3, 1).flatten(1), (PIXELS,)
    )


def padded_pool() -> LayerCase:
    windows, _ = max_pool_windows(SHAPE, Sliding.over((2, 2), (2, 2), before=(1, 1)))
    return LayerCase(
        Maximum(windows), lambda x: F.max_pool2d(x.reshape(-1, *SHAPE), 2, 2, 1).flatten(1), (PIXELS,)
    )


CASES = {
    make.__name__: make
    for make in (dense, sparse, addition, strided_convolution, averages, relu, overlapping_pool, padded_pool)
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> LayerCase:
    torch.manual_seed(3)
    return CASES[request.param]()


Box = tuple[list[np.ndarray], list[np.ndarray]]


def random_box(case: LayerCase, seed: int) -> Box:
    """Bounds of which some are a single point and some have a known sign."""
    generator = np.random.default_rng(seed)
    lower = [generator.normal(size=size) for size in case.sizes]
    widths = [generator.choice([0.0, 0.3, 2.0], size=size) for size in case.sizes]
    return lower, [low + width for low, width in zip(lower, widths, strict=True)]


def random_points(box: Box, count: int, seed: int) -> list[np.ndarray]:
    """Points inside and at the corners of a box."""
    generator = np.random.default_rng(seed)
    shares = [generator.random((count, len(low))) for low in box[0]]
    for share in shares:
        share[: count // 2] = share[: count // 2].round()
    return [low + share * (high - low) for low, high, share in zip(*box, shares, strict=True)]


def test_forward_is_what_torch_computes(case: LayerCase) -> None:
    points = random_points(random_box(case, 0), 20, 1)
    expected = case.truth(*(torch.from_numpy(point) for point in points)).numpy()
    np.testing.assert_allclose(case.layer.forward(*points), expected, atol=1e-12)
    assert case.layer.size == expected.shape[1]


def test_gradient_is_what_torch_computes(case: LayerCase) -> None:
    points = random_points(random_box(case, 2), 20, 3)
    slopes = np.random.default_rng(4).normal(size=(20, case.layer.size))
    leaves = [torch.from_numpy(point).requires_grad_() for point in points]
    (case.truth(*leaves) * torch.from_numpy(slopes)).sum().backward()
    for ours, leaf in zip(case.layer.gradient(slopes, *points), leaves, strict=True):
        np.testing.assert_allclose(ours, leaf.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_intervals_contain_every_point(case: LayerCase, seed: int) -> None:
    box = random_box(case, seed)
    low, high = case.layer.interval(*box)
    outputs = case.layer.forward(*random_points(box, 2000, seed + 1))
    assert (outputs >= low).all()
    assert (outputs <= high).all()


def test_intervals_of_a_single_point_are_tight(case: LayerCase) -> None:
    point = [low for low, _ in zip(*random_box(case, 8), strict=True)]
    low, high = case.layer.interval(point, point)
    output = case.layer.forward(*(value[None] for value in point))[0]
    np.testing.assert_allclose(low, output, atol=1e-9)
    np.testing.assert_allclose(high, output, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_linear_bounds_lie_above_every_point(case: LayerCase, seed: int) -> None:
    box = random_box(case, seed)
    rows = np.random.default_rng(seed).normal(size=(6, case.layer.size))
    parts, constants = case.layer.bound_above(rows, *box)
    points = random_points(box, 2000, seed + 1)
    below = case.layer.forward(*points) @ rows.T
    above = sum(point @ part.T for point, part in zip(points, parts, strict=True)) + constants
    assert (below <= above + 1e-9).all()


@pytest.mark.parametrize("form", ["tight", "paper"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_with_a_fixed_input_leave_only_the_forward_value(case: LayerCase, form: str, seed: int) -> None:
    """The outputs are pushed both ways by random costs: only one value may be left."""
    box = random_box(case, seed)
    point = [values[0] for values in random_points(box, 1, seed + 1)]
    expected = case.layer.forward(*(value[None] for value in point))[0]
    costs = np.random.default_rng(seed).normal(size=case.layer.size)
    for side in (1.0, -1.0):
        builder = ProgramBuilder()
        inputs = [builder.add_columns("in", value, value) for value in point]
        encode = case.layer.encode_tight if form == "tight" else case.layer.encode_paper
        output = encode(builder, inputs, *box)
        objective = np.zeros(builder.width)
        pushed: Expression = output.mapped(side * costs[None])
        objective[pushed.matrix.indices] = pushed.matrix.data
        solution = solve(builder.build(objective), "highs", Limits(20.0))
        assert solution.status == "optimal"
        assert solution.values is not None
        np.testing.assert_allclose(output.at(solution.values), expected, atol=1e-6)
