"""Capsule networks: their sizes, the layout of their capsules, their loss and their way to disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

from closecall import data
from closecall.data import Dataset
from closecall.errors import ModelError
from closecall.models import CapsNet, build, count_parameters, load_model, save_model
from closecall.models.capsules.layers import PrimaryCapsules
from closecall.models.capsules.routing import squash
from closecall.models.export import onnx_bytes
from closecall.train import TrainingPlan, evaluate, train


def some_images(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def small() -> CapsNet:
    torch.manual_seed(3)
    return CapsNet().eval()


def without_decoder(model: CapsNet) -> int:
    return count_parameters(model) - (count_parameters(model.decoder) if model.decoder else 0)


def test_parameters_of_the_paper() -> None:
    model = CapsNet(preset="paper")
    assert count_parameters(model) == 8_215_568
    assert without_decoder(model) == 6_804_224
    assert count_parameters(model.stem) == 20_992
    assert count_parameters(model.primary) == 5_308_672
    assert count_parameters(model.parents) == 1_474_560


def test_parameters_of_small(small: CapsNet) -> None:
    convolutions = (25 + 1) * 16 + (9 * 16 + 1) * 32 + 2 * 16 + 2 * 32
    primary, parents = (25 * 32 + 1) * 64, 72 * 10 * 16 * 8
    decoder = 161 * 128 + 129 * 256 + 257 * 784
    assert count_parameters(small) == convolutions + primary + parents + decoder == 403_696


def test_parameters_of_efficient_and_matrix() -> None:
    """161,824 is the published count; 68 thousand is the published one of matrix capsules 64, 8, 16, 16."""
    assert count_parameters(CapsNet(preset="efficient")) == 161_824
    convolution, primary = (25 + 1) * 64 + 2 * 64, (64 + 1) * 8 * 17
    votes = (9 * 8 * 16 + 9 * 16 * 16 + 16 * 10) * 16
    costs = 2 * (16 + 16 + 10)
    assert count_parameters(CapsNet(preset="matrix")) == convolution + primary + votes + costs == 68_572


@pytest.mark.parametrize(
    ("shape", "classes", "options"),
    [
        ((1, 8, 8), 10, {}),
        ((3, 32, 32), 7, {}),
        ((1, 36, 36), 10, {}),
        ((2, 23, 31), 3, {}),
        ((1, 28, 28), 4, {"preset": "paper", "convolutions": ["6x9"], "primary_types": 2}),
        ((1, 12, 12), 2, {"decoder": [], "dimensions": 5, "iterations": 1}),
        ((1, 28, 28), 10, {"routing": "attention"}),
        ((3, 30, 26), 5, {"preset": "efficient", "decoder": [7]}),
        ((1, 28, 28), 10, {"preset": "matrix", "decoder": [7]}),
        ((1, 8, 8), 4, {"preset": "matrix", "decoder": [7]}),
    ],
)
def test_any_shape_and_number_of_classes(
    shape: tuple[int, ...], classes: int, options: dict[str, object]
) -> None:
    model = CapsNet(shape, classes, **options)
    images = some_images(3, *shape)
    scores = model(images)
    assert scores.shape == (3, classes)
    assert (scores > 0).all()
    assert (scores < 1).all()
    twin = CapsNet(**model.config())
    assert twin.config() == model.config()
    assert count_parameters(twin) == count_parameters(model)
    if options.get("decoder") != []:
        assert model.decode(model.encode(images)[0], torch.tensor([0, 1, 0])).shape == images.shape


def test_a_primary_capsule_is_eight_maps_at_one_position() -> None:
    layer = PrimaryCapsules(inputs=3, types=4, dimensions=8, size=3, stride=2)
    maps = some_images(2, 3, 9, 11)
    capsules, convolved = layer(maps), layer.convolution(maps)  # (2, 4 · 4 · 5, 8), (2, 32, 4, 5)
    assert capsules.shape == (2, 80, 8)
    for kind in range(4):
        for row in range(4):
            for column in range(5):
                expected = squash(convolved[:, 8 * kind : 8 * kind + 8, row, column])
                torch.testing.assert_close(capsules[:, (kind * 4 + row) * 5 + column], expected)


def test_primaries_move_with_the_image() -> None:
    """An input moved by the product of all strides moves the primary capsules by one position."""
    model = CapsNet((1, 40, 40), batch_norm=False)  # strides 2, 1 and 2
    images = torch.zeros(1, 1, 40, 40)
    images[:, :, 10:20, 8:20] = some_images(1, 1, 10, 12)
    moved = torch.roll(images, (4, 8), dims=(2, 3))
    side = 6

    def grid(pixels: Tensor) -> Tensor:
        return model.primary(model.stem(pixels)).reshape(8, side, side, 8)

    assert grid(images).shape == (8, side, side, 8)
    torch.testing.assert_close(grid(moved)[:, 1:, 2:], grid(images)[:, :-1, :-2])
    assert not torch.allclose(grid(moved), grid(images))


def test_votes_by_one_product_are_those_of_every_matrix(small: CapsNet) -> None:
    children = torch.randn(2, 72, 8)
    votes = small.parents.votes(children)
    matrices = small.parents.weight.reshape(72, 8, 10, 16)
    for child in (0, 35, 71):
        for parent in (0, 4, 9):
            expected = children[:, child] @ matrices[child, :, parent]
            torch.testing.assert_close(votes[:, parent, child], expected)


def test_scores_are_lengths_and_gradients_reach_the_pixels() -> None:
    torch.manual_seed(2)
    last = CapsNet().eval().double()
    with torch.no_grad():
        last.parents.weight.mul_(
            40
        )  # votes as strong as after training, so that routing has something to say
    flowing = CapsNet(gradients="all").eval().double()
    flowing.load_state_dict(last.state_dict())
    images = some_images(2, 1, 28, 28).double().requires_grad_()
    torch.testing.assert_close(last(images), last.encode(images)[0].square().sum(2).sqrt())
    torch.testing.assert_close(flowing(images), last(images))
    partial, whole = (torch.autograd.grad(model(images)[:, 3].sum(), images)[0] for model in (last, flowing))
    direction = some_images(2, 1, 28, 28, seed=1).double()
    with torch.no_grad():
        ahead, behind = flowing(images + 1e-6 * direction), flowing(images - 1e-6 * direction)
    slope = float((ahead - behind)[:, 3].sum() / 2e-6)
    assert float((whole * direction).sum()) == pytest.approx(slope, rel=1e-4)
    assert float((partial * direction).sum()) != pytest.approx(slope, rel=1e-2)


def test_black_images_have_finite_gradients() -> None:
    model = CapsNet(preset="paper", convolutions=["4x9"], primary_types=2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.zero_()  # without biases every capsule of a black image is exactly 0
    loss, scores = model.training_loss(torch.zeros(2, 1, 28, 28), torch.tensor([1, 2]))
    loss.backward()
    assert (scores == 0).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_training_loss_by_its_parts(small: CapsNet) -> None:
    images, labels = some_images(4, 1, 28, 28), torch.tensor([7, 0, 3, 3])
    with torch.no_grad():
        loss, scores = small.training_loss(images, labels)
    total = 0.0
    for image, label in enumerate(labels.tolist()):
        for k in range(10):
            length = float(scores[image, k])
            total += max(0, 0.9 - length) ** 2 if k == label else 0.5 * max(0, length - 0.1) ** 2
        masked = torch.zeros(1, 160)
        masked[0, 16 * label : 16 * label + 16] = small.encode(images)[0][image, label]
        decoded = small.decoder.layers(masked).reshape(28, 28).detach()
        total += 0.0005 * float((decoded - images[image, 0]).square().sum())
    assert float(loss) == pytest.approx(total / 4, rel=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"routing": "attention"}, {"preset": "efficient"}, {"preset": "matrix"}], ids=str
)
def test_onnxruntime_agrees_and_disk_keeps_it(options: dict[str, str], tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = CapsNet(**options)
    model.train()
    for _ in range(3):
        model(some_images(8, 1, 28, 28))  # batch norm's running means are no longer 0 and 1
    model.eval()
    images = some_images(5, 1, 28, 28)
    session = onnxruntime.InferenceSession(onnx_bytes(model))
    for count in (1, 5):
        (scores,) = session.run(["scores"], {"image": images[:count].numpy()})
        np.testing.assert_allclose(scores, model(images[:count]).detach().numpy(), atol=1e-5)
    save_model(model, tmp_path)
    assert torch.equal(load_model(tmp_path)(images), model(images))


def test_the_shipped_network_is_the_same_in_onnxruntime() -> None:
    model = load_model("zoo:mnist-caps")
    images = data.load_dataset("mnist", "test").images[:200].astype(np.float32) / 255
    session = onnxruntime.InferenceSession(onnx_bytes(model))
    (scores,) = session.run(["scores"], {"image": images})
    with torch.no_grad():
        np.testing.assert_allclose(scores, model(torch.from_numpy(images)).numpy(), atol=1e-4)


def test_two_labels_and_their_parts(small: CapsNet) -> None:
    images, labels = some_images(2, 1, 28, 28), torch.tensor([[7, 0], [3, 4]])
    parts = some_images(2, 2, 28, 28, seed=5)
    with torch.no_grad():
        loss, scores = small.training_loss(images, labels, parts)
        capsules, _ = small.encode(images)
        total = 0.0
        for image in range(2):
            for k in range(10):
                length = float(scores[image, k])
                there = k in labels[image].tolist()
                total += max(0, 0.9 - length) ** 2 if there else 0.5 * max(0, length - 0.1) ** 2
            for number in range(2):
                decoded = small.decode(capsules[[image]], labels[[image], number])
                total += 0.0005 * float((decoded[0, 0] - parts[image, number]).square().sum())
    assert float(loss) == pytest.approx(total / 2, rel=1e-5)


def test_it_learns_stripes() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 240)
    pixels = generator.integers(0, 90, (240, 1, 9, 9))
    for index, label in enumerate(labels):
        pixels[index, 0, 3 * label : 3 * label + 3] += 120
    dataset = Dataset("stripes", pixels.astype(np.uint8), labels.astype(np.int64), ("a", "b", "c"))
    model = build("capsnet", {"input_shape": [1, 9, 9], "classes": 3, "decoder": [16]}, seed=1)
    plan = TrainingPlan(epochs=6, batch=32, learning_rate=3e-3, validation=40, threads=1)
    before, _ = evaluate(model, dataset)
    train(model, dataset, plan)
    after, accuracy = evaluate(model, dataset)
    assert after < before / 2
    assert accuracy > 0.9


def test_a_resumed_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    digits = data.load_dataset("digits", "train").subset(np.arange(200))
    plan = TrainingPlan(epochs=2, batch=50, shift=1, validation=20, threads=1)
    shape = {"input_shape": [1, 8, 8], "decoder": [16]}
    straight, stopped = build("capsnet", shape, seed=1), build("capsnet", shape, seed=1)
    train(straight, digits, plan)
    train(stopped, digits, replace(plan, epochs=1), checkpoint=tmp_path / "checkpoint")
    resumed = build("capsnet", shape, seed=2)
    train(resumed, digits, plan, checkpoint=tmp_path / "checkpoint", resume=True)
    for name, tensor in straight.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "tiny"}, "no capsule preset 'tiny'; the presets are paper, small, efficient, matrix"),
        ({"routing": "magic"}, "routing is one of dynamic, attention, em, not 'magic'"),
        ({"gradients": "some"}, "gradients is one of last, all, not 'some'"),
        ({"iterations": 0}, "iterations must be a whole number ≥ 1, not 0"),
        (
            {"convolutions": "16x5"},
            r"convolutions of a capsule network are a list such as \['16x5s2', '32x3'\], not '16x5'",
        ),
        ({"convolutions": ["16x5/2"]}, "do not pool: write '16x5' instead of '16x5/2'"),
        ({"convolutions": ["16x29"]}, "Convolution 1 of the capsule network, convolution: a 29×29 kernel"),
        ({"primary_size": 11}, "The primary capsules, convolution: a 11×11 kernel is larger than its 10×10"),
        ({"primary_size": 0}, "8 × 8 maps into capsules, but the last convolution gives 32"),
        ({"routing": "em"}, "so dimensions must be 16 and the primary size and stride 1"),
        ({"preset": "matrix", "capsule_layers": ["8x13"]}, "Capsule layer 1, convolution: a 13×13 kernel"),
        ({"capsule_layers": ["8x3"]}, "need routing \"em\", not 'dynamic'"),
        ({"reconstruction_weight": -1.0}, "reconstruction weight must be ≥ 0, not -1.0"),
        ({"decoder": [0]}, "hidden layers of a decoder must be a list of positive whole numbers"),
        ({"preset": "paper", "input_shape": (1, 8, 8)}, "a 9×9 kernel is larger than its 8×8 input"),
    ],
)
def test_one_sentence_for_a_mistake(options: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        CapsNet(**options)


def test_matrix_capsules_have_no_single_set_of_votes() -> None:
    with pytest.raises(ModelError, match="only vector capsules have one set of votes"):
        CapsNet(preset="matrix").votes(torch.zeros(1, 1, 28, 28))


def test_no_decoder_no_images() -> None:
    model = CapsNet(decoder=[])
    with pytest.raises(ModelError, match="has no decoder"):
        model.decode(torch.zeros(1, 10, 16), torch.tensor([0]))
