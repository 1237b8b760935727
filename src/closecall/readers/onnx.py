"""Read an ONNX file: its graph, operator by operator, onto a network.

The file is checked before onnxruntime sees it, and what was read is compared with onnxruntime afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from closecall.errors import ModelError, UnsupportedLayerError
from closecall.network.windows import Shape, check_entries
from closecall.readers import arithmetic, choosing
from closecall.readers import onnx_layers as layers
from closecall.readers import onnx_shapes as shapes
from closecall.readers.choosing import Comparison
from closecall.readers.classifier import HALF, SINGLE, Classifier, Engine, agreed, first_line
from closecall.readers.engines import in_batches, open_session, run_session
from closecall.readers.graph import GraphBuilder
from closecall.readers.onnx_layers import Call, Result, Value
from closecall.readers.onnx_parts import OnnxFile, constant, open_file
from closecall.readers.onnx_single import fold
from closecall.readers.tensor import Tensor

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)

OPERATORS: dict[str, Callable[[Call], Result | list[Value]]] = {
    "Abs": layers.absolute,
    "Add": layers.elementwise(np.add, arithmetic.add),
    "AveragePool": layers.average_pool,
    "BatchNormalization": layers.batch_normalization,
    "Cast": shapes.cast,
    "Clip": layers.clip,
    "Concat": shapes.concat,
    "Constant": shapes.constant,
    "ConstantOfShape": shapes.constant_of_shape,
    "Conv": layers.conv,
    "ConvTranspose": layers.conv_transpose,
    "DepthToSpace": shapes.moved,
    "Div": layers.elementwise(layers.divide_constants, arithmetic.divide),
    "Dropout": shapes.dropout,
    "Equal": shapes.equal,
    "Expand": shapes.expand,
    "Flatten": shapes.flatten,
    "Gather": shapes.gather,
    "GatherElements": shapes.moved,
    "GatherND": shapes.moved,
    "Gemm": layers.gemm,
    "GlobalAveragePool": layers.global_average_pool,
    "GlobalMaxPool": layers.global_max_pool,
    "Greater": layers.compare(choosing.greater),
    "GreaterOrEqual": layers.compare(choosing.greater),
    "HardSigmoid": layers.hard_sigmoid,
    "Identity": shapes.identity,
    "LeakyRelu": layers.leaky_relu,
    "Less": layers.compare(choosing.less),
    "LessOrEqual": layers.compare(choosing.less),
    "LogSoftmax": layers.softmax("LogSoftmax"),
    "MatMul": layers.matmul,
    "Max": layers.elementwise(np.maximum, arithmetic.larger),
    "MaxPool": layers.max_pool,
    "Mean": layers.mean,
    "Min": layers.elementwise(np.minimum, arithmetic.smaller),
    "Mul": layers.multiply,
    "Neg": layers.negate,
    "Not": layers.negation,
    "PRelu": layers.parametric_relu,
    "Pad": layers.pad,
    "ReduceMax": layers.reduce_extreme(largest=True),
    "ReduceMean": layers.reduce(average=True),
    "ReduceMin": layers.reduce_extreme(largest=False),
    "ReduceSum": layers.reduce(average=False),
    "Relu": layers.relu,
    "Reshape": shapes.reshape,
    "Resize": shapes.resize,
    "Shape": shapes.shape,
    "Shrink": layers.shrink,
    "Sigmoid": layers.sigmoid,
    "Slice": shapes.slices,
    "Softmax": layers.softmax("Softmax"),
    "SpaceToDepth": shapes.moved,
    "Split": shapes.split,
    "Squeeze": shapes.squeeze,
    "Sub": layers.elementwise(np.subtract, arithmetic.subtract),
    "Sum": layers.elementwise(np.add, arithmetic.add),
    "ThresholdedRelu": layers.thresholded_relu,
    "Tile": shapes.tile,
    "Transpose": shapes.transpose,
    "Unsqueeze": shapes.unsqueeze,
    "Upsample": shapes.resize,
    "Where": shapes.where,
}

# Operators whose readings take constants as they take the image; all others are run on constants as they are.
ALIKE = {
    "Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Dropout", "Equal", "Expand", "Flatten",
    "Gather", "Identity", "MatMul", "Max", "Min", "Mul", "Neg", "ReduceMean", "ReduceSum", "Reshape", "Shape",
    "Slice", "Split", "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How images go into a file.

    `single` is the shape of its input for one image, `batch` how many images one call takes: any number
    (None), a fixed one, or 0 where the input has no batch dimension.
    """

    image: Shape
    single: Shape
    batch: int | None


