"""A model as ONNX, for any other tool."""

from __future__ import annotations

import copy
import io
import warnings

import torch
from torch import nn

from closecall.models.modules import PaperConv2d
from closecall.models.registry import as_trainable

OPSET = 17


def onnx_bytes(model: nn.Module) -> bytes:
    """Give a model as an ONNX file: `image` (any batch, channels, height, width) in, `scores` out.

    The model itself is left as it was; a paper convolution leaves as the ordinary one that computes the same.
    """
    exported = _with_ordinary_convolutions(copy.deepcopy(model)).eval()
    file = io.BytesIO()
    example = torch.zeros(1, *as_trainable(model).input_shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            exported,
            (example,),
            file,  # type: ignore[arg-type]
            input_names=["image"],
            output_names=["scores"],
            dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
            opset_version=OPSET,
            dynamo=False,
        )
    return file.getvalue()


def _with_ordinary_convolutions(module: nn.Module) -> nn.Module:
    for name, child in module.named_children():
        if isinstance(child, PaperConv2d):
            setattr(module, name, child.as_conv2d())
        else:
            _with_ordinary_convolutions(child)
    return module
