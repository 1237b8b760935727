"""The baseline: its published count, its shape on any image, its layers against functions of torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from closecall.errors import ModelError
from closecall.models import (
    CNNBaseline,
    build,
    count_parameters,
    count_units,
    describe,
    load_model,
    save_model,
)
from closecall.models.zoo import summarise
from closecall.readers import read


def narrow(**options: object) -> CNNBaseline:
    return CNNBaseline((4, 3, 2), (6, 5), (2, 7, 6), 3, **options)  # type: ignore[arg-type]


def test_the_published_count() -> None:
    with torch.device("meta"):
        paper = CNNBaseline()
    assert count_parameters(paper) == 35_445_522  # 35.4 M
    assert [tuple(layer.weight.shape[:2]) for layer in paper.layers if hasattr(layer, "weight")] == [
        (256, 1), (256, 256), (128, 256), (328, 28 * 28 * 128), (192, 328), (10, 192),
    ]  # fmt: skip


def test_forward_against_functions() -> None:
    torch.manual_seed(1)
    model = narrow().eval()
    for parameter in model.parameters():
        parameter.data.normal_()
    images = torch.rand(5, 2, 7, 6)
    weights = list(model.parameters())
    values = images
    for weight, bias in zip(weights[0:6:2], weights[1:6:2], strict=True):
        values = F.relu(F.conv2d(values, weight, bias, stride=1, padding=2))
    assert values.shape == (5, 2, 7, 6)
    values = values.flatten(1)
    for weight, bias in zip(weights[6:10:2], weights[7:10:2], strict=True):
        values = F.relu(values @ weight.T + bias)
    torch.testing.assert_close(model(images), values @ weights[10].T + weights[11])
    assert count_units(model) == 7 * 6 * 9 + 11


def test_dropout_is_for_training_only() -> None:
    model = narrow(dropout=0.9)
    images = torch.rand(1, 2, 7, 6).repeat(64, 1, 1, 1)
    assert model.train()(images).std(0).max() > 0
    assert model.eval()(images).std(0).max() == 0


def test_saved_loaded_and_read_exactly(tmp_path: Path) -> None:
    model = build("cnn-baseline", narrow().config(), seed=3).eval()
    save_model(model, tmp_path)
    images = torch.rand(4, 2, 7, 6)
    assert torch.equal(load_model(tmp_path)(images), model(images))
    assert summarise(describe(tmp_path)) == "4-3-2 kernels 5x5, 6-5"
    network = read(tmp_path).network  # compared with torch and with onnxruntime as it is read
    np.testing.assert_allclose(
        network.forward(images.numpy().astype(np.float64)), model(images).detach().numpy(), atol=1e-5
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernels": ()}, "kernels of a baseline"),
        ({"hidden": (0,)}, "dense layers of a baseline"),
        ({"dropout": 1}, "below 1"),
        ({"dropout": -0.1}, "below 1"),
        ({"dropout": "half"}, "below 1"),
        ({"classes": 1}, "at least 2 classes"),
    ],
)
def test_bad_arguments(options: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        CNNBaseline(**{"kernels": (2, 2, 2), "hidden": (3,), "input_shape": (1, 4, 4), **options})  # type: ignore[arg-type]