def read_file(path: Path, input_shape: Shape | None = None) -> Classifier:
    """Read a file and compare it with onnxruntime."""
    with np.errstate(all="ignore"):
        file = open_file(path)
        builder, output, layout = read_graph(file, input_shape)
        network = builder.finish(output)
    engines = {"onnxruntime": session_engine(file, layout)}
    return agreed(network, output.peeled, engines, str(path), precision=HALF if file.half else SINGLE)


def session_engine(file: OnnxFile, layout: Layout) -> Engine:
    """onnxruntime on the original file."""
    try:
        session = open_session(str(file.path.resolve()) if file.external else file.content)
    except Exception as error:
        raise ModelError(f"{file.path}: onnxruntime refuses the file ({first_line(error)}).") from error
    shape = layout.single if layout.batch == 0 else layout.single[1:]
    return in_batches(run_session(session, shape, layout.batch), layout.image)


def read_graph(file: OnnxFile, input_shape: Shape | None) -> tuple[GraphBuilder, Tensor, Layout]:
    """Write down the graph's network for one image."""
    graph = file.graph
    inputs = [entry for entry in graph.input if entry.name not in file.constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise ModelError(
            f"{file.path} has {len(inputs)} inputs and {len(graph.output)} outputs: "
            "expected one image in and one tensor of scores out."
        )
    layout = find_layout(inputs[0], graph.output[0], input_shape)
    builder = GraphBuilder(layout.image)
    image = builder.input().moved(lambda places: places.reshape(layout.single))
    values: dict[str, Result] = {**file.constants, inputs[0].name: image}
    made = 0
    for node in needed_nodes(graph):
        results = run_node(node, values, builder, file, layout.batch or 1)
        for name, result in zip(node.output, results, strict=False):
            values[name] = result
            made += result.size
        check_entries(made, "the values of the graph")
    output = values.get(graph.output[0].name)
    if isinstance(output, Comparison):
        raise UnsupportedLayerError(f"{file.path}: the output is a comparison, which jumps: expected scores.")
    if not isinstance(output, Tensor):
        raise ModelError(f"{file.path}: the output does not depend on the image.")
    return builder, output, layout


def needed_nodes(graph: Any) -> list[Any]:
    """The nodes that the output depends on, in the file's order."""
    maker = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    waiting = [maker[graph.output[0].name]] if graph.output[0].name in maker else []
    needed = set(waiting)
    while waiting:
        for name in graph.node[waiting.pop()].input:
            if name in maker and maker[name] not in needed:
                needed.add(maker[name])
                waiting.append(maker[name])
    return [graph.node[index] for index in sorted(needed)]


def run_node(
    node: Any, values: Mapping[str, Result], builder: GraphBuilder, file: OnnxFile, batch: int
) -> list[Result]:
    """The values that a node gives."""
    where = f"operator {node.op_type}, node {node.name or node.output[0]!r}"
    missing = [name for name in node.input if name and name not in values]
    if missing:
        raise ModelError(
            f"{where}: nothing before it gives its input {missing[0]!r}: the graph has a cycle or a gap."
        )
    inputs = [values[name] if name else None for name in node.input]
    constants = [value for value in inputs if not isinstance(value, (Tensor, Comparison))]
    folded = len(constants) == len(inputs) and (node.domain or node.op_type not in ALIKE)
    if not folded and (node.domain or node.op_type not in OPERATORS):
        raise UnsupportedLayerError(
            f"{where}: closecall cannot reason about this operator exactly; it reads affine layers, ReLU and "
            "its relatives, and max pooling, so replace it or cut the model before it."
        )
    try:
        if folded:
            return list(fold(node, constants, file.opset))
        attributes = {entry.name: read_attribute(entry, file.path.parent) for entry in node.attribute}
        call = Call(builder, inputs, attributes, file.opset, len(node.output), batch, node)
        result = OPERATORS[node.op_type](call)
    except UnsupportedLayerError as error:
        raise UnsupportedLayerError(f"{where}: {error}") from error
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    except (
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        OverflowError,
        ZeroDivisionError,
        MemoryError,
    ) as error:
        raise ModelError(
            f"{where}: its inputs and attributes do not fit together ({first_line(error)})."
        ) from error
    return list(result) if isinstance(result, list) else [result]


def read_attribute(entry: Any, folder: Path) -> Any:
    """An attribute as a plain value: numbers, lists, text, or an array for a tensor."""
    if entry.type == onnx.AttributeProto.TENSOR:
        return constant(entry.t, folder)
    if entry.type not in (
        onnx.AttributeProto.FLOAT,
        onnx.AttributeProto.INT,
        onnx.AttributeProto.STRING,
        onnx.AttributeProto.FLOATS,
        onnx.AttributeProto.INTS,
    ):
        raise UnsupportedLayerError(f"its attribute {entry.name!r} cannot be read.")
    value = onnx.helper.get_attribute_value(entry)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def find_layout(entry: Any, output: Any, input_shape: Shape | None) -> Layout:
    """Find out which dimension of the input, if any, counts images.

    The first one does if it is free or 1, or if the output has the same; `input_shape` fills in free sides
    and may call the same number of pixels by another shape.
    """
    kind = entry.type.tensor_type
    if kind.elem_type not in FLOATS:
        raise ModelError(f"the input {entry.name!r} must be a tensor of floats.")
    sides = _sides(kind, input_shape)
    if not sides:
        raise ModelError(f"the input {entry.name!r} is a single number: expected an image.")
    if any(side is None for side in sides[1:]):
        sides = _filled(sides, input_shape)
    first, rest = sides[0], tuple(side for side in sides[1:] if side is not None)
    whole = (first or 1, *rest)
    check_entries(math.prod(whole), "the input")
    if input_shape is not None and tuple(input_shape) == whole:
        batch: int | None = 0
    elif first is None:
        batch = None
    elif len(sides) > 1 and (first == 1 or _sides(output.type.tensor_type, ())[:1] == [first]):
        batch = first
    else:
        batch = 0
    single = whole if batch == 0 else (1, *rest)
    image = single if batch == 0 else rest
    return Layout(image if input_shape is None else _named(image, tuple(input_shape)), single, batch)


def _named(image: Shape, given: Shape) -> Shape:
    """The shape that a file's images go by: as given, if it differs by sides of 1 or by being flat alone."""
    kept, wanted = (tuple(side for side in shape if side != 1) for shape in (image, given))
    if kept == wanted or (math.prod(image) == math.prod(given) and 1 in (len(kept), len(wanted))):
        return given
    if (*given[1:], *given[:1]) == image:  # the file has its channels last, and images are turned for it
        return image
    raise ModelError(f"the file takes images of shape {image}, not {given}.")


def _sides(kind: Any, unknown: Shape | None) -> list[int | None]:
    """The sides of a tensor, None where one is free."""
    if not kind.HasField("shape"):
        if unknown is None:
            raise ModelError(
                "the file does not say the shape of its input: pass input_shape, such as (1, 28, 28)."
            )
        return [None, *unknown]
    sides = [int(side.dim_value) if side.HasField("dim_value") else None for side in kind.shape.dim]
    if any(side is not None and side < 0 for side in sides):
        raise ModelError(f"a tensor of the file has the impossible shape {sides}.")
    return [None if side == 0 else side for side in sides]


def _filled(sides: list[int | None], input_shape: Shape | None) -> list[int | None]:
    if input_shape is None or len(input_shape) != len(sides) - 1:
        raise ModelError(f"the input has free sides {sides}: pass input_shape, the shape of one image.")
    for shape in (tuple(input_shape), (*input_shape[1:], input_shape[0])):  # channels first, channels last
        if all(side in (None, given) for side, given in zip(sides[1:], shape, strict=True)):
            return [sides[0], *shape]
    raise ModelError(f"the file takes images of sides {sides[1:]}, not {tuple(input_shape)}.")
