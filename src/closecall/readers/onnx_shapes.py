"""ONNX operators that move entries or compute shapes: they act alike on constants and on the image."""

from __future__ import annotations

import math
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from closecall.errors import ModelError, UnsupportedLayerError
from closecall.network.windows import check_entries
from closecall.readers import choosing
from closecall.readers.onnx_layers import Call, Result, Value
from closecall.readers.onnx_single import moved as moved_alone
from closecall.readers.tensor import Tensor, broadcast, normal_axes


def identity(call: Call) -> Result:
    return call.comparison(0) or call.value(0)


def dropout(call: Call) -> Value:
    training = call.optional(2)
    if isinstance(training, Tensor) or (training is not None and bool(np.any(training))):
        raise UnsupportedLayerError("dropout in training mode is random: export the model in eval mode.")
    return call.value(0)


def cast(call: Call) -> Result:
    import onnx

    comparison = call.comparison(0)
    if comparison is not None:
        return comparison
    kind = onnx.helper.tensor_dtype_to_np_dtype(call.attributes["to"])
    value = call.value(0)
    if isinstance(value, Tensor):
        if np.dtype(kind).kind != "f":
            raise UnsupportedLayerError("rounding to whole numbers jumps.")
        return value
    return value.astype(np.float64 if np.dtype(kind).kind == "f" else kind)


def constant(call: Call) -> Value:
    for name in ("value", "value_float", "value_floats", "value_int", "value_ints"):
        if name in call.attributes:
            return np.asarray(call.attributes[name])
    raise UnsupportedLayerError("only constants of numbers can be read.")


def constant_of_shape(call: Call) -> Value:
    shape = whole(call, 0)
    if any(side < 0 for side in shape):
        raise ModelError(f"a shape cannot be {shape}.")
    check_entries(math.prod(shape), "a constant")
    return np.full(shape, np.asarray(call.attributes.get("value", 0.0)).reshape(()))


def whole(call: Call, index: int) -> list[int]:
    value = call.value(index)
    if isinstance(value, Tensor):
        raise UnsupportedLayerError("its shape depends on the image's numbers.")
    return [int(number) for number in value.ravel()]


def shape(call: Call) -> Value:
    start, end = call.attributes.get("start", 0), call.attributes.get("end")
    return np.array(call.value(0).shape[start:end], dtype=np.int64)


def reshape(call: Call) -> Value:
    wanted = whole(call, 1)
    value = call.value(0)
    if not call.attributes.get("allowzero", 0):
        wanted = [value.shape[k] if n == 0 and k < len(value.shape) else n for k, n in enumerate(wanted)]
    # A file made for several images at once may have their number in its shapes.
    if call.batch > 1 and wanted and wanted[0] == call.batch and -1 not in wanted[:1]:
        rest = math.prod(abs(n) for n in wanted[1:])
        wanted[0] = 1 if rest <= value.size < rest * call.batch or -1 in wanted else wanted[0]
    return call.move(lambda places: places.reshape(wanted))


def flatten(call: Call) -> Value:
    sides = call.value(0).shape
    axis = call.attributes.get("axis", 1)
    if not -len(sides) <= axis <= len(sides):
        raise ModelError(f"axis {axis} does not exist in a tensor of shape {sides}.")
    rows = math.prod(sides[:axis])
    return call.move(lambda places: places.reshape(rows, math.prod(sides[axis:]) if axis < len(sides) else 1))


def transpose(call: Call) -> Value:
    return call.move(lambda places: np.transpose(places, call.attributes.get("perm")))


def squeeze(call: Call) -> Value:
    sides = call.value(0).shape
    axes = call.integers(1, "axes")
    gone = [k for k, side in enumerate(sides) if side == 1] if axes is None else normal_axes(axes, sides)
    return call.move(lambda places: np.squeeze(places, tuple(gone)))


def unsqueeze(call: Call) -> Value:
    axes = call.integers(1, "axes") or []
    return call.move(lambda places: np.expand_dims(places, tuple(axes)))


def expand(call: Call) -> Value:
    target = broadcast(call.value(0).shape, tuple(whole(call, 1)))
    return call.move(lambda places: np.broadcast_to(places, target))


def tile(call: Call) -> Value:
    repeats = whole(call, 1)
    if any(number < 0 for number in repeats):
        raise ModelError(f"repeats cannot be {repeats}.")
    check_entries(call.value(0).size * math.prod(repeats), "a tensor")
    return call.move(lambda places: np.tile(places, repeats))


