"""One block of a convolutional network: its hyperparameters, the sizes they give and when they are valid."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from closecall.errors import ModelError
from closecall.models.checks import is_whole

Size = tuple[int, int]

LARGE_SIDE = 20
SYNTAX = "KERNELSxSIZE[sSTRIDE][pPADDING][/POOL[sPOOL_STRIDE]]"
NEAR = 30  # how far from what was asked for a valid choice is looked for
_PATTERN = re.compile(r"(\d+)x(\d+)(?:s(\d+))?(?:p(\d+))?(?:/(\d+)(?:s(\d+))?)?")


@dataclass(frozen=True)
class Block:
    """A convolution, a ReLU and a max pooling; `pool=0` leaves the pooling out.

    Heights go h → h' = (h − size + 2·padding)/stride + 1 → h'' = (h' − pool)/pool_stride + 1; widths too.
    """

    kernels: int
    size: int
    stride: int = 1
    padding: int = 0
    pool: int = 2
    pool_stride: int | None = None

    def __post_init__(self) -> None:
        least = {"kernels": 1, "size": 1, "stride": 1, "padding": 0, "pool": 0}
        for name, minimum in least.items():
            self._check(name, minimum)
        if self.pool == 0 or self.pool_stride is None:
            object.__setattr__(self, "pool_stride", self.pool or None)
        else:
            self._check("pool_stride", 1)

    def _check(self, name: str, minimum: int) -> None:
        value = getattr(self, name)
        if not is_whole(value, minimum):
            raise ModelError(f"A block's {name} must be a whole number of at least {minimum}, not {value!r}.")

    @property
    def pool_step(self) -> int:
        """The pooling's stride, which is its window unless said otherwise."""
        return self.pool_stride or self.pool

    @classmethod
    def parse(cls, text: str) -> Block:
        """Read `8x5s2p1/3s2`: 8 kernels 5×5, stride 2, padding 1, pooling 3×3 with stride 2 (`/0`: none)."""
        match = _PATTERN.fullmatch(text.strip())
        if match is None:
            raise ModelError(f"A block is written {SYNTAX}, such as 8x5s2p1/2, not {text!r}.")
        names = ("kernels", "size", "stride", "padding", "pool", "pool_stride")
        given = zip(names, match.groups(), strict=True)
        return cls(**{name: int(digits) for name, digits in given if digits is not None})

    def __str__(self) -> str:
        stride = f"s{self.stride}" if self.stride > 1 else ""
        padding = f"p{self.padding}" if self.padding else ""
        pool_stride = f"s{self.pool_step}" if self.pool_step != self.pool else ""
        return f"{self.kernels}x{self.size}{stride}{padding}/{self.pool}{pool_stride}"

    def as_dict(self) -> dict[str, Any]:
        """Give the fields, ready for JSON."""
        return asdict(self)

    def sizes(self, image: Size) -> tuple[Size, Size]:
        """Give (height, width) after the convolution and after the pooling, rounded down."""
        convolved = _slide(image, self.size, self.stride, self.padding)
        return convolved, _slide(convolved, self.pool, self.pool_step, 0) if self.pool else convolved


