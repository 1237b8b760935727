"""Modules of every supported kind against their own forward."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from closecall.errors import ModelError, UnsupportedLayerError
from closecall.readers import Classifier, read

torch.set_num_threads(1)

SHAPE = (2, 6, 8)


class Forward(nn.Module):
    """A module made of one function of the image and a few layers."""

    def __init__(self, function: Callable[..., Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleDict(layers)

    def forward(self, image: Tensor) -> Tensor:
        return self.function(image, **self.layers)


def trained_norm(norm: nn.Module) -> nn.Module:
    for tensor in [*norm.parameters(), *norm.buffers()]:
        if tensor.dtype.is_floating_point:
            tensor.data.uniform_(0.5, 2.0)
    return norm


def read_exactly(module: nn.Module, shape: tuple[int, ...] = SHAPE, *, peeled: bool = False) -> Classifier:
    """Read a module; compare its network with torch in float64 and its engines with torch in float32."""
    module = module.eval()
    classifier = read(module, shape)
    images = torch.rand(4, *shape) * 3 - 1
    with torch.no_grad():
        double = copy.deepcopy(module).double()
        expected = torch.stack([double(image[None].double()).reshape(-1) for image in images]).numpy()
        single = torch.stack([module(image[None]).reshape(-1) for image in images]).numpy()
    scores = classifier.network.forward(images.double().numpy())
    assert scores.shape == expected.shape
    assert classifier.network.input_shape == shape
    assert classifier.network.fingerprint == read(module, shape).network.fingerprint
    if not peeled:
        np.testing.assert_allclose(scores, expected, atol=1e-9, rtol=1e-9)
    assert next(iter(classifier.engines)) == "torch"
    for engine in classifier.engines.values():
        np.testing.assert_allclose(engine(images.numpy()), single, atol=1e-4, rtol=1e-4)
    return classifier


MODULES: dict[str, Callable[[], list[nn.Module]]] = {
    "linear": lambda: [nn.Flatten(), nn.Linear(96, 5)],
    "linear without bias": lambda: [nn.Flatten(), nn.Linear(96, 5, bias=False)],
    "linear over the last side": lambda: [nn.Linear(8, 3), nn.ReLU(), nn.Flatten()],
    "conv2d": lambda: [nn.Conv2d(2, 4, (3, 2), (1, 2), (1, 0), (1, 2), 2), nn.ReLU(), nn.Flatten()],
    "conv2d same": lambda: [nn.Conv2d(2, 3, 4, padding="same"), nn.Flatten()],
    "conv2d reflected": lambda: [nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), nn.Flatten()],
    "conv1d": lambda: [nn.Flatten(2), nn.Conv1d(2, 3, 5, 2, 2), nn.ReLU(), nn.MaxPool1d(3), nn.Flatten()],
    "batch norm 2d": lambda: [nn.Conv2d(2, 3, 3), trained_norm(nn.BatchNorm2d(3)), nn.ReLU(), nn.Flatten()],
    "batch norm 1d": lambda: [nn.Flatten(), trained_norm(nn.BatchNorm1d(96)), nn.Linear(96, 4)],
    "batch norm without weights": lambda: [trained_norm(nn.BatchNorm2d(2, affine=False)), nn.Flatten()],
    "max pool": lambda: [nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.Flatten(), nn.Linear(40, 4)],
    "max pool overlapping": lambda: [nn.MaxPool2d(3, 1, dilation=2), nn.Flatten()],
    "avg pool": lambda: [nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.Flatten()],
    "avg pool 1d": lambda: [nn.Flatten(2), nn.AvgPool1d(4, 3, 1), nn.Flatten()],
    "adaptive avg pool": lambda: [nn.AdaptiveAvgPool2d((3, 4)), nn.Flatten()],
    "adaptive avg pool to one": lambda: [
        nn.Conv2d(2, 5, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ],
    "adaptive max pool": lambda: [nn.AdaptiveMaxPool2d((3, 2)), nn.Flatten()],
    "leaky relu": lambda: [nn.Flatten(), nn.LeakyReLU(0.2)],
    "prelu": lambda: [nn.PReLU(2), nn.Flatten()],
    "relu6": lambda: [nn.Flatten(), nn.Linear(96, 40), nn.ReLU6(), nn.Linear(40, 3)],
    "hardtanh": lambda: [nn.Flatten(), nn.Hardtanh(-0.2, 0.3)],
    "relu in place": lambda: [nn.Conv2d(2, 2, 3), nn.ReLU(inplace=True), nn.Flatten()],
    "identity, dropout": lambda: [
        nn.Identity(),
        nn.Dropout2d(),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(96, 2),
    ],
    "unflatten": lambda: [nn.Flatten(), nn.Unflatten(1, (4, 4, 6)), nn.Conv2d(4, 1, 3), nn.Flatten()],
    "zero pad": lambda: [nn.ZeroPad2d((1, 2, 0, 3)), nn.MaxPool2d(2), nn.Flatten()],
    "constant pad": lambda: [nn.ConstantPad2d((1, -1, 2, 0), 0.5), nn.Flatten()],
    "nothing but the image": lambda: [nn.Flatten()],
    "threshold": lambda: [nn.Flatten(), nn.Threshold(0.1, 0.1)],
    "conv transpose 1d": lambda: [
        nn.Flatten(2),
        nn.ConvTranspose1d(2, 3, 4, 3, 1, 2),
        nn.ReLU(),
        nn.Flatten(),
    ],
    "conv transpose 2d": lambda: [
        nn.ConvTranspose2d(2, 4, (3, 2), 2, 1, 1, groups=2),
        nn.ReLU(),
        nn.Flatten(),
    ],
    "conv transpose dilated": lambda: [nn.ConvTranspose2d(2, 3, 3, 1, 1, (1, 2), dilation=3), nn.Flatten()],
    "prelu for each channel": lambda: [nn.Conv2d(2, 3, 3), nn.PReLU(3), nn.Flatten()],
    "hard sigmoid": lambda: [nn.Flatten(), nn.Linear(96, 20), nn.Hardsigmoid(), nn.Linear(20, 3)],
    "soft shrink": lambda: [nn.Flatten(), nn.Softshrink(0.3)],
    "upsample exactly": lambda: [nn.Upsample(size=(9, 5), mode="nearest-exact"), nn.Flatten()],
    "upsample": lambda: [nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 3, 2), nn.Flatten()],
}


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", MODULES)
def test_modules_are_read_exactly(name: str) -> None:
    torch.manual_seed(0)
    read_exactly(nn.Sequential(*MODULES[name]()))


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "view by shape": lambda x: F.relu(x.view(x.shape[0], -1)),
    "view by size": lambda x: torch.relu(x - 0.5).view(x.size(0), x.size(1) * 48),
    "reshape after permute": lambda x: x.permute(0, 2, 3, 1).reshape(-1, 96).relu(),
    "transpose": lambda x: x.transpose(1, 3).contiguous().flatten(1),
    "pool of a transposed image": lambda x: F.max_pool2d(x.transpose(2, 3), 2).flatten(1),
    "normalised": lambda x: ((x - torch.tensor([0.1, 0.4]).view(2, 1, 1)) / 0.25).flatten(1),
    "constants on both sides": lambda x: (2 * (1 - x) + x / 4 - 3).flatten(1),
    "branches": lambda x: (F.relu(x) - 2 * F.relu(x - 1) + x).flatten(1),
    "cat": lambda x: torch.cat([x, F.relu(x), x[:, :1]], dim=1).flatten(1),
    "cat with a constant": lambda x: torch.cat([x, torch.full_like(x, 0.25)], 1).flatten(1),
    "stack": lambda x: torch.stack([x, -x], dim=2).flatten(1),
    "mean over sides": lambda x: x.mean((2, 3)),
    "mean kept": lambda x: (x - x.mean((2, 3), keepdim=True)).flatten(1),
    "sum": lambda x: x.sum(dim=1).flatten(1),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(1).flatten(1),
    "chosen entries": lambda x: x[:, [1, 0, 1]][..., torch.tensor([0, 5])].flatten(1),
    "three dimensions": lambda x: F.avg_pool3d(F.max_pool3d(x.unsqueeze(1), 2, 1), (1, 2, 3)).flatten(1),
    "slices": lambda x: x[:, 1:, ::2, 3:].flatten(1),
    "flip": lambda x: x.flip(3).flatten(1),
    "chunks": lambda x: sum(part for part in x.chunk(2, dim=1)).flatten(1),
    "expand": lambda x: (x[:, :1].expand(-1, 3, -1, -1)).flatten(1),
    "clamp": lambda x: x.clamp(0.1, 0.7).flatten(1),
    "clamp below": lambda x: x.clamp(min=0.4).flatten(1),
    "clamp above": lambda x: torch.clamp(x, max=0.4).flatten(1),
    "clamp to one value": lambda x: (x + x.clamp(0.4, 0.4)).flatten(1),
    "abs": lambda x: (x - 0.5).abs().flatten(1),
    "maximum of branches": lambda x: torch.maximum(x[:, 0], x[:, 1]).flatten(1),
    "minimum with a constant": lambda x: torch.minimum(x, torch.tensor(0.25, dtype=x.dtype)).flatten(1),
    "matrix on the left": lambda x: torch.ones(2, 6, dtype=x.dtype) @ x[0, 0],
    "added in place": lambda x: F.relu(x).add_(x).mul_(2).flatten(1),
    "slice written in place": lambda x: _written(x),
    "ones like the image": lambda x: (x + torch.ones_like(x)).flatten(1),
    "branching by shape": lambda x: x.flatten(1) if x.shape[2] == 6 else x,
    "pad": lambda x: F.pad(x, (1, 0, 0, 2), value=0.2).flatten(1),
    "conv with computed weights": lambda x: F.conv2d(x, 0.5 * x.new_ones(2, 2, 3, 3)).flatten(1),
    "without a batch": lambda x: F.max_pool2d(x[0], 2).flatten(),
    "batch squeezed away": lambda x: x.squeeze().flatten()[:10],
    "amax": lambda x: x.amax((1, 3)),
    "amax of all": lambda x: (x - x.amax()).flatten(1),
    "max over a side": lambda x: x.max(2).values.flatten(1),
    "max kept": lambda x: (x - x.max(3, keepdim=True)[0]).flatten(1),
    "max of all": lambda x: (x + x.max()).flatten(1),
    "amin": lambda x: x.amin(1).flatten(1),
    "min over a side": lambda x: x.min(dim=-1).values.flatten(1),
    "clamp by tensors": lambda x: x.clamp(torch.arange(8) / 16, torch.arange(6).view(6, 1) / 5 + 0.2).flatten(
        1
    ),
    "where as a relu": lambda x: torch.where(x > 0, x, 0).flatten(1),
    "where as a relu, turned": lambda x: torch.where(x <= 0, torch.zeros_like(x), x).flatten(1),
    "where as a leaky relu": lambda x: torch.where(x >= 0, x, 0.01 * x).flatten(1),
    "where as a threshold": lambda x: torch.where(x > 0.5, x, 0.5).flatten(1),
    "where as an absolute value": lambda x: torch.where(x - 1 < 0, 1 - x, x - 1).flatten(1),
    "where as a maximum": lambda x: torch.where(x[:, 0] > x[:, 1], x[:, 0], x[:, 1]).flatten(1),
    "where of a layer": lambda x: torch.where((y := x.mean(3) - 0.5) < 0, y / 3 + 1, y + 1).flatten(1),
    "a mask as a relu": lambda x: (x * (x > 0)).flatten(1),
    "a mask of numbers": lambda x: ((x > 0).float() * x + (~(x > 0)) * x * 0.25).flatten(1),
    "filled where masked": lambda x: x.masked_fill(x < 0, 0.0).flatten(1),
    "filled in place": lambda x: _filled(x),
    "constants of any kind": lambda x: (x * torch.sigmoid(torch.arange(8) - 4).cumsum(0).erf()).flatten(1),
    "where": lambda x: torch.where(torch.arange(8) > 3, x, -x).flatten(1),
}


def _filled(image: Tensor) -> Tensor:
    copied = image - 0.5
    copied[copied < 0] = 0.0
    return copied.flatten(1)


def _written(image: Tensor) -> Tensor:
    copied = image.clone()
    copied[:, 0] = 0.25
    copied[:, 0, 1] = image[:, 1, 0] * 2
    copied[0, 1, 5] = torch.arange(8) / 4
    copied[:, 1, :2].mul_(2.0)
    return copied.flatten(1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_read_exactly(name: str) -> None:
    torch.manual_seed(0)
    read_exactly(Forward(FUNCTIONS[name]))


def test_residual_blocks_are_read_exactly() -> None:
    torch.manual_seed(0)

    def forward(
        image: Tensor, first: nn.Module, second: nn.Module, short: nn.Module, last: nn.Module
    ) -> Tensor:
        inner = second(F.relu(first(image)))
        return last(F.adaptive_avg_pool2d(F.relu(inner + short(image)), 1).flatten(1))

    module = Forward(
        forward,
        first=nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), trained_norm(nn.BatchNorm2d(4))),
        second=nn.Conv2d(4, 4, 3, 1, 1),
        short=nn.Conv2d(2, 4, 1, 2),
        last=nn.Linear(4, 3),
    )
    classifier = read_exactly(module)
    assert classifier.network.units == 2 * 4 * 3 * 4


@pytest.mark.parametrize("last", [nn.Softmax(1), nn.LogSoftmax(1), nn.Sigmoid()])
def test_a_trailing_softmax_is_peeled_off_and_said_so(last: nn.Module) -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Flatten(), nn.Linear(96, 5)).eval()
    classifier = read_exactly(nn.Sequential(body, last), peeled=True)
    assert f"a trailing {type(last).__name__} was peeled off: scores are logits" in classifier.notes[0]
    images = torch.rand(3, *SHAPE)
    with torch.no_grad():
        np.testing.assert_allclose(
            classifier.network.forward(images.numpy()), body(images).numpy(), atol=1e-5
        )


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types_of_number(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(96, 20), nn.ReLU(), nn.Linear(20, 3)).to(kind).eval()
    classifier = read(module, SHAPE)
    scores = classifier.engines["torch"](np.full((2, *SHAPE), 0.5, dtype=np.float32))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(classifier.network.forward(np.full((2, *SHAPE), 0.5)), scores, atol=0.02)
    assert {parameter.dtype for parameter in module.parameters()} == {kind}


@st.composite
def convolutional_nets(draw: st.DrawFn) -> nn.Module:
    """Random stacks of convolution, normalisation, kinks and pooling, ending in scores."""
    channels, layers = 2, []
    for _ in range(draw(st.integers(1, 3))):
        groups = draw(st.sampled_from([1, channels]))
        outputs = groups * draw(st.integers(1, 2))
        size, padding = draw(st.integers(1, 3)), draw(st.integers(0, 1))
        layers.append(nn.Conv2d(channels, outputs, size, draw(st.integers(1, 2)), padding + 1, groups=groups))
        channels = outputs
        if draw(st.booleans()):
            layers.append(trained_norm(nn.BatchNorm2d(channels)))
        layers.append(draw(st.sampled_from([nn.ReLU(), nn.LeakyReLU(0.1), nn.ReLU6(), nn.Identity()])))
        pools = [nn.MaxPool2d(2, 1), nn.AvgPool2d(2, 1, 1), nn.MaxPool2d(2, 2, 1), nn.Identity()]
        layers.append(draw(st.sampled_from(pools)))
    try:
        nn.Sequential(*layers).eval()(torch.rand(1, *SHAPE))
    except RuntimeError:  # torch itself says that nothing is left of the image
        reject()
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(3))


@settings(max_examples=40, deadline=None)
@given(convolutional_nets())
def test_random_networks_are_read_exactly(module: nn.Module) -> None:
    module(torch.rand(1, *SHAPE))
    classifier = read_exactly(module)
    simpler = classifier.network.simplified()
    images = np.random.default_rng(0).random((3, *SHAPE))
    np.testing.assert_allclose(simpler.forward(images), classifier.network.forward(images), atol=1e-9)


def test_the_module_is_left_as_it_was() -> None:
    module = nn.Sequential(
        nn.Conv2d(2, 2, 3), trained_norm(nn.BatchNorm2d(2)), nn.ReLU(), nn.Flatten()
    ).eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    list(read(module, SHAPE).engines)
    assert not module.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in module.parameters())
    assert all(not part._forward_hooks and not part._forward_pre_hooks for part in module.modules())
    after = module.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_training_mode_is_an_error_that_says_what_to_call() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(96, 3))
    with pytest.raises(ModelError, match=r"call \.eval\(\)"):
        read(module, SHAPE)
    module.eval()[1].train()
    with pytest.raises(ModelError, match=r"call \.eval\(\)"):
        read(module, SHAPE)


UNSUPPORTED: dict[str, tuple[Callable[..., Tensor], str]] = {
    "tanh": (lambda x: torch.tanh(x).flatten(1), "operation tanh"),
    "a product of branches": (lambda x: (x * x).flatten(1), "operation mul.*product of two branches"),
    "softmax in the middle": (lambda x: torch.softmax(x.flatten(1), 1) * 2 + 1, "Softmax in the middle"),
    "softmax over a part": (lambda x: torch.softmax(x, 3).flatten(1), "only as the last operation"),
    "division by the image": (lambda x: (1 / (x + 1)).flatten(1), "operation reciprocal|division"),
    "decides by numbers": (lambda x: x.flatten(1) if x.sum() > 1 else -x.flatten(1), "decides by the image"),
    "a jump": (
        lambda x: torch.where(x > 0.5, x, 0).flatten(1),
        "operation where.*jumps unless both sides meet",
    ),
    "a comparison": (lambda x: (x.flatten(1) > 0.5).float(), "is a comparison"),
    "a sum of comparisons": (
        lambda x: (x + (x > 0)).flatten(1),
        "operation add in Forward: a comparison can be read only",
    ),
    "sigmoid in the middle": (lambda x: torch.sigmoid(x.flatten(1)) + 1, "Sigmoid in the middle"),
    "rounding": (lambda x: x.long().float().flatten(1), "rounding"),
    "indices of a maximum": (lambda x: F.max_pool2d(x, 2, 2, return_indices=True)[1], "only its first"),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[1:]).flatten(1), "native_layer_norm"),
    "own statistics": (lambda x: F.instance_norm(x).flatten(1), "own mean and variance"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_operations_name_themselves(name: str) -> None:
    function, message = UNSUPPORTED[name]
    with pytest.raises(UnsupportedLayerError, match=message):
        read(Forward(function).eval(), SHAPE)


def test_the_message_names_the_submodule() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(96, 4), nn.GELU())).eval()
    with pytest.raises(UnsupportedLayerError, match=r"operation gelu in 1\.1"):
        read(module, SHAPE)


def test_an_unsupported_operation_that_does_not_matter_is_no_error() -> None:
    def forward(image: Tensor) -> Tensor:
        torch.tanh(image)
        return image.flatten(1)

    read_exactly(Forward(forward))


def test_outputs_must_be_scores_of_the_image() -> None:
    with pytest.raises(ModelError, match="returns tuple"):
        read(Forward(lambda x: (x, x)).eval(), SHAPE)
    with pytest.raises(ModelError, match="does not depend on the image"):
        read(Forward(lambda x: torch.ones(1, 3)).eval(), SHAPE)


def test_what_a_module_hides_from_the_reader_is_found_out() -> None:
    """Through numpy, the numbers leave torch unseen: only the comparison with the original notices."""

    def forward(image: Tensor) -> Tensor:
        return image.flatten(1) + torch.from_numpy(np.square(image.detach().numpy())).flatten(1)

    with pytest.raises(ModelError, match=r"differs by|numpy"):
        read(Forward(forward).eval(), SHAPE)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(weight: float) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(96, 3)).eval()
    module[1].weight.data[1, 5] = weight
    with pytest.raises(ModelError, match="NaN or infinity"):
        read(module, SHAPE)


def test_an_image_of_the_wrong_shape_is_a_clear_error() -> None:
    with pytest.raises(ModelError, match=r"fails on an image of shape \(1, 28, 28\)"):
        read(nn.Sequential(nn.Flatten(), nn.Linear(96, 3)).eval(), (1, 28, 28))
