"""Where a saved model's files are, and what is written about it; no torch is needed to know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from closecall.errors import ModelError
from closecall.models.zoo import ZOO_PREFIX, zoo_files

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin")


def describe(source: str | Path) -> dict[str, Any]:
    """Give what is written about a saved model: kind, config, data set, recipe, accuracy, size."""
    return _read_description(model_files(source)[1])


def model_files(source: str | Path) -> tuple[Path, Path]:
    """Give the weights and the description of a zoo model, or of one in a folder."""
    if str(source).startswith(ZOO_PREFIX):
        return zoo_files(str(source).removeprefix(ZOO_PREFIX))
    path = Path(source)
    if path.suffix.lower() in PICKLES:
        raise ModelError(
            f"{path} is a pickle, which can run code when it is opened, so closecall never loads one: "
            "give a folder written by `closecall train`, `zoo:NAME` or an ONNX file."
        )
    if not path.is_dir():
        raise ModelError(
            f"{path} is not a folder: give one that `closecall train` wrote, or `zoo:NAME`; "
            "`closecall zoo` lists the names."
        )
    return path / "model.safetensors", path / "model.json"


def _read_description(path: Path) -> dict[str, Any]:
    described: Any
    try:
        described = json.loads(read_content(path))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON ({error}): train or copy the model again.") from error
    valid = isinstance(described, dict) and isinstance(described.get("kind"), str)
    if not valid or not isinstance(described.get("config"), dict):
        raise ModelError(f"{path} does not describe a model: it needs a `kind` and a `config`.")
    return dict(described)


def read_content(path: Path) -> bytes:
    """Give a file of a saved model."""
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(
            f"Cannot read {path}: {reason}; a trained model's folder has model.json and model.safetensors."
        ) from error
