"""Split, order and shifts: nothing lost, nothing twice, and all of it decided by the seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from closecall.data import Dataset
from closecall.errors import InputError
from closecall.train.batches import Images, as_floats, fingerprint, shift_randomly, shuffle, split
from closecall.train.plan import TrainingPlan


def content(*parts: Images) -> Counter[bytes]:
    return Counter(
        pixels.numpy().tobytes() + bytes([label])
        for part in parts
        for pixels, label in zip(part.pixels, part.labels.tolist(), strict=True)
    )


def test_split_and_shuffle_keep_every_image_once(stripes: Dataset) -> None:
    plan = TrainingPlan(seed=4)
    learned, held_out = split(stripes, plan)
    assert (len(learned), len(held_out)) == (220, 20)
    assert content(learned, held_out) == content(Images.of(stripes))
    shuffled = shuffle(learned, plan, 1)
    assert content(shuffled) == content(learned)
    assert not torch.equal(shuffled.labels, learned.labels)
    assert shuffled.pixels.dtype == torch.uint8


def test_the_seed_and_the_epoch_decide(stripes: Dataset) -> None:
    plan = TrainingPlan(seed=4, shift=1)
    learned, _ = split(stripes, plan)
    first = shuffle(learned, plan, 1)
    assert torch.equal(first.pixels, shuffle(learned, plan, 1).pixels)
    assert not torch.equal(first.pixels, shuffle(learned, plan, 2).pixels)
    assert not torch.equal(first.pixels, shuffle(learned, replace(plan, seed=5), 1).pixels)


def test_every_byte_becomes_itself_over_255() -> None:
    pixels = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    wanted = np.arange(256).astype(np.float32) / np.float32(255)
    assert np.array_equal(as_floats(pixels).numpy().reshape(-1), wanted)


def test_shift_moves_whole_images_and_lets_black_in() -> None:
    pixels = torch.randint(1, 255, (400, 2, 5, 4), dtype=torch.uint8)
    shifted = shift_randomly(pixels, 2, torch.Generator().manual_seed(0))
    padded = np.pad(pixels.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    moves: Counter[tuple[int, int]] = Counter()
    for before, after in zip(padded, shifted.numpy(), strict=True):
        found = [
            (down - 2, right - 2)
            for down in range(5)
            for right in range(5)
            if np.array_equal(before[:, down : down + 5, right : right + 4], after)
        ]
        assert len(found) == 1
        moves.update(found)
    assert len(moves) == 25
    assert max(moves.values()) < 40


def test_a_shift_out_of_sight() -> None:
    with pytest.raises(InputError, match="shift of 4 pixels would move 5×4 images out of sight"):
        shift_randomly(torch.zeros(1, 1, 5, 4, dtype=torch.uint8), 4, torch.Generator())


def test_holding_out_everything(stripes: Dataset) -> None:
    with pytest.raises(InputError, match="Cannot hold out 240 of 240 images"):
        split(stripes, TrainingPlan(validation=240))


def test_fingerprint_sees_every_pixel_and_label(stripes: Dataset) -> None:
    images, labels = stripes.images.copy(), stripes.labels.copy()
    images[100, 0, 3, 3] ^= 1
    labels[7] = (labels[7] + 1) % 3
    others = [
        Dataset("stripes", images, stripes.labels, stripes.class_names),
        Dataset("stripes", stripes.images, labels, stripes.class_names),
    ]
    assert len({fingerprint(dataset) for dataset in [stripes, *others]}) == 3
    same = Dataset("copy", np.asfortranarray(stripes.images), stripes.labels.copy(), stripes.class_names)
    assert fingerprint(same) == fingerprint(stripes)
