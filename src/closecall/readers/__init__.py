"""From whatever the user calls a model to a network that can be reasoned about, and engines to replay it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

from closecall.errors import ModelError
from closecall.readers.classifier import Classifier, Engine, agreed

__all__ = ["Classifier", "Engine", "read"]

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin")


def read(model: object, input_shape: tuple[int, ...] | None = None) -> Classifier:
    """Read a model once, to ask many questions about it: `nearest`, `certify`, `ideal` and `attack` take it.

    What is read is compared with the original on random images before it is given back.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        input_shape: The shape of one image, such as (1, 28, 28), for a model that leaves it open.
    """
    if input_shape is not None:
        input_shape = _checked(input_shape)
    # A module can only come from someone who has imported torch; nobody else needs to wait for it.
    if "torch" in sys.modules and isinstance(model, sys.modules["torch"].nn.Module):
        return _read_module(model, input_shape, type(model).__name__)
    if not isinstance(model, (str, Path)):
        raise ModelError(
            "A model is an nn.Module, a path to .onnx, a folder written by `closecall train`, or zoo:NAME, "
            f"not {type(model).__name__}."
        )
    path = Path(model)
    if path.suffix.lower() in PICKLES:
        raise ModelError(
            f"{path} is a pickle, and opening one from a stranger runs their code: load it yourself and pass "
            "the module, or export it to ONNX."
        )
    if str(model).startswith("zoo:") or path.is_dir():
        return _read_saved(model, input_shape)
    if path.suffix.lower() != ".onnx":
        raise ModelError(
            f"{path} is not a model: give an .onnx file, a folder written by `closecall train`, or zoo:NAME."
        )
    from closecall.readers.onnx import read_file

    return read_file(path, input_shape)


def _checked(shape: object) -> tuple[int, ...]:
    listed = isinstance(shape, (tuple, list)) and len(shape) > 0
    if not listed or not all(isinstance(side, int) and side > 0 for side in cast("list[Any]", shape)):
        raise ModelError(
            f"The shape of one image must be positive whole numbers such as (1, 28, 28), not {shape}."
        )
    return tuple(cast("list[int]", shape))


def _read_saved(source: str | Path, input_shape: tuple[int, ...] | None) -> Classifier:
    from closecall.readers.plain import read_plain

    classifier = read_plain(source, input_shape)
    if classifier is not None:
        return classifier
    from closecall.models import load_model

    return _read_module(load_model(source), input_shape, str(source))


def _read_module(module: Any, input_shape: tuple[int, ...] | None, source: str) -> Classifier:
    from closecall.readers.module_engines import ModuleEngines
    from closecall.readers.torch import precision_of, read_module

    shape = getattr(module, "input_shape", None) if input_shape is None else input_shape
    if shape is None:
        raise ModelError(
            "The shape of one image is not known: pass input_shape, such as (1, 28, 28), with the module."
        )
    shape = _checked(shape)
    engines, precision = ModuleEngines(module, shape), precision_of(module)
    if _is_capsules(module):
        from closecall.readers.capsules import read_capsules

        return agreed(read_capsules(module, shape), "", engines, source, precision=precision)
    builder, output = read_module(module, shape)
    return agreed(builder.finish(output), output.peeled, engines, source, precision=precision)


def _is_capsules(module: Any) -> bool:
    # Our own classes are known only where somebody has loaded them.
    known = sys.modules.get("closecall.models.capsnet")
    return known is not None and isinstance(module, known.CapsNet)
