"""The architectures by name, and how to build one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, Protocol, cast

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from closecall.errors import ModelError
from closecall.models.capsnet import CapsNet
from closecall.models.checks import MOST_WEIGHTS
from closecall.models.cnn import CNN
from closecall.models.cnn_baseline import CNNBaseline
from closecall.models.dnn import DNN

# The functions that layers make their weights with, each given its sizes.
MAKERS = {torch.empty, torch.eye, torch.ones, torch.rand, torch.randn, torch.zeros}

MODELS: dict[str, type[nn.Module]] = {
    "dnn": DNN,
    "cnn": CNN,
    "cnn-baseline": CNNBaseline,
    "capsnet": CapsNet,
}


class TrainableModel(Protocol):
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
    try:
        with torch.random.fork_rng(devices=[]), WeightLimit():
            torch.manual_seed(seed)
            return MODELS[kind](**config)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"The model {kind} cannot be built from these options: {reason}.") from error


class WeightLimit(TorchFunctionMode):
    """Refuses an architecture with too many weights before any memory is taken for them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.count += numbers_made(func, args)
        if self.count > MOST_WEIGHTS:
            raise ModelError(
                f"The model would have {self.count:,} weights or more, and closecall takes at most "
                f"{MOST_WEIGHTS:,}: make its layers or its images smaller."
            )
        return func(*args, **(kwargs or {}))


def numbers_made(func: Any, args: tuple[Any, ...]) -> int:
    """How many numbers a call of one of torch's functions takes memory for, if it makes weights."""
    if func is torch.Tensor.repeat:
        return int(args[0].numel() * math.prod(args[1:]))
    if func not in MAKERS:
        return 0
    sizes = args[0] if args and isinstance(args[0], (tuple, list)) else args
    return int(math.prod(sizes) ** (2 if func is torch.eye else 1))


def kind_of(model: nn.Module) -> str:
    """Give the name under which a model's class is registered."""
    for kind, model_class in MODELS.items():
        if type(model) is model_class:
            return kind
    raise ModelError(
        f"Only the models {', '.join(MODELS)} can be saved with their architecture, "
        f"not {type(model).__name__}: export it to ONNX instead."
    )


def as_trainable(model: nn.Module) -> TrainableModel:
    """See a module as one that can be trained and saved, or say what it lacks."""
    missing = [name for name in ("input_shape", "classes", "config") if not hasattr(model, name)]
    if missing:
        raise ModelError(f"{type(model).__name__} cannot be trained or saved here: it has no `{missing[0]}`.")
    return cast("TrainableModel", model)
