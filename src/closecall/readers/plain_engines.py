"""A saved DNN or CNN in float32 from its plain weights: by NumPy, and as an ONNX file for onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from closecall.models.designs import Convolution, Dense, Flattening, Pooling, Rectifier
from closecall.models.plain import PlainLayer, PlainModel
from closecall.readers.classifier import Engine, Images

OPSET, FORMAT = 17, 8


def run_plain(model: PlainModel) -> Engine:
    """The layers one after the other, in float32."""

    def run(images: Images) -> Images:
        values = np.asarray(images, dtype=np.float32).reshape(len(images), *model.input_shape)
        for layer in model.layers:
            values = _applied(layer, values)
        return values

    return run


def _applied(layer: PlainLayer, values: Images) -> Images:
    design = layer.design
    if isinstance(design, Dense) and layer.weight is not None:
        return _with_bias(values @ layer.weight.T, layer.bias)
    if isinstance(design, Convolution) and layer.weight is not None:
        grown = [(0, 0), (0, 0), *[(design.padding, design.padding)] * 2]
        windows = _windows(np.pad(values, grown), design.size, design.stride)
        # (count, maps, height, width, size, size) · (kernels, maps, size, size)
        sums = np.tensordot(windows, layer.weight, axes=((1, 4, 5), (1, 2, 3)))
        return np.moveaxis(_with_bias(sums, layer.bias), 3, 1)
    if isinstance(design, Pooling):
        return np.asarray(_windows(values, design.size, design.stride).max(axis=(4, 5)))
    return np.maximum(values, 0) if isinstance(design, Rectifier) else values.reshape(len(values), -1)


def _windows(values: Images, size: int, stride: int) -> Images:
    """(count, maps, height, width, size, size): all square windows that fit, by steps of the stride."""
    return sliding_window_view(values, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]


def _with_bias(sums: Images, bias: NDArray[np.float32] | None) -> Images:
    return sums if bias is None else sums + bias


def onnx_bytes(model: PlainModel) -> bytes:
    """The layers as an ONNX file: `image` (any batch, channels, height, width) in, `scores` out."""
    import onnx
    from onnx import helper, numpy_helper

    nodes, weights, name = [], [], "image"
    for place, layer in enumerate(model.layers):
        given = {f"{place}.weight": layer.weight, f"{place}.bias": layer.bias}
        held = {key: value for key, value in given.items() if value is not None}
        weights += [numpy_helper.from_array(np.ascontiguousarray(value), key) for key, value in held.items()]
        output = "scores" if place == len(model.layers) - 1 else f"{place}"
        operator, attributes = _operator(layer)
        nodes.append(helper.make_node(operator, [name, *held], [output], **attributes))
        name = output
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "closecall",
        [helper.make_tensor_value_info("image", kind, ["batch", *model.input_shape])],
        [helper.make_tensor_value_info("scores", kind, ["batch", None])],
        weights,
    )
    opset = [helper.make_opsetid("", OPSET)]
    content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=FORMAT).SerializeToString()
    return content


def _operator(layer: PlainLayer) -> tuple[str, dict[str, Any]]:
    """The name of a layer's operator and its attributes."""
    design = layer.design
    if isinstance(design, Dense):
        return "Gemm", {"transB": 1}
    if isinstance(design, Convolution):
        return "Conv", {"strides": [design.stride] * 2, "pads": [design.padding] * 4}
    if isinstance(design, Pooling):
        return "MaxPool", {"kernel_shape": [design.size] * 2, "strides": [design.stride] * 2}
    return ("Flatten" if isinstance(design, Flattening) else "Relu"), {}
