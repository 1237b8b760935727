"""The notation of blocks, their sizes against torch, and their validity rules."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from closecall.errors import ModelError
from closecall.models.blocks import Block, check_block

small = st.integers(1, 9)
blocks = st.builds(
    Block,
    kernels=small,
    size=small,
    stride=small,
    padding=st.integers(0, 4),
    pool=st.integers(0, 4),
    pool_stride=st.one_of(st.none(), st.integers(1, 4)),
)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("8x5", Block(8, 5)),
        ("8x5/0", Block(8, 5, pool=0)),
        ("8x6s2p1/3s2", Block(8, 6, stride=2, padding=1, pool=3, pool_stride=2)),
        (" 16x3p1 ", Block(16, 3, padding=1)),
    ],
)
def test_parse(text: str, block: Block) -> None:
    assert Block.parse(text) == block


@settings(deadline=None)
@given(blocks)
def test_text_and_dictionary_give_the_block_back(block: Block) -> None:
    assert Block.parse(str(block)) == block
    assert Block(**block.as_dict()) == block


@pytest.mark.parametrize(
    "text", ["", "8", "8x", "x5", "8x5/", "8x5s", "8x5p1s2", "-8x5", "8x5.5", "8×5", "0x5"]
)
def test_bad_text(text: str) -> None:
    with pytest.raises(ModelError, match=r"8x5s2p1/2|at least 1"):
        Block.parse(text)


def whole(numerator: int, divisor: int) -> bool:
    return numerator % divisor == 0


def fits(block: Block, sides: tuple[int, int]) -> bool:
    """The rules as SPEC lists them, written once more."""
    f, s, p = block.size, block.stride, block.padding
    if s > f or any(f >= side or not whole(side - f + 2 * p, s) for side in sides):
        return False
    after = [(side - f + 2 * p) // s + 1 for side in sides]
    if any(new > old for new, old in zip(after, sides, strict=True)):
        return False
    window, step = block.pool, block.pool_stride or 1
    return not window or (
        step <= window and all(window <= side and whole(side - window, step) for side in after)
    )


@settings(deadline=None)
@given(blocks, st.tuples(st.integers(1, 12), st.integers(1, 12)))
def test_strict_rules_and_sizes(block: Block, sides: tuple[int, int]) -> None:
    if not fits(block, sides):
        with pytest.raises(
            ModelError, match=r"Block 7, (convolution|pooling): .*; the nearest valid choice is "
        ):
            check_block(block, sides, "Block 7", strict=True)
        return
    check_block(block, sides, "Block 7", strict=True)
    assert block.sizes(sides)[1] == tuple(torch_output(block, sides).shape[2:])


def torch_output(block: Block, sides: tuple[int, int]) -> torch.Tensor:
    image, kernel = torch.zeros(1, 1, *sides), torch.zeros(1, 1, block.size, block.size)
    output = F.conv2d(image, kernel, stride=block.stride, padding=block.padding)
    return F.max_pool2d(output, block.pool, block.pool_stride) if block.pool else output


@settings(deadline=None)
@given(blocks, st.tuples(st.integers(1, 12), st.integers(1, 12)))
def test_without_strict_exactly_what_torch_takes(block: Block, sides: tuple[int, int]) -> None:
    try:
        wanted = tuple(torch_output(block, sides).shape[2:])
    except RuntimeError:
        with pytest.raises(ModelError, match="larger than its"):
            check_block(block, sides, "Block 1", strict=False)
        return
    check_block(block, sides, "Block 1", strict=False)
    assert block.sizes(sides)[1] == wanted


@settings(deadline=None)
@given(blocks, st.tuples(st.integers(2, 12), st.integers(2, 12)))
def test_the_named_choice_is_valid(block: Block, sides: tuple[int, int]) -> None:
    for _ in range(2):
        try:
            check_block(block, sides, "Block 1", strict=True)
        except ModelError as error:
            choice = str(error).split("choice is ")[1].rstrip(".")
            changes = {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", choice)}
            block = Block(**{**block.as_dict(), **changes})
    check_block(block, sides, "Block 1", strict=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4x5s2", r"\(28 − 5 \+ 2·0\)/2 \+ 1 = 12.5 is not a whole number; .* size 4, stride 2, padding 0"),
        ("4x2s3", "stride 3 steps over pixels"),
        ("4x28", "not smaller than its 28×28 input"),
        ("4x3p2", "30×30 output is larger than its 28×28 input"),
        ("4x6s2/5", r"\(12 − 5\)/5 \+ 1 = 2.4 is not a whole number; .* pool 4, pool_stride 4"),
        ("4x6s2/2s3", "stride 3 steps over values"),
        ("4x6s2/13", "13×13 window is larger than its 12×12 input"),
    ],
)
def test_sentences(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        check_block(Block.parse(text), (28, 28), "Block 1", strict=True)
