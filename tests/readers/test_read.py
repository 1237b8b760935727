"""Everything a user may call a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from closecall import models
from closecall.errors import ModelError
from closecall.models import CNN, DNN, Block
from closecall.readers import Classifier, read

torch.set_num_threads(1)

ARCHITECTURES = {
    "dnn": lambda: DNN((12, 7), (1, 9, 8), 4),
    "dnn with relu outputs": lambda: DNN((6,), (2, 4, 4), 3, outputs="relu", bias=False),
    "cnn": lambda: CNN([Block(3, 3, 1, 1, 2), Block(2, 3)], (9,), (1, 8, 8), 3),
    "cnn by the paper": lambda: CNN(
        [Block(2, 3, 1, 0, 2), Block(2, 2)], (9,), (2, 8, 8), 3, convolution="paper"
    ),
    "cnn that rounds down": lambda: CNN([Block(2, 3, 2, 0, 2, 1)], (), (1, 8, 8), 3, strict=False),
}


def check_engines(classifier: Classifier, module: nn.Module) -> None:
    images = np.random.default_rng(3).random((5, *classifier.network.input_shape), dtype=np.float32)
    with torch.no_grad():
        expected = module(torch.from_numpy(images)).numpy()
        exact = module.double()(torch.from_numpy(images).double()).numpy()
        module.float()
    np.testing.assert_allclose(classifier.network.forward(images.astype(np.float64)), exact, atol=1e-10)
    assert list(classifier.engines) == ["torch", "onnxruntime"]
    for engine in classifier.engines.values():
        np.testing.assert_allclose(engine(images), expected, atol=1e-4)
        np.testing.assert_allclose(engine(images[:1]), expected[:1], atol=1e-4)
    assert classifier.predict(images[2]) == expected[2].argmax()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_our_own_models_know_their_shape(name: str) -> None:
    torch.manual_seed(0)
    module = ARCHITECTURES[name]().eval()
    classifier = read(module)
    assert classifier.network.input_shape == module.input_shape
    assert classifier.network.classes == module.classes
    check_engines(classifier, module)


@pytest.mark.parametrize("name", ["dnn", "cnn by the paper"])
def test_a_trained_folder_and_its_onnx_file_are_the_same_network(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = ARCHITECTURES[name]().eval()
    models.save_model(module, tmp_path)
    folder, file = read(tmp_path), read(tmp_path / "model.onnx")
    check_engines(folder, module)
    assert list(file.engines) == ["onnxruntime"]
    assert file.network.input_shape == folder.network.input_shape
    images = np.random.default_rng(0).random((4, *file.network.input_shape))
    np.testing.assert_allclose(file.network.forward(images), folder.network.forward(images), atol=1e-10)
    assert file.source == str(tmp_path / "model.onnx")


@pytest.mark.parametrize("name", models.zoo_names())
def test_the_zoo_is_read_exactly(name: str) -> None:
    classifier = read(f"zoo:{name}")
    check_engines(classifier, models.load_model(f"zoo:{name}"))
    assert classifier.source == f"zoo:{name}"


def test_a_module_without_a_shape_needs_one() -> None:
    with pytest.raises(ModelError, match="pass input_shape"):
        read(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).eval())


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".PT"])
def test_pickles_are_refused_with_what_to_do(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    torch.save(nn.Linear(2, 2), path)
    with pytest.raises(ModelError, match="export it to ONNX"):
        read(path)


@pytest.mark.parametrize("model", [42, None, [1, 2], np.zeros(3), "model.h5", "zoo:nothing", "missing.onnx"])
def test_anything_else_is_one_clear_sentence(model: object) -> None:
    with pytest.raises(ModelError) as caught:
        read(model)
    assert "\n" not in str(caught.value)


def test_an_onnx_file_is_read_without_torch(tmp_path: Path) -> None:
    models.save_model(DNN((3,), (1, 2, 2), 2), tmp_path)
    code = (
        "import sys; from closecall.readers import read; "
        f"c = read({str(tmp_path / 'model.onnx')!r}); "
        "sys.exit(3 if 'torch' in sys.modules else c.network.classes)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 2


def test_the_engine_handles_images_one_by_one_if_the_module_mixes_them() -> None:
    class Mixing(nn.Module):
        input_shape = (3,)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images - images.mean(0, keepdim=True) + torch.relu(images)

    classifier = read(Mixing().eval())
    images = np.random.default_rng(0).random((4, 3), dtype=np.float32)
    np.testing.assert_allclose(classifier.engines["torch"](images), images, atol=1e-6)