def gather(call: Call) -> Value:
    value, indices = call.value(0), call.value(1)
    if isinstance(indices, Tensor):
        raise UnsupportedLayerError("it chooses entries by the image's numbers.")
    (axis,) = normal_axes([call.attributes.get("axis", 0)], value.shape)
    check_entries(value.size // max(1, value.shape[axis]) * indices.size, "a tensor")
    return call.move(lambda places: np.take(places, indices.astype(np.int64), axis=axis))


def slices(call: Call) -> Value:
    sides = call.value(0).shape
    starts, ends = call.integers(1, "starts") or [], call.integers(2, "ends") or []
    axes = call.integers(3, "axes")
    axes = (
        list(range(len(starts)))
        if axes is None
        else [axis + len(sides) if axis < 0 else axis for axis in axes]
    )
    steps = call.integers(4, "steps") or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or len(set(axes)) != len(axes):
        raise ModelError(
            f"its starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit together."
        )
    normal_axes(axes, sides)
    cut = [slice(None)] * len(sides)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        cut[axis] = _slice(start, end, step, sides[axis])
    return call.move(lambda places: places[tuple(cut)])


def _slice(start: int, end: int, step: int, side: int) -> slice:
    """ONNX counts from the end as Python does, and clamps; an end before the first entry runs to it."""
    if step == 0:
        raise ModelError("a slice cannot have steps of 0.")
    start, end = (number + side if number < 0 else number for number in (start, end))
    if step > 0:
        return slice(min(max(start, 0), side), min(max(end, 0), side), step)
    start, end = min(max(start, 0), side - 1), min(max(end, -1), side - 1)
    return slice(start, None if end < 0 else end, step)


def concat(call: Call) -> Value:
    parts = [call.value(index) for index in range(len(call.inputs))]
    check_entries(sum(part.size for part in parts), "a concatenation")
    axis = call.attributes["axis"]
    if any(isinstance(part, Tensor) for part in parts):
        return call.builder.concatenated(parts, axis)
    constants: list[NDArray[np.float64]] = [part for part in parts if not isinstance(part, Tensor)]
    return np.concatenate(constants, axis=axis)


def split(call: Call) -> list[Value]:
    value = call.value(0)
    (axis,) = normal_axes([call.attributes.get("axis", 0)], value.shape)
    lengths = call.integers(1, "split")
    if lengths is None:
        each = -(-value.shape[axis] // max(1, call.outputs))
        lengths = [each] * (call.outputs - 1) + [value.shape[axis] - each * (call.outputs - 1)]
    if sum(lengths) != value.shape[axis] or min(lengths) < 0:
        raise ModelError(f"a side of {value.shape[axis]} cannot be split into {lengths}.")
    ends = np.cumsum(lengths)
    cuts = [(slice(None),) * axis + (slice(end - n, end),) for n, end in zip(lengths, ends, strict=True)]
    return [call.move(itemgetter(cut)) for cut in cuts]


def equal(call: Call) -> Value:
    return np.asarray(call.array(0) == call.array(1))


def moved(call: Call) -> Value:
    """An operator that only moves the entries of its first input, as constants say."""
    rest = [call.optional(index) for index in range(1, len(call.inputs))]
    constants = [value for value in rest if not isinstance(value, Tensor)]
    if len(constants) != len(rest):
        raise UnsupportedLayerError("it chooses entries by the image's numbers.")
    return moved_alone(call.node, call.tensor(0), constants, call.opset)


def resize(call: Call) -> Value:
    """Growing or shrinking an image by taking the nearest pixel."""
    mode = call.attributes.get("mode", "nearest")
    if mode != "nearest":
        raise UnsupportedLayerError(f"resizing by mode {mode!r} cannot be read: use 'nearest'.")
    if call.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise UnsupportedLayerError("resizing by 'tf_crop_and_resize' cannot be read: use another mode.")
    return moved(call)


def where(call: Call) -> Value:
    comparison = call.comparison(0)
    if comparison is not None:
        return choosing.choose(call.builder, comparison, call.value(1), call.value(2))
    chosen, yes, no = call.array(0) != 0, call.value(1), call.value(2)
    sides = broadcast(chosen.shape, yes.shape, no.shape)
    if isinstance(yes, Tensor) or isinstance(no, Tensor):
        parts = [_spread(part, sides) for part in (yes, no)]
        both = call.builder.concatenated(parts, 0)
        order = np.arange(math.prod(sides)).reshape(sides) + np.where(
            np.broadcast_to(chosen, sides), 0, math.prod(sides)
        )
        return both.moved(lambda places: places[order])
    return np.where(chosen, yes, no)


def _spread(value: Value, sides: tuple[int, ...]) -> Value:
    if isinstance(value, Tensor):
        return value.moved(lambda places: np.broadcast_to(places, sides).ravel())
    return np.broadcast_to(value, sides).ravel().astype(np.float64)
