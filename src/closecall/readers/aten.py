"""What torch's own operations do to tensors of a network, by their names in the dispatcher.

Each entry takes the builder and the operation's arguments, with the network's tensors as `Tensor` and other
tensors as float64 arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from closecall.errors import UnsupportedLayerError
from closecall.network.windows import Shape, Sliding
from closecall.readers import arithmetic, choosing
from closecall.readers.arithmetic import Operand, total
from closecall.readers.choosing import Comparison
from closecall.readers.graph import GraphBuilder
from closecall.readers.tensor import Array, Tensor

# Operations that only move entries: torch itself moves the places.
MOVES = {
    "alias",
    "clone",
    "contiguous",
    "detach",
    "diagonal",
    "expand",
    "flip",
    "gather",
    "index",
    "index_select",
    "lift_fresh",
    "narrow",
    "permute",
    "pixel_shuffle",
    "reflection_pad1d",
    "reflection_pad2d",
    "repeat",
    "replication_pad1d",
    "replication_pad2d",
    "reshape",
    "roll",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "view",
    "_reshape_alias",
    "_unsafe_view",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
}
# Operations that take only their first tensor's shape.
CONSTANTS = {
    "copy",
    "empty_like",
    "fill",
    "full_like",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones_like",
    "zero",
    "zeros_like",
}
# Operations that put entries of several tensors together.
JOINS = {"cat", "stack", "where", "slice_scatter", "select_scatter"}


def add(builder: GraphBuilder, left: Operand, right: Operand, *, alpha: float = 1.0) -> Tensor:
    return total(builder, [(left, 1.0), (right, alpha)])


def subtract(builder: GraphBuilder, left: Operand, right: Operand, *, alpha: float = 1.0) -> Tensor:
    return total(builder, [(left, 1.0), (right, -alpha)])


def subtract_from(builder: GraphBuilder, left: Operand, right: Operand, alpha: float = 1.0) -> Tensor:
    return total(builder, [(left, -alpha), (right, 1.0)])


def divide(
    builder: GraphBuilder, left: Operand, right: Operand, *, rounding_mode: str | None = None
) -> Tensor:
    if rounding_mode is not None:
        raise UnsupportedLayerError("a division that rounds is not piecewise linear.")
    return arithmetic.divide(builder, left, right)


def negate(builder: GraphBuilder, tensor: Tensor) -> Tensor:
    return builder.scaled([(tensor, -1.0)])


def leaky_relu(builder: GraphBuilder, tensor: Tensor, slope: Array | float = 0.01) -> Tensor:
    return builder.leaky_relu(tensor, slope)


def hardtanh(builder: GraphBuilder, tensor: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    return builder.clipped(tensor, low, high)


def clamp(
    builder: GraphBuilder, tensor: Tensor, min: Operand | None = None, max: Operand | None = None
) -> Tensor:
    """min(max(x, low), high), by single constants if they are."""
    if _is_number(min) and _is_number(max):
        low, high = (None if limit is None else float(np.asarray(limit)) for limit in (min, max))
        return builder.clipped(tensor, low, high)
    raised = tensor if min is None else arithmetic.larger(builder, tensor, min)
    return raised if max is None else arithmetic.smaller(builder, raised, max)


def _is_number(limit: Operand | None) -> bool:
    return limit is None or (not isinstance(limit, Tensor) and np.ndim(limit) == 0)


def clamp_max(builder: GraphBuilder, tensor: Tensor, high: Operand) -> Tensor:
    return clamp(builder, tensor, None, high)


def threshold(builder: GraphBuilder, tensor: Tensor, limit: float, value: float) -> Tensor:
    if limit != value:
        raise UnsupportedLayerError(
            "a threshold that replaces values by another one jumps: use a ReLU or a clamp."
        )
    return builder.clipped(tensor, limit, None)


def matmul(builder: GraphBuilder, left: Tensor | Array, right: Tensor | Array) -> Tensor:
    return builder.matmul(left, right)


def addmm(
    builder: GraphBuilder, bias: Operand, left: Tensor, right: Array, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    if isinstance(bias, Tensor) or isinstance(right, Tensor):
        return total(builder, [(builder.matmul(left, right), alpha), (bias, beta)])
    return builder.matmul(left, right * alpha, np.asarray(bias) * beta)


def convolution(
    builder: GraphBuilder,
    tensor: Tensor | Array,
    weight: Tensor | Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    if not isinstance(tensor, Tensor) or isinstance(weight, Tensor) or isinstance(bias, Tensor):
        raise UnsupportedLayerError("a convolution can be read only with constant weights.")
    sides = len(weight.shape) - 2
    sliding = Sliding.over(
        weight.shape[2:], _all(stride, sides), dilations=_all(dilation, sides), before=_all(padding, sides)
    )
    if not transposed:
        return builder.convolution(tensor, weight, bias, sliding, groups)
    return builder.transposed_convolution(tensor, weight, bias, sliding, _all(output_padding, sides), groups)


def batch_norm(
    builder: GraphBuilder,
    tensor: Tensor,
    weight: Array | None,
    bias: Array | None,
    mean: Array | None,
    variance: Array | None,
    *settings: Any,
) -> Tensor:
    """γ(x − μ)/√(σ² + ε) + β with the running mean and variance."""
    *training, _momentum, epsilon = settings[:3]
    if mean is None or variance is None or any(training):
        raise UnsupportedLayerError(
            "a normalisation by the image's own mean and variance is not piecewise linear."
        )
    factor = (1.0 if weight is None else weight) / np.sqrt(variance + epsilon)
    offset = (0.0 if bias is None else bias) - mean * factor
    shape = (-1, *(1,) * (len(tensor.shape) - 2))
    return builder.scaled([(tensor, factor.reshape(shape))], offset.reshape(shape))


def max_pool(
    builder: GraphBuilder,
    tensor: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Tensor:
    sliding = _sliding(kernel, stride, padding, dilation, ceil_mode)
    return _batched(tensor, len(sliding.kernel), lambda image: builder.max_pool(image, sliding))


def average_pool(
    builder: GraphBuilder,
    tensor: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    sliding = _sliding(kernel, stride, padding, (1,), ceil_mode)

    def pool(image: Tensor) -> Tensor:
        return builder.average_pool(image, sliding, count_pads=count_include_pad, divisor=divisor_override)

    return _batched(tensor, len(sliding.kernel), pool)


def adaptive_average_pool(builder: GraphBuilder, tensor: Tensor, out: Sequence[int]) -> Tensor:
    return _batched(tensor, len(out), lambda image: builder.adaptive_average_pool(image, tuple(out)))


def adaptive_max_pool(builder: GraphBuilder, tensor: Tensor, out: Sequence[int]) -> Tensor:
    sides = tensor.shape[-len(out) :]
    if any(side % part for side, part in zip(sides, out, strict=True)):
        raise UnsupportedLayerError(
            f"an adaptive max pooling of {sides} to {tuple(out)} has windows of several sizes."
        )
    kernel = tuple(side // part for side, part in zip(sides, out, strict=True))
    return _batched(tensor, len(out), lambda image: builder.max_pool(image, Sliding.over(kernel, kernel)))


def _batched(tensor: Tensor, sides: int, operation: Callable[[Tensor], Tensor]) -> Tensor:
    """Give an operation a batch dimension of 1 and take it away again where torch does without one."""
    if len(tensor.shape) != sides + 1:
        return operation(tensor)
    return operation(tensor.moved(lambda places: places[None])).moved(lambda places: places[0])


def _sliding(
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    round_up: bool,
) -> Sliding:
    sides = len(kernel)
    return Sliding.over(
        tuple(kernel),
        _all(stride, sides) if stride else tuple(kernel),
        dilations=_all(dilation, sides),
        before=_all(padding, sides),
        round_up=round_up,
    )


def _all(numbers: Sequence[int], sides: int) -> Shape:
    return tuple(numbers) * sides if len(numbers) == 1 else tuple(numbers)


def mean(
    builder: GraphBuilder, tensor: Tensor, axes: Sequence[int] | None = None, keepdim: bool = False, **_: Any
) -> Tensor:
    return builder.reduced(tensor, axes or range(len(tensor.shape)), keep=keepdim, average=True)


def summed(
    builder: GraphBuilder, tensor: Tensor, axes: Sequence[int] | None = None, keepdim: bool = False, **_: Any
) -> Tensor:
    return builder.reduced(tensor, axes or range(len(tensor.shape)), keep=keepdim, average=False)


def largest(
    builder: GraphBuilder, tensor: Tensor, axes: int | Sequence[int] = (), keepdim: bool = False
) -> Tensor:
    return builder.largest(tensor, _axes(axes, tensor), keep=keepdim)


def smallest(
    builder: GraphBuilder, tensor: Tensor, axes: int | Sequence[int] = (), keepdim: bool = False
) -> Tensor:
    return arithmetic.smallest(builder, tensor, _axes(axes, tensor), keep=keepdim)


def _axes(axes: int | Sequence[int], tensor: Tensor) -> Sequence[int]:
    return [axes] if isinstance(axes, int) else axes or range(len(tensor.shape))


def hardsigmoid(builder: GraphBuilder, tensor: Tensor) -> Tensor:
    return arithmetic.hard_sigmoid(builder, tensor, 1 / 6, 0.5)


def softshrink(builder: GraphBuilder, tensor: Tensor, reach: float = 0.5) -> Tensor:
    return arithmetic.soft_shrink(builder, tensor, reach)


def multiply(builder: GraphBuilder, left: Operand | Comparison, right: Operand | Comparison) -> Tensor:
    """A product; one with the outcome of a comparison is a choice between the other factor and zero."""
    if isinstance(right, Comparison):
        left, right = right, left
    if isinstance(right, Comparison):
        raise UnsupportedLayerError("a product of two comparisons jumps.")
    if isinstance(left, Comparison):
        return choosing.choose(builder, left, right, 0.0)
    return arithmetic.multiply(builder, left, right)


def where(builder: GraphBuilder, condition: Comparison, yes: Operand, no: Operand) -> Tensor:
    return choosing.choose(builder, condition, yes, no)


def masked_fill(builder: GraphBuilder, tensor: Operand, mask: Comparison, value: Operand) -> Tensor:
    return choosing.choose(builder, mask, value, tensor)


def index_put(
    builder: GraphBuilder,
    tensor: Operand,
    masks: Sequence[Comparison],
    value: Operand,
    accumulate: bool = False,
) -> Tensor:
    """A number written wherever a comparison holds."""
    if accumulate or len(masks) != 1 or isinstance(value, Tensor) or np.size(value) != 1:
        raise UnsupportedLayerError("only one number can be written where a comparison holds.")
    if np.shape(tensor.places if isinstance(tensor, Tensor) else tensor) != masks[0].shape:
        raise UnsupportedLayerError("a comparison can choose whole entries only, each by its own outcome.")
    return choosing.choose(builder, masks[0], np.reshape(value, ()), tensor)


def sigmoid(builder: GraphBuilder, tensor: Tensor) -> Tensor:
    return builder.peeled_each(tensor, "Sigmoid")


def pad(builder: GraphBuilder, tensor: Tensor, pads: Sequence[int], value: float = 0.0) -> Tensor:
    untouched = [0] * (len(tensor.shape) - len(pads) // 2)
    return builder.padded(
        tensor, untouched + list(pads[::2])[::-1], untouched + list(pads[1::2])[::-1], value
    )


def copy(_: GraphBuilder, onto: Tensor | Array, source: Tensor, *_settings: Any) -> Tensor:
    """What is written over another tensor, broadcast to its shape."""
    return source.moved(lambda places: np.broadcast_to(places, onto.shape))


def softmax(builder: GraphBuilder, tensor: Tensor, axis: int, _half: bool = False) -> Tensor:
    return builder.peeled(tensor, axis, "Softmax")


def log_softmax(builder: GraphBuilder, tensor: Tensor, axis: int, _half: bool = False) -> Tensor:
    return builder.peeled(tensor, axis, "LogSoftmax")


def relu(builder: GraphBuilder, tensor: Tensor) -> Tensor:
    return builder.relu(tensor)


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "_adaptive_avg_pool2d": adaptive_average_pool,
    "_adaptive_avg_pool3d": adaptive_average_pool,
    "_log_softmax": log_softmax,
    "_native_batch_norm_legit_no_training": batch_norm,
    "_prelu_kernel": leaky_relu,
    "_softmax": softmax,
    "abs": arithmetic.absolute,
    "adaptive_max_pool2d": adaptive_max_pool,
    "add": add,
    "addmm": addmm,
    "amax": largest,
    "amin": smallest,
    "avg_pool2d": average_pool,
    "avg_pool3d": average_pool,
    "bmm": matmul,
    "clamp": clamp,
    "clamp_max": clamp_max,
    "clamp_min": clamp,
    "constant_pad_nd": pad,
    "convolution": convolution,
    "copy": copy,
    "div": divide,
    "hardsigmoid": hardsigmoid,
    "hardtanh": hardtanh,
    "leaky_relu": leaky_relu,
    "max": largest,
    "max_pool2d_with_indices": max_pool,
    "max_pool3d_with_indices": max_pool,
    "maximum": arithmetic.larger,
    "mean": mean,
    "min": smallest,
    "minimum": arithmetic.smaller,
    "mm": matmul,
    "mul": multiply,
    "mv": matmul,
    "native_batch_norm": batch_norm,
    "neg": negate,
    "relu": relu,
    "rsub": subtract_from,
    "sigmoid": sigmoid,
    "softshrink": softshrink,
    "sub": subtract,
    "sum": summed,
    "threshold": threshold,
}
COMPARISONS: dict[str, Callable[..., Comparison]] = {
    "ge": choosing.greater,
    "gt": choosing.greater,
    "le": choosing.less,
    "lt": choosing.less,
}
# Operations on the outcome of a comparison.
CHOICES: dict[str, Callable[..., Tensor | Comparison]] = {
    "bitwise_not": choosing.opposite,
    "index_put": index_put,
    "logical_not": choosing.opposite,
    "masked_fill": masked_fill,
    "mul": multiply,
    "where": where,
}
