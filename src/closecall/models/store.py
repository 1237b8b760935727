"""Models on disk: weights in safetensors, architecture in JSON, the whole in ONNX; never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor, nn

from closecall._version import __version__
from closecall.errors import ModelError
from closecall.files import write_whole
from closecall.models.export import onnx_bytes
from closecall.models.folders import describe, model_files, read_content
from closecall.models.registry import as_trainable, build, kind_of
from closecall.models.size import count_parameters, count_units

PARTIAL = ".*.part"


def save_model(model: nn.Module, folder: str | Path, **metadata: Any) -> None:
    """Write `model.safetensors`, `model.json` (architecture and metadata) and `model.onnx` into a folder."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "model.safetensors", weights_bytes(model))
        write_whole(folder / "model.onnx", onnx_bytes(model))
        write_whole(folder / "model.json", description_bytes(model, metadata))
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"Cannot write the model into {folder}: {reason}; choose another folder.") from error


def weights_bytes(model: nn.Module) -> bytes:
    """Give a model's weights as the content of a safetensors file."""
    content: bytes = dump_tensors({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    return content


def description_bytes(model: nn.Module, metadata: Mapping[str, Any]) -> bytes:
    """Give a model's architecture, size and metadata as the content of a JSON file."""
    described = {
        "kind": kind_of(model),
        "config": as_trainable(model).config(),
        "parameters": count_parameters(model),
        "units": count_units(model),
        **metadata,
        "version": __version__,
    }
    return (json.dumps(described, indent=2, ensure_ascii=False) + "\n").encode()


def load_model(source: str | Path) -> nn.Module:
    """Load a trained model as a torch module, ready to classify.

    Args:
        source: A folder that `save_model` or `closecall train` wrote, or "zoo:NAME".
    """
    described, weights = describe(source), model_files(source)[0]
    model = build(described["kind"], described["config"])
    _fill(model, _read_weights(weights), weights)
    return model.eval()


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = parse_tensors(read_content(path))
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelError(
            f"{path} is not a whole safetensors file ({error}): train or copy it again."
        ) from error
    return tensors


def _fill(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Put weights into a model after checking names, shapes, types and values."""
    wanted = model.state_dict()
    if tensors.keys() != wanted.keys():
        odd = sorted(tensors.keys() ^ wanted.keys())[0]
        state = "lacks" if odd in wanted else "has an unknown"
        raise ModelError(
            f"{path} {state} tensor {odd!r}, so it does not belong to the architecture beside it."
        )
    for name, empty in wanted.items():
        tensor = tensors[name]
        if tensor.shape != empty.shape or tensor.dtype != empty.dtype:
            raise ModelError(
                f"{path}: {name!r} is {tensor.dtype} {tuple(tensor.shape)} but the architecture beside it "
                f"needs {empty.dtype} {tuple(empty.shape)}."
            )
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{path}: {name!r} holds NaN or infinite weights; train the model again.")
    model.load_state_dict(tensors)
