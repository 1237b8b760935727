"""Matrices and windows of the linear and pooling layers that images pass through, over flat vectors.

A tensor of shape (channels, *sides) is flattened row by row. Sliding windows may have any number of
sides, strides, dilations and different paddings before and after; places in the padding are simply
absent, which is zero for a sum and no candidate for a maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from closecall.arrays import Indices, Vector
from closecall.errors import ModelError
from closecall.settings import DEFAULT, Sizes

Shape = tuple[int, ...]

LARGEST_NUMBER = 2**31 - 1  # the most that places in a sparse matrix are counted to


def check_entries(count: int, what: str, settings: Sizes = DEFAULT.sizes) -> None:
    """Refuse what would not fit into memory before any of it is made."""
    most = settings.most_entries
    if count > most:
        raise ModelError(
            f"{what} would take {count:,} entries, more than the {most:,} closecall works with: "
            "use a smaller network or a smaller image."
        )


@dataclass(frozen=True)
class Sliding:
    """How a window slides over an image: one number for each side of it."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    before: Shape
    after: Shape
    round_up: bool = False

    def __post_init__(self) -> None:
        sides = len(self.kernel)
        steps = (self.kernel, self.strides, self.dilations)
        pads = (self.before, self.after)
        if any(len(numbers) != sides for numbers in (*steps, *pads)):
            raise ModelError(
                f"a window over {sides} sides needs {sides} strides, dilations and pads, but got {self}."
            )
        if not all(1 <= number <= LARGEST_NUMBER for numbers in steps for number in numbers):
            raise ModelError(f"kernel, strides and dilations of a window must be positive, but got {self}.")
        if not all(0 <= number <= LARGEST_NUMBER for numbers in pads for number in numbers):
            raise ModelError(f"the pads of a window must not be negative, but got {self}.")

    @classmethod
    def over(
        cls,
        kernel: Shape,
        strides: Shape | None = None,
        *,
        dilations: Shape | None = None,
        before: Shape | None = None,
        after: Shape | None = None,
        round_up: bool = False,
    ) -> Sliding:
        """Fill in strides and dilations of 1 and pads of 0; `after` is `before` unless given."""
        ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
        before = zeros if before is None else before
        after = before if after is None else after
        return cls(kernel, strides or ones, dilations or ones, before, after, round_up)

    def output_sides(self, sides: Shape) -> Shape:
        """⌊(n + pads − d(k − 1) − 1)/s⌋ + 1 for each side; if rounded up, no window starts past the image."""
        if len(sides) != len(self.kernel):
            raise ModelError(
                f"a window of {len(self.kernel)} sides cannot slide over an image of sides {sides}."
            )
        out = []
        for n, k, s, d, before, after in zip(
            sides, self.kernel, self.strides, self.dilations, self.before, self.after, strict=True
        ):
            room = n + before + after - d * (k - 1) - 1
            if room < 0:
                raise ModelError(
                    f"a window of {k} (dilation {d}) does not fit a side of {n} padded by {before}, {after}."
                )
            steps = -(-room // s) if self.round_up else room // s
            if self.round_up and steps * s >= n + before:
                steps -= 1
            out.append(steps + 1)
        return tuple(out)

    def places(self, sides: Shape) -> Indices:
        """The flat place in the image of each entry of each window, −1 in the padding: (windows, entries)."""
        out = self.output_sides(sides)
        windows, entries = math.prod(out), math.prod(self.kernel)
        check_entries(windows * entries, "the windows of a layer")
        flat = np.zeros((1, 1), dtype=np.int64)
        inside = np.ones((1, 1), dtype=bool)
        for axis, side in enumerate(sides):
            starts = np.arange(out[axis], dtype=np.int64) * self.strides[axis] - self.before[axis]
            along = starts[:, None] + np.arange(self.kernel[axis], dtype=np.int64) * self.dilations[axis]
            within = (along >= 0) & (along < side)
            shape = (flat.shape[0] * along.shape[0], flat.shape[1] * along.shape[1])
            flat = (flat[:, None, :, None] * side + along[None, :, None, :]).reshape(shape)
            inside = (inside[:, None, :, None] & within[None, :, None, :]).reshape(shape)
        return np.where(inside, flat, -1)


def convolution(weight: Vector, shape: Shape, sliding: Sliding, groups: int = 1) -> tuple[csr_array, Shape]:
    """The matrix of a convolution with weight (outputs, inputs/groups, *kernel), and its output's shape.

    y[o, p] = Σ_c Σ_k weight[o, c, k] · x[c, p·s + k·d − pad] over the channels c of o's group.
    """
    outputs, inputs = weight.shape[:2]
    if groups < 1 or shape[0] != inputs * groups or outputs % groups:
        raise ModelError(
            f"a convolution with weight {weight.shape} in {groups} groups cannot read an input {shape}."
        )
    sides = shape[1:]
    places = sliding.places(sides)
    valid = places >= 0
    check_entries(int(valid.sum()) * inputs * outputs, "a convolution's matrix")
    window, channel, entry = np.nonzero(
        np.broadcast_to(valid[:, None, :], (len(places), inputs, places.shape[1]))
    )
    columns = (channel * math.prod(sides) + places[window, entry]).astype(np.int32)
    taps = channel * places.shape[1] + entry
    first_channel = np.arange(outputs) // (outputs // groups) * inputs
    data = weight.reshape(outputs, -1)[:, taps]
    indices = (first_channel * math.prod(sides)).astype(np.int32)[:, None] + columns
    lengths = np.tile(valid.sum(axis=1) * inputs, outputs)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    size = (outputs * len(places), math.prod(shape))
    matrix = csr_array((data.ravel(), indices.ravel(), indptr), shape=size)
    matrix.eliminate_zeros()
    return matrix, (outputs, *sliding.output_sides(sides))


def transposed_convolution(
    weight: Vector, shape: Shape, sliding: Sliding, more: Shape, groups: int = 1
) -> tuple[csr_array, Shape]:
    """The matrix of a transposed convolution with weight (inputs, outputs/groups, *kernel), and its shape.

    It is the transpose of the convolution that goes the other way, from its output to its input. Sides become
    s·(n − 1) + d·(k − 1) + 1 − pads + more.
    """
    if weight.shape[0] != shape[0] or len(shape) - 1 != len(sliding.kernel) or len(more) != len(shape) - 1:
        raise ModelError(f"a transposed convolution with weight {weight.shape} cannot read an input {shape}.")
    steps = zip(shape[1:], sliding.kernel, sliding.strides, sliding.dilations, strict=True)
    pads = zip(sliding.before, sliding.after, more, strict=True)
    out = tuple(
        s * (n - 1) + d * (k - 1) + 1 - before - after + extra
        for (n, k, s, d), (before, after, extra) in zip(steps, pads, strict=True)
    )
    if min(out) < 1 or min(more) < 0:
        raise ModelError(f"a transposed convolution of {shape} would have the sides {out}.")
    check_entries(weight.shape[1] * groups * math.prod(out), "a transposed convolution")
    back, made = convolution(weight, (weight.shape[1] * groups, *out), sliding, groups)
    # Sides grown by more than a stride have room for further windows, which nothing goes through.
    windows = np.arange(math.prod(made)).reshape(made)[tuple(slice(side) for side in shape)]
    if windows.shape != shape:
        raise ModelError(f"a transposed convolution of {shape} has pads larger than its window.")
    return csr_array(back[windows.ravel()].T), (weight.shape[1] * groups, *out)


def average_pool(
    shape: Shape, sliding: Sliding, *, count_pads: bool = True, divisor: int | None = None
) -> tuple[csr_array, Shape]:
    """The matrix of average pooling, and its output's shape.

    Each window's sum is divided by its entries inside the image, or by those inside the padded image when
    `count_pads`, or by `divisor`.
    """
    sides = shape[1:]
    places = sliding.places(sides)
    valid = places >= 0
    if divisor is not None:
        counts = np.full(len(places), float(divisor))
    elif count_pads:
        padded = tuple(n + a + b for n, a, b in zip(sides, sliding.before, sliding.after, strict=True))
        grown = Sliding.over(sliding.kernel, sliding.strides, dilations=sliding.dilations)
        counts = _windows_inside(grown, padded, sliding.output_sides(sides)).astype(np.float64)
    else:
        counts = valid.sum(axis=1).astype(np.float64)
    if not counts.all():
        raise ModelError("an average pooling has a window without any entry: use smaller pads.")
    check_entries(int(valid.sum()) * shape[0], "an average pooling's matrix")
    window, entry = np.nonzero(valid)
    each = csr_array(
        (1.0 / counts[window], (window, places[window, entry])), shape=(len(places), math.prod(sides))
    )
    matrix = csr_array(kron(eye_array(shape[0]), each, format="csr"))
    return matrix, (shape[0], *sliding.output_sides(sides))


def _windows_inside(sliding: Sliding, sides: Shape, out: Shape) -> Indices:
    """How many entries of each window lie inside the sides, for windows counted from the image's corner."""
    counts = np.ones(1, dtype=np.int64)
    for axis, side in enumerate(sides):
        starts = np.arange(out[axis]) * sliding.strides[axis]
        along = starts[:, None] + np.arange(sliding.kernel[axis]) * sliding.dilations[axis]
        counts = np.outer(counts, (along < side).sum(axis=1)).ravel()
    return counts


def adaptive_average_pool(shape: Shape, out: Shape) -> tuple[csr_array, Shape]:
    """The matrix that averages x[⌊i·n/m⌋ … ⌈(i+1)·n/m⌉ − 1] along each side, and its output's shape."""
    if len(out) != len(shape) - 1 or not all(1 <= number <= LARGEST_NUMBER for number in out):
        raise ModelError(
            f"an adaptive pooling of {shape} needs {len(shape) - 1} positive output sides, not {out}."
        )
    matrix = csr_array(eye_array(shape[0], format="csr"))
    for side, parts in zip(shape[1:], out, strict=True):
        check_entries(matrix.nnz * (side + parts), "an adaptive pooling's matrix")
        starts = np.arange(parts) * side // parts
        ends = -(-(np.arange(parts) + 1) * side // parts)
        lengths = ends - starts
        rows = np.repeat(np.arange(parts), lengths)
        columns = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
        along = csr_array((1.0 / lengths[rows], (rows, columns)), shape=(parts, side))
        matrix = csr_array(kron(matrix, along, format="csr"))
    return matrix, (shape[0], *out)


def max_pool_windows(shape: Shape, sliding: Sliding) -> tuple[Indices, Shape]:
    """The windows of max pooling, −1 in the padding, and its output's shape."""
    sides = shape[1:]
    places = sliding.places(sides)
    if not (places >= 0).any(axis=1).all():
        raise ModelError("a max pooling has a window that sees nothing but padding: use smaller pads.")
    check_entries(places.size * shape[0], "a max pooling's windows")
    offsets = (np.arange(shape[0], dtype=np.int64) * math.prod(sides))[:, None, None]
    windows = np.where(places >= 0, places + offsets, -1).reshape(-1, places.shape[1])
    return windows, (shape[0], *sliding.output_sides(sides))
