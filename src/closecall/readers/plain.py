"""Read a saved DNN or CNN without torch: its network, and two engines that run it from the same weights."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closecall.models.designs import Convolution, Dense, Pooling, Rectifier
from closecall.models.plain import PlainLayer, PlainModel, load_plain
from closecall.network import Network
from closecall.network.windows import Sliding
from closecall.readers.classifier import Classifier, Engine, agreed
from closecall.readers.engines import open_session, run_session
from closecall.readers.graph import GraphBuilder
from closecall.readers.plain_engines import onnx_bytes, run_plain
from closecall.readers.tensor import Tensor


def read_plain(source: str | Path, input_shape: tuple[int, ...] | None) -> Classifier | None:
    """Read a zoo model or a folder, or give None where that takes torch."""
    model = load_plain(source)
    if model is None or input_shape not in (None, model.input_shape):
        return None
    network = network_of(model)
    engines = engines_of(model, source)
    for name, engine in engines.items():
        agreed(network, "", {name: engine}, str(source))
    return Classifier(network, engines, str(source))


def engines_of(model: PlainModel, source: str | Path) -> Mapping[str, Engine]:
    """onnxruntime, and another one: torch where it is loaded already, else NumPy."""
    session = run_session(open_session(onnx_bytes(model)), model.input_shape)
    if "torch" not in sys.modules:
        return {"numpy": run_plain(model), "onnxruntime": session}
    from closecall.models import load_model
    from closecall.readers.module_engines import run_module

    return {"torch": run_module(load_model(source), model.input_shape), "onnxruntime": session}


def network_of(model: PlainModel) -> Network:
    """Write the layers down as a network in float64."""
    builder = GraphBuilder(model.input_shape)
    tensor = builder.input()
    for layer in model.layers:
        tensor = _written(builder, tensor, layer)
    return builder.finish(tensor)


def _written(builder: GraphBuilder, tensor: Tensor, layer: PlainLayer) -> Tensor:
    design, weight, bias = layer.design, _double(layer.weight), _double(layer.bias)
    if isinstance(design, Dense) and weight is not None:
        return builder.matmul(tensor, weight.T, bias)
    if isinstance(design, Convolution) and weight is not None:
        padding = (design.padding, design.padding)
        sliding = Sliding.over(weight.shape[2:], (design.stride, design.stride), before=padding)
        return builder.convolution(tensor, weight, bias, sliding)
    if isinstance(design, Pooling):
        window, steps = (design.size, design.size), (design.stride, design.stride)
        return builder.max_pool(tensor, Sliding.over(window, steps))
    if isinstance(design, Rectifier):
        return builder.relu(tensor)
    return tensor.moved(lambda places: places.reshape(1, -1))


def _double(weights: NDArray[np.float32] | None) -> NDArray[np.float64] | None:
    return None if weights is None else weights.astype(np.float64)
