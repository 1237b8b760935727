"""What each ONNX operator does, by its name; opset 7 to the newest.

Each entry takes one `Call` and gives the operator's first output, or a list of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.errors import ModelError, UnsupportedLayerError
from closecall.network.windows import Shape, Sliding, check_entries
from closecall.readers import arithmetic, choosing
from closecall.readers.choosing import Comparison
from closecall.readers.graph import GraphBuilder
from closecall.readers.tensor import Array, Tensor, broadcast, normal_axes

Value = Tensor | NDArray[Any]
Result = Value | Comparison


@dataclass(frozen=True, eq=False)
class Call:
    """One node: its inputs, with None for those left out, its attributes, and what surrounds it."""

    builder: GraphBuilder
    inputs: Sequence[Result | None]
    attributes: Mapping[str, Any]
    opset: int
    outputs: int
    batch: int
    node: Any

    def value(self, index: int) -> Value:
        value = self.optional(index)
        if value is None:
            raise ModelError(f"input {index + 1} is missing.")
        return value

    def optional(self, index: int) -> Value | None:
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, Comparison):
            raise UnsupportedLayerError("a comparison can be read only where it chooses between two values.")
        return value

    def comparison(self, index: int) -> Comparison | None:
        """The outcome of a comparison that depends on the image, if the input is one."""
        value = self.inputs[index] if index < len(self.inputs) else None
        return value if isinstance(value, Comparison) else None

    def tensor(self, index: int) -> Tensor:
        value = self.value(index)
        if not isinstance(value, Tensor):
            raise UnsupportedLayerError(f"input {index + 1} must depend on the image, but is constant.")
        return value

    def array(self, index: int) -> Array:
        value = self.value(index)
        if isinstance(value, Tensor):
            raise UnsupportedLayerError(f"input {index + 1} must be constant, but depends on the image.")
        return value.astype(np.float64)

    def optional_array(self, index: int) -> Array | None:
        return None if self.optional(index) is None else self.array(index)

    def integers(self, index: int, name: str) -> list[int] | None:
        """Whole numbers that were an attribute in older opsets and are an input in newer ones."""
        if name in self.attributes:
            return [int(number) for number in self.attributes[name]]
        value = self.optional(index)
        if isinstance(value, Tensor):
            raise UnsupportedLayerError(f"its {name} depend on the image.")
        return None if value is None else [int(number) for number in value.ravel()]

    def move(self, move: Callable[[NDArray[Any]], NDArray[Any]]) -> Value:
        """Move the entries of the first input, whether it is constant or not."""
        value = self.value(0)
        return value.moved(move) if isinstance(value, Tensor) else np.asarray(move(value))


def elementwise(
    constants: Callable[[Any, Any], Any], mixed: Callable[[GraphBuilder, Value, Value], Tensor]
) -> Callable[[Call], Value]:
    """An operator on any number of inputs, from what it does to two constants and to anything else."""

    def operator(call: Call) -> Value:
        result = call.value(0)
        for index in range(1, len(call.inputs)):
            other = call.value(index)
            if isinstance(result, Tensor) or isinstance(other, Tensor):
                result = mixed(call.builder, result, other)
            else:
                broadcast(result.shape, other.shape)
                result = np.asarray(constants(result, other))
        return result

    return operator


def divide_constants(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    whole = left.dtype.kind in "iu" and right.dtype.kind in "iu"
    return np.asarray(np.trunc(left / right).astype(left.dtype) if whole else left / right)


def multiply(call: Call) -> Value:
    """A product; one with the outcome of a comparison is a choice between the other factor and zero."""
    for index, other in ((0, 1), (1, 0)):
        comparison = call.comparison(index)
        if comparison is not None:
            return choosing.choose(call.builder, comparison, call.value(other), 0.0)
    return elementwise(np.multiply, arithmetic.multiply)(call)


def compare(comparison: Callable[[GraphBuilder, Value, Value], Comparison]) -> Callable[[Call], Comparison]:
    return lambda call: comparison(call.builder, call.value(0), call.value(1))


def negation(call: Call) -> Result:
    comparison = call.comparison(0)
    return call.tensor(0) if comparison is None else choosing.opposite(call.builder, comparison)


def mean(call: Call) -> Value:
    count = len(call.inputs)
    return arithmetic.total(call.builder, [(call.value(index), 1.0 / count) for index in range(count)])


def negate(call: Call) -> Value:
    value = call.value(0)
    return call.builder.scaled([(value, -1.0)]) if isinstance(value, Tensor) else -value


def absolute(call: Call) -> Value:
    return arithmetic.absolute(call.builder, call.tensor(0))


def gemm(call: Call) -> Value:
    """alpha · A' · B' + beta · C."""
    left, right = call.value(0), call.value(1)
    left = _transposed(left) if call.attributes.get("transA", 0) else left
    right = _transposed(right) if call.attributes.get("transB", 0) else right
    alpha, beta = call.attributes.get("alpha", 1.0), call.attributes.get("beta", 1.0)
    if isinstance(left, Tensor) and not isinstance(right, Tensor):
        right = right * alpha
    elif not isinstance(left, Tensor):
        left = left * alpha
    bias = call.optional_array(2)
    return call.builder.matmul(left, right, None if bias is None else beta * bias)


def _transposed(value: Value) -> Value:
    return value.moved(np.transpose) if isinstance(value, Tensor) else value.T


def matmul(call: Call) -> Value:
    left, right = call.value(0), call.value(1)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return call.builder.matmul(left, right)
    check_entries(left.size * max(1, right.size // max(1, right.shape[-1])), "a product of constants")
    return np.asarray(left @ right)


def batch_normalization(call: Call) -> Value:
    """γ(x − μ)/√(σ² + ε) + β with the stored mean and variance."""
    if call.attributes.get("training_mode", 0) or not call.attributes.get("spatial", 1):
        raise UnsupportedLayerError(
            "only its inference mode, one mean for each channel, can be read: export in eval mode."
        )
    tensor = call.tensor(0)
    scale, offset, mean, variance = (call.array(index) for index in range(1, 5))
    factor = scale / np.sqrt(variance + call.attributes.get("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(tensor.shape) - 2))
    return call.builder.scaled([(tensor, factor.reshape(shape))], (offset - mean * factor).reshape(shape))


def conv(call: Call) -> Value:
    tensor, weight = call.tensor(0), call.array(1)
    if weight.ndim < 3 or tuple(call.attributes.get("kernel_shape", weight.shape[2:])) != weight.shape[2:]:
        raise ModelError(f"its weight {weight.shape} does not fit its kernel_shape.")
    sliding = _sliding(call, weight.shape[2:], tensor.shape[2:])
    return call.builder.convolution(
        tensor, weight, call.optional_array(2), sliding, call.attributes.get("group", 1)
    )


def conv_transpose(call: Call) -> Value:
    tensor, weight = call.tensor(0), call.array(1)
    if weight.ndim < 3 or tuple(call.attributes.get("kernel_shape", weight.shape[2:])) != weight.shape[2:]:
        raise ModelError(f"its weight {weight.shape} does not fit its kernel_shape.")
    rule = call.attributes.get("auto_pad", "NOTSET")
    if "output_shape" in call.attributes or rule not in ("NOTSET", "VALID"):
        raise UnsupportedLayerError("pads by output_shape or auto_pad cannot be read: export with pads.")
    sliding = _sliding(call, weight.shape[2:], tensor.shape[2:])
    more = tuple(call.attributes.get("output_padding", (0,) * len(sliding.kernel)))
    return call.builder.transposed_convolution(
        tensor, weight, call.optional_array(2), sliding, more, call.attributes.get("group", 1)
    )


def max_pool(call: Call) -> Value:
    tensor = call.tensor(0)
    return call.builder.max_pool(tensor, _sliding(call, call.attributes["kernel_shape"], tensor.shape[2:]))


def average_pool(call: Call) -> Value:
    tensor = call.tensor(0)
    sliding = _sliding(call, call.attributes["kernel_shape"], tensor.shape[2:])
    return call.builder.average_pool(
        tensor, sliding, count_pads=bool(call.attributes.get("count_include_pad", 0))
    )


def _sliding(call: Call, kernel: Sequence[int], sides: Shape) -> Sliding:
    count = len(kernel)
    strides = tuple(call.attributes.get("strides", (1,) * count))
    dilations = tuple(call.attributes.get("dilations", (1,) * count))
    pads = tuple(call.attributes.get("pads", (0,) * (2 * count)))
    round_up = bool(call.attributes.get("ceil_mode", 0))
    rule = call.attributes.get("auto_pad", "NOTSET")
    if rule == "VALID":
        pads = (0,) * (2 * count)
    elif rule in ("SAME_UPPER", "SAME_LOWER"):
        pads = _same_pads(
            Sliding.over(tuple(kernel), strides, dilations=dilations), sides, rule == "SAME_UPPER"
        )
    elif rule != "NOTSET":
        raise ModelError(f"auto_pad {rule!r} is not known.")
    before, after = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    return Sliding(tuple(kernel), strides, dilations, before, after, round_up)


def _same_pads(sliding: Sliding, sides: Shape, more_after: bool) -> Shape:
    """Pads that make ⌈n/s⌉ windows; an odd one goes after or before."""
    if len(sides) != len(sliding.kernel):
        raise ModelError(
            f"a window of {len(sliding.kernel)} sides cannot slide over an image of sides {sides}."
        )
    needed = [
        max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        for n, k, s, d in zip(sides, sliding.kernel, sliding.strides, sliding.dilations, strict=True)
    ]
    small, large = [n // 2 for n in needed], [n - n // 2 for n in needed]
    return tuple(small + large if more_after else large + small)


def global_average_pool(call: Call) -> Value:
    tensor = call.tensor(0)
    return call.builder.reduced(tensor, range(2, len(tensor.shape)), keep=True, average=True)


def global_max_pool(call: Call) -> Value:
    tensor = call.tensor(0)
    return call.builder.max_pool(tensor, Sliding.over(tensor.shape[2:]))


def reduce(*, average: bool) -> Callable[[Call], Value]:
    def operator(call: Call) -> Value:
        value = call.value(0)
        keep = bool(call.attributes.get("keepdims", 1))
        axes = call.integers(1, "axes")
        if not axes and call.attributes.get("noop_with_empty_axes", 0):
            return value
        axes = normal_axes(axes or range(len(value.shape)), value.shape)
        if isinstance(value, Tensor):
            return call.builder.reduced(value, axes, keep=keep, average=average)
        return np.asarray((np.mean if average else np.sum)(value, axis=tuple(axes), keepdims=keep))

    return operator


def reduce_extreme(*, largest: bool) -> Callable[[Call], Value]:
    """The largest or the smallest entry over axes."""

    def operator(call: Call) -> Value:
        tensor = call.tensor(0)
        keep = bool(call.attributes.get("keepdims", 1))
        axes = call.integers(1, "axes")
        if not axes and call.attributes.get("noop_with_empty_axes", 0):
            return tensor
        axes = axes or list(range(len(tensor.shape)))
        if largest:
            return call.builder.largest(tensor, axes, keep=keep)
        return arithmetic.smallest(call.builder, tensor, axes, keep=keep)

    return operator


def relu(call: Call) -> Value:
    return call.builder.relu(call.tensor(0))


def leaky_relu(call: Call) -> Value:
    return call.builder.leaky_relu(call.tensor(0), call.attributes.get("alpha", 0.01))


def parametric_relu(call: Call) -> Value:
    return call.builder.leaky_relu(call.tensor(0), call.array(1))


def thresholded_relu(call: Call) -> Value:
    if call.attributes.get("alpha", 1.0) != 0:
        raise UnsupportedLayerError("a threshold above or below zero jumps: use a ReLU or a clip.")
    return relu(call)


def hard_sigmoid(call: Call) -> Value:
    slope, offset = call.attributes.get("alpha", 0.2), call.attributes.get("beta", 0.5)
    return arithmetic.hard_sigmoid(call.builder, call.tensor(0), slope, offset)


def shrink(call: Call) -> Value:
    reach, bias = call.attributes.get("lambd", 0.5), call.attributes.get("bias", 0.0)
    if reach != bias or reach < 0:
        raise UnsupportedLayerError("a shrinking whose bias is not its lambd jumps.")
    return arithmetic.soft_shrink(call.builder, call.tensor(0), reach)


def sigmoid(call: Call) -> Value:
    return call.builder.peeled_each(call.tensor(0), "Sigmoid")


def clip(call: Call) -> Value:
    limits = [call.attributes.get(name) for name in ("min", "max")]
    for index in (0, 1):
        given = call.optional_array(index + 1)
        if given is not None:
            limits[index] = float(given.reshape(()))
    return call.builder.clipped(call.tensor(0), limits[0], limits[1])


def softmax(name: str) -> Callable[[Call], Value]:
    def operator(call: Call) -> Value:
        tensor = call.tensor(0)
        if call.opset >= 13:
            return call.builder.peeled(tensor, call.attributes.get("axis", -1), name)
        axis = call.attributes.get("axis", 1)
        rows = math.prod(tensor.shape[: axis % len(tensor.shape) if axis < 0 else axis])
        flat = tensor.moved(lambda places: places.reshape(rows, -1))
        return call.builder.peeled(flat, 1, name).moved(lambda places: places.reshape(tensor.shape))

    return operator


def pad(call: Call) -> Value:
    tensor = call.tensor(0)
    rank = len(tensor.shape)
    mode = call.attributes.get("mode", "constant")
    pads = call.integers(1, "pads") or []
    fill = call.optional_array(2)
    value = call.attributes.get("value", 0.0) if fill is None else float(fill.reshape(()))
    axes = call.integers(3, "axes")
    chosen = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    if len(pads) != 2 * len(chosen):
        raise ModelError(f"it has {len(pads)} pads for {len(chosen)} axes.")
    before, after = [0] * rank, [0] * rank
    for index, axis in enumerate(chosen):
        before[axis], after[axis] = pads[index], pads[index + len(chosen)]
    if mode == "constant":
        return call.builder.padded(tensor, before, after, value)
    if mode not in ("reflect", "edge", "wrap") or min(before + after) < 0:
        raise UnsupportedLayerError(f"padding by {mode!r} cannot be read.")
    sides = (b + n + a for b, n, a in zip(before, tensor.shape, after, strict=True))
    check_entries(math.prod(sides), "a padding")
    widths = list(zip(before, after, strict=True))
    return tensor.moved(lambda places: np.pad(places, widths, mode=mode))
