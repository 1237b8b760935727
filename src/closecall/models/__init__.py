"""Classifiers as plain torch modules: build, save and load them.

A new architecture is one file and one line in `MODELS`. Its class takes JSON-able arguments, gives them back
from `config()`, has `input_shape` and `classes`, and may bring its own loss for training:
`training_loss(images, labels) -> (loss, scores)`.
"""

from __future__ import annotations

from closecall.models.blocks import Block
from closecall.models.capsnet import CapsNet
from closecall.models.cnn import CNN, PaperConv2d
from closecall.models.cnn_baseline import CNNBaseline
from closecall.models.dnn import DNN
from closecall.models.registry import MODELS, TrainableModel, build, kind_of
from closecall.models.size import count_parameters, count_units
from closecall.models.store import describe, load_model, save_model
from closecall.models.zoo import zoo_names

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
