"""Saved DNNs and CNNs read without torch: the same network as torch's own, and engines that agree with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from closecall.errors import ModelError
from closecall.models import CNN, DNN, load_model, save_model, zoo_names
from closecall.models.plain import load_plain
from closecall.readers import read
from closecall.readers.engines import open_session, run_session
from closecall.readers.plain import network_of
from closecall.readers.plain_engines import onnx_bytes, run_plain

PLAIN_ZOO = [f"zoo:{name}" for name in zoo_names() if "caps" not in name]
BLOCKS = ["3x6s2/3s1", "2x3p1/2"]
DESIGNS = {
    "dnn": lambda: DNN((9, 8)),
    "relu outputs": lambda: DNN((9, 8), bias=False, outputs="relu"),
    "cnn": lambda: CNN(BLOCKS, hidden=(6,), outputs="relu"),
    "paper": lambda: CNN(BLOCKS, hidden=(6, 5), convolution="paper"),
    "paper without bias": lambda: CNN(BLOCKS, hidden=(), convolution="paper", bias=False),
    "colour": lambda: CNN(["4x5s2/3s2"], input_shape=(3, 31, 34), classes=3, strict=False),
    "no pooling": lambda: CNN(input_shape=(3, 21, 23)),
}


def saved(name: str, folder: Path) -> nn.Module:
    torch.manual_seed(5)
    model = DESIGNS[name]().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3)
    save_model(model, folder)
    return model


@pytest.mark.parametrize("name", DESIGNS)
def test_a_folder_is_read_as_torch_would(name: str, tmp_path: Path) -> None:
    module = saved(name, tmp_path)
    check(module, tmp_path)


@pytest.mark.parametrize("source", PLAIN_ZOO)
def test_the_zoo_is_read_as_torch_would(source: str) -> None:
    check(load_model(source), source)


def check(module: nn.Module, source: str | Path) -> None:
    """The very same network as from a watched forward pass, and the same scores from every engine."""
    plain = load_plain(source)
    assert plain is not None
    watched = read(module).network
    assert network_of(plain).fingerprint == read(source).network.fingerprint == watched.fingerprint
    images = np.random.default_rng(3).random((4, *plain.input_shape), dtype=np.float32)
    expected = module(torch.from_numpy(images)).detach().numpy()
    session = run_session(open_session(onnx_bytes(plain)), plain.input_shape)
    for engine in (run_plain(plain), session):
        scores = engine(images)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
        np.testing.assert_allclose(engine(images[:1]), scores[:1], rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_left_to_torch_to_explain(tmp_path: Path) -> None:
    saved("cnn", tmp_path)
    weights = tmp_path / "model.safetensors"
    whole = load_file(weights)
    broken = {
        "NaN": {**whole, "layers.0.bias": torch.full_like(whole["layers.0.bias"], float("nan"))},
        "lacks": {name: tensor for name, tensor in whole.items() if name != "layers.0.bias"},
        "unknown": {**whole, "layers.1.bias": torch.zeros(3)},
        "float64": {**whole, "layers.0.bias": whole["layers.0.bias"].double()},
        "needs": {**whole, "layers.0.bias": torch.zeros(4)},
    }
    for words, tensors in broken.items():
        save_file(tensors, weights)
        assert load_plain(tmp_path) is None
        with pytest.raises(ModelError, match=words):
            read(tmp_path)
    weights.write_bytes(b"none")
    with pytest.raises(ModelError, match="not a whole safetensors file"):
        read(tmp_path)


def test_a_shape_that_the_model_does_not_take(tmp_path: Path) -> None:
    saved("cnn", tmp_path)
    with pytest.raises(ModelError, match="fails on an image of shape"):
        read(tmp_path, (3, 28, 28))


def test_capsules_take_torch() -> None:
    assert load_plain("zoo:mnist-caps") is None


@pytest.mark.parametrize("source", ["zoo:mnist-dnn1", "zoo:mnist-cnn"])
@pytest.mark.parametrize(("loaded_before", "engine"), [("sys", "numpy"), ("torch", "torch")])
def test_two_engines_whether_torch_is_loaded_or_not(source: str, loaded_before: str, engine: str) -> None:
    script = f"""
import sys, {loaded_before}
from closecall import read
classifier = read({source!r})
print(*classifier.engines, classifier.network.fingerprint, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = str(engine == "torch")
    assert done.stdout.split() == [engine, "onnxruntime", read(source).network.fingerprint, loaded]
