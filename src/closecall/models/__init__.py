"""Classifiers as plain torch modules: build, save and load them.

A new architecture is one file and one line in `MODELS`. Its class takes JSON-able arguments, gives them back
from `config()`, has `input_shape` and `classes`, and may bring its own loss for training:
`training_loss(images, labels) -> (loss, scores)`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from closecall.models.blocks import Block
    from closecall.models.capsnet import CapsNet
    from closecall.models.cnn import CNN
    from closecall.models.cnn_baseline import CNNBaseline
    from closecall.models.dnn import DNN
    from closecall.models.folders import describe
    from closecall.models.modules import PaperConv2d
    from closecall.models.registry import MODELS, TrainableModel, build, kind_of
    from closecall.models.size import count_parameters, count_units
    from closecall.models.store import load_model, save_model
    from closecall.models.zoo import zoo_names

# Names are imported when first used: the list of the zoo and the weights of a DNN need no torch.
_HOMES = {
    "CNN": "cnn",
    "DNN": "dnn",
    "MODELS": "registry",
    "Block": "blocks",
    "CNNBaseline": "cnn_baseline",
    "CapsNet": "capsnet",
    "PaperConv2d": "modules",
    "TrainableModel": "registry",
    "build": "registry",
    "count_parameters": "size",
    "count_units": "size",
    "describe": "folders",
    "kind_of": "registry",
    "load_model": "store",
    "save_model": "store",
    "zoo_names": "zoo",
}

__all__ = [
    "CNN",
    "DNN",
    "MODELS",
    "Block",
    "CNNBaseline",
    "CapsNet",
    "PaperConv2d",
    "TrainableModel",
    "build",
    "count_parameters",
    "count_units",
    "describe",
    "kind_of",
    "load_model",
    "save_model",
    "zoo_names",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