def _slide(image: Size, window: int, stride: int, padding: int) -> Size:
    height, width = ((side - window + 2 * padding) // stride + 1 for side in image)
    return height, width


def default_blocks(image: Size) -> tuple[tuple[Block, ...], bool]:
    """One convolution of wide steps without pooling, for short proofs, and whether its windows fit exactly.

    It is 16x8s4/0 for 28×28 and 32×32 images, and 16x4s2/0 for 8×8; padding is added where that makes it fit.
    """
    side = min(image)
    size, stride = (8, 4) if side >= LARGE_SIDE else (4, 2) if side > 4 else (min(side, 2), 1)
    choices = [Block(16, size, stride, padding, pool=0) for padding in range(stride)]
    fitting = [block for block in choices if not _convolution_problem(block, image, strict=True)]
    return ((fitting or choices)[0],), bool(fitting)


def check_block(block: Block, image: Size, name: str, *, strict: bool) -> None:
    """Raise ModelError when a block does not fit its input, naming the layer and the nearest valid choice."""
    problem = _convolution_problem(block, image, strict)
    if problem:
        choice = _nearest_convolution(block, image, strict)
        raise ModelError(f"{name}, convolution: {problem}; the nearest valid choice is {choice}.")
    convolved, _ = block.sizes(image)
    problem = _pooling_problem(block, convolved, strict)
    if problem:
        choice = _nearest_pooling(block, convolved, strict)
        raise ModelError(f"{name}, pooling: {problem}; the nearest valid choice is {choice}.")


def _convolution_problem(block: Block, image: Size, strict: bool) -> str:
    size, stride, padding = block.size, block.stride, block.padding
    shape = f"{image[0]}×{image[1]}"
    if size > min(image) + 2 * padding:
        return f"a {size}×{size} kernel is larger than its {shape} input with padding {padding}"
    if not strict:
        return ""
    if size >= min(image):
        return f"a {size}×{size} kernel is not smaller than its {shape} input"
    if stride > size:
        return f"stride {stride} steps over pixels that a {size}×{size} kernel never sees"
    for side in image:
        if (side - size + 2 * padding) % stride:
            value = (side - size + 2 * padding) / stride + 1
            return f"({side} − {size} + 2·{padding})/{stride} + 1 = {value:.4g} is not a whole number"
    (height, width), _ = block.sizes(image)
    if height > image[0] or width > image[1]:
        return f"its {height}×{width} output is larger than its {shape} input"
    return ""


def _pooling_problem(block: Block, image: Size, strict: bool) -> str:
    window, stride = block.pool, block.pool_step
    if not window:
        return ""
    if window > min(image):
        return f"a {window}×{window} window is larger than its {image[0]}×{image[1]} input"
    if not strict:
        return ""
    if stride > window:
        return f"stride {stride} steps over values that a {window}×{window} window never sees"
    for side in image:
        if (side - window) % stride:
            value = (side - window) / stride + 1
            return f"({side} − {window})/{stride} + 1 = {value:.4g} is not a whole number"
    return ""


def _nearest_convolution(block: Block, image: Size, strict: bool) -> str:
    side = min(image)
    sizes, strides = _near(block.size, 1, side), _near(block.stride, 1, max(side - 1, 1))
    triples = itertools.product(sizes, strides, _near(block.padding, 0, min(block.padding, side) + 2))
    candidates = (replace(block, size=f, stride=s, padding=p) for f, s, p in triples)
    valid = (other for other in candidates if not _convolution_problem(other, image, strict))
    return _closest(block, valid, ("size", "stride", "padding"))


def _nearest_pooling(block: Block, image: Size, strict: bool) -> str:
    windows = _near(block.pool, 1, min(image))
    apart = block.pool_step == block.pool
    steps = windows if apart else _near(block.pool_step, 1, min(image))
    pairs = zip(windows, steps, strict=True) if apart else itertools.product(windows, steps)
    candidates = (replace(block, pool=window, pool_stride=stride) for window, stride in pairs)
    valid = (other for other in candidates if not _pooling_problem(other, image, strict))
    return _closest(block, valid, ("pool", "pool_stride"))


def _near(value: int, least: int, most: int) -> range:
    """Whole numbers from `least` to `most` that are not far from a value."""
    middle = min(max(value, least), most)
    return range(max(least, middle - NEAR), min(most, middle + NEAR) + 1)


def _closest(block: Block, valid: Iterator[Block], names: tuple[str, ...]) -> str:
    def steps(other: Block) -> tuple[int, int]:
        changes = [abs(getattr(other, name) - getattr(block, name)) for name in names]
        return sum(changes), sum(change > 0 for change in changes)

    best = min(valid, key=steps, default=None)
    return "none" if best is None else ", ".join(f"{name} {getattr(best, name)}" for name in names)
