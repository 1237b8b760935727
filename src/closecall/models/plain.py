"""A saved DNN or CNN as layers with their weights in plain arrays, for whoever can do without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closecall.errors import ModelError
from closecall.models.checks import MOST_WEIGHTS
from closecall.models.designs import DESIGNS, Convolution, Dense, DesignLayer
from closecall.models.folders import describe, model_files, read_content

Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PlainLayer:
    """A layer and its weights; those of a paper convolution are the ordinary one's that computes the same."""

    design: DesignLayer
    weight: Weights | None = None
    bias: Weights | None = None


@dataclass(frozen=True, eq=False)
class PlainModel:
    """All layers from the image to the scores."""

    input_shape: tuple[int, int, int]
    layers: tuple[PlainLayer, ...]


def load_plain(source: str | Path) -> PlainModel | None:
    """Load a saved model, or give None where only torch can: it builds the rest and says what is wrong."""
    described = describe(source)
    if described["kind"] not in DESIGNS:
        return None
    try:
        design = DESIGNS[described["kind"]](**described["config"])
        layers = design.layers()
    except (ModelError, TypeError, ValueError, OverflowError):
        return None
    tensors = _read_arrays(model_files(source)[0])
    if tensors is None or not _belong(tensors, layers):
        return None
    return PlainModel(
        design.input_shape, tuple(_filled(layer, place, tensors) for place, layer in enumerate(layers))
    )


def _read_arrays(path: Path) -> Mapping[str, Weights] | None:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors: Mapping[str, Weights] = load(read_content(path))
    except (SafetensorError, ValueError, KeyError, TypeError):
        return None
    return tensors


def _belong(tensors: Mapping[str, Weights], layers: list[DesignLayer]) -> bool:
    """Whether there is one finite float32 tensor of the right shape for each that the layers need."""
    wanted = {
        f"layers.{place}.{name}": shape
        for place, layer in enumerate(layers)
        if isinstance(layer, (Dense, Convolution))
        for name, shape in layer.tensors().items()
    }
    if tensors.keys() != wanted.keys() or sum(map(_numbers_held, layers)) > MOST_WEIGHTS:
        return False
    fitting = (
        tensors[name].shape == shape and tensors[name].dtype == np.float32 for name, shape in wanted.items()
    )
    return all(fitting) and all(np.isfinite(tensor).all() for tensor in tensors.values())


def _numbers_held(layer: DesignLayer) -> int:
    """How many weights a layer has once a paper convolution is written as an ordinary one."""
    if not isinstance(layer, (Dense, Convolution)):
        return 0
    spread = layer.maps**2 if isinstance(layer, Convolution) and layer.paper else 1
    return spread * sum(math.prod(shape) for shape in layer.tensors().values())


def _filled(layer: DesignLayer, place: int, tensors: Mapping[str, Weights]) -> PlainLayer:
    if not isinstance(layer, (Dense, Convolution)):
        return PlainLayer(layer)
    bias = tensors.get(f"layers.{place}.bias")
    if not isinstance(layer, Convolution) or not layer.paper:
        return PlainLayer(layer, tensors[f"layers.{place}.weight"], bias)
    # (m, 1, 1, f, f) · (α, α, 1, 1) -> (m, α, α, f, f) -> (m·α, α, f, f)
    each_map = np.eye(layer.maps, dtype=np.float32)[:, :, np.newaxis, np.newaxis]
    weight = tensors[f"layers.{place}.kernels"] * each_map
    repeated = None if bias is None else bias.repeat(layer.maps)
    return PlainLayer(layer, weight.reshape(-1, *weight.shape[2:]), repeated)
