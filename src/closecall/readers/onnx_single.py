"""One ONNX node on its own, run by onnxruntime: on constants, or on numbered places to see them move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from closecall.arrays import Indices
from closecall.errors import UnsupportedLayerError
from closecall.network.windows import check_entries
from closecall.readers.classifier import first_line
from closecall.readers.engines import open_session
from closecall.readers.tensor import Tensor

Values = NDArray[Any]

RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}
# Their outputs are at most as large as their inputs, times the number of sides.
NEVER_LARGER = {"Compress", "NonZero", "Unique"}
# Each output is computed from whole rows of the inputs, so the work grows with the product of their sizes.
HEAVY = {
    "Attention",
    "AveragePool",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "DFT",
    "Det",
    "Einsum",
    "GRU",
    "Gemm",
    "LSTM",
    "LpPool",
    "MatMulInteger",
    "MaxPool",
    "QLinearConv",
    "QLinearMatMul",
    "RNN",
}
MOST_PRODUCTS = 10**9
# Numbers that decide an output's shape are few: longer inputs need not be shown to shape inference.
SHAPE_NUMBERS = 1000
# Up to here every whole number is a float32.
EXACT_SINGLES = 2**24
GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def fold(node: Any, inputs: Sequence[Values | None], opset: int) -> list[Values]:
    """What a node gives for constants, as onnxruntime computes it: floats as float64."""
    if node.op_type in RANDOM:
        raise UnsupportedLayerError("its numbers are random: a proof needs a network that stays the same.")
    products = math.prod(max(1, value.size) for value in inputs if value is not None)
    if node.op_type in HEAVY and products > MOST_PRODUCTS:
        raise UnsupportedLayerError("its constants are too large to be multiplied here.")
    failure = ""
    for kind in (np.float32, np.float64, np.float16):
        try:
            results = _run(node, [None if value is None else _typed(value, kind) for value in inputs], opset)
        except _CannotRunError as error:
            failure = failure or str(error)
            continue
        return [r.astype(np.float64) if r.dtype.kind == "f" else r for r in results]
    raise UnsupportedLayerError(f"onnxruntime cannot compute it from constants ({failure}).")


def moved(node: Any, source: Tensor, others: Sequence[Values | None], opset: int) -> Tensor:
    """What a node that only moves entries gives, found by letting onnxruntime move their numbers."""
    if source.size > EXACT_SINGLES:
        raise UnsupportedLayerError("the tensor is too large for its entries to be followed.")
    numbered = np.arange(source.size, dtype=np.float32).reshape(source.shape)
    typed = [None if value is None else _typed(value, np.float32) for value in others]
    try:
        (result,) = _run(node, [numbered, *typed], opset)
    except _CannotRunError as error:
        raise UnsupportedLayerError(f"onnxruntime cannot run it alone ({error}).") from error
    order: Indices = np.asarray(result).astype(np.int64)
    if not np.array_equal(order, result) or order.size == 0 or order.min() < 0 or order.max() >= source.size:
        raise UnsupportedLayerError("it mixes entries, and only moving them can be read.")
    return source.moved(lambda places: places.ravel()[order])


class _CannotRunError(Exception):
    """Onnxruntime or shape inference does not know the node with inputs of these types."""


def _typed(value: Values, kind: type[np.floating[Any]]) -> Values:
    return value.astype(kind) if value.dtype.kind == "f" else value


def _run(node: Any, inputs: Sequence[Values | None], opset: int) -> list[Values]:
    """Run a node after its outputs' sizes were found small enough."""
    if any(attribute.type in GRAPHS for attribute in node.attribute):
        raise UnsupportedLayerError("it runs a graph of its own.")
    names = ["" if value is None else f"in{index}" for index, value in enumerate(inputs)]
    given = {name: value for name, value in zip(names, inputs, strict=True) if value is not None}
    try:
        model = onnx.shape_inference.infer_shapes(_model(node, names, given, opset), data_prop=True)
    except Exception as error:
        raise _CannotRunError(first_line(error)) from error
    _check_outputs(model, node, given)
    try:
        session = open_session(model.SerializeToString())
        fed = {entry.name: given[entry.name] for entry in session.get_inputs()}
        results = session.run(None, fed)
    except Exception as error:
        raise _CannotRunError(first_line(error)) from error
    if not all(isinstance(result, np.ndarray) and result.dtype.kind in "fiub" for result in results):
        raise UnsupportedLayerError("it does not give arrays of numbers.")
    return list(results)


def _model(node: Any, names: list[str], given: dict[str, Values], opset: int) -> onnx.ModelProto:
    """The node alone; short inputs are constants of the model, so that its shapes are known beforehand."""
    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    del alone.input[:]
    alone.input.extend(names)
    graph = helper.make_graph(
        [alone],
        "single",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in given.items()
            if value.size > SHAPE_NUMBERS
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        [
            numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
            for name, value in given.items()
            if value.size <= SHAPE_NUMBERS
        ],
    )
    imports = [helper.make_opsetid("", opset)]
    if node.domain:
        imports.append(helper.make_opsetid(node.domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _check_outputs(model: onnx.ModelProto, node: Any, given: dict[str, Values]) -> None:
    """Refuse outputs that are too large, or whose size cannot be known beforehand."""
    if node.op_type in NEVER_LARGER:
        largest = max((value.size * max(1, value.ndim) for value in given.values()), default=0)
        check_entries(largest, f"a {node.op_type}")
        return
    for entry in model.graph.output:
        kind = entry.type.tensor_type
        sides = [side.dim_value if side.HasField("dim_value") else -1 for side in kind.shape.dim]
        if not kind.HasField("shape") or min(sides, default=0) < 0:
            raise _CannotRunError("the size of what it gives cannot be known beforehand")
        check_entries(math.prod(sides), f"a {node.op_type}")
