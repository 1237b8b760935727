"""The architectures by name, and how to build one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch import nn

from closecall.errors import ModelError
from closecall.models.capsnet import CapsNet
from closecall.models.cnn import CNN
from closecall.models.cnn_baseline import CNNBaseline
from closecall.models.dnn import DNN

MODELS: dict[str, type[nn.Module]] = {
    "dnn": DNN,
    "cnn": CNN,
    "cnn-baseline": CNNBaseline,
    "capsnet": CapsNet,
}


class Classifier(Protocol):
    """What closecall's own models have beyond a plain module."""

    input_shape: tuple[int, int, int]
    classes: int

    def config(self) -> dict[str, Any]:
        """Give the arguments that build this architecture again, ready for JSON."""
        ...


def build(kind: str, config: Mapping[str, Any], *, seed: int = 0) -> nn.Module:
    """Build an architecture with fresh weights drawn from `seed`; torch's own generator stays as it was."""
    if kind not in MODELS:
        raise ModelError(f"There is no model {kind!r}; the models are {', '.join(MODELS)}.")
    taken = inspect.signature(MODELS[kind]).parameters
    unknown = [name for name in config if name not in taken]
    if unknown:
        raise ModelError(
            f"The model {kind} has no option {unknown[0]!r}; its options are {', '.join(taken)}."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[kind](**config)


def kind_of(model: nn.Module) -> str:
    """Give the name under which a model's class is registered."""
    for kind, model_class in MODELS.items():
        if type(model) is model_class:
            return kind
    raise ModelError(
        f"Only the models {', '.join(MODELS)} can be saved with their architecture, "
        f"not {type(model).__name__}: export it to ONNX instead."
    )


def as_classifier(model: nn.Module) -> Classifier:
    """See a module as a classifier, or say what it lacks."""
    missing = [name for name in ("input_shape", "classes", "config") if not hasattr(model, name)]
    if missing:
        raise ModelError(f"{type(model).__name__} cannot be trained or saved here: it has no `{missing[0]}`.")
    return cast("Classifier", model)
