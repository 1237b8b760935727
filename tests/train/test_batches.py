"""Split, order and shifts: nothing lost, nothing twice, and all of it decided by the seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from closecall.data import Dataset
from closecall.errors import InputError
from closecall.train.batches import Images, as_floats, fingerprint, shift, shuffle, split
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
    epoch = shuffle(learned, plan, 1)
    batches = [epoch.batch(start, 50) for start in range(0, 220, 50)]
    assert [len(labels) for _, labels in batches] == [50, 50, 50, 50, 20]
    parts = [Images((floats * 255).round().byte(), labels) for floats, labels in batches]
    assert content(*parts) == content(learned)
    assert not torch.equal(torch.cat([labels for _, labels in batches]), learned.labels)


def test_the_seed_and_the_epoch_decide(stripes: Dataset) -> None:
    plan = TrainingPlan(seed=4, shift=1)
    learned, _ = split(stripes, plan)
    first, again, later, other = (
        shuffle(learned, replace(plan, seed=seed), epoch).batch(0, 220)[0]
        for seed, epoch in ((4, 1), (4, 1), (4, 2), (5, 1))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, later)
    assert not torch.equal(first, other)


def test_every_byte_becomes_itself_over_255() -> None:
    pixels = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    wanted = np.arange(256).astype(np.float32) / np.float32(255)
    assert np.array_equal(as_floats(pixels).numpy().reshape(-1), wanted)


def test_shift_moves_whole_images_and_lets_black_in() -> None:
    pixels = torch.randint(1, 255, (60, 2, 5, 4), dtype=torch.uint8)
    moves = torch.randint(-2, 3, (2, 60))
    padded = np.pad(pixels.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    for before, after, (down, right) in zip(
        padded, shift(pixels, moves).numpy(), moves.t().tolist(), strict=True
    ):
        assert np.array_equal(after, before[:, 2 - down : 7 - down, 2 - right : 6 - right])


def test_shifts_are_drawn_evenly(stripes: Dataset) -> None:
    moves = shuffle(Images.of(stripes), TrainingPlan(shift=1), 1).moves
    assert moves is not None
    counts = Counter(tuple(move) for move in moves.t().tolist())
    assert len(counts) == 9
    assert max(counts.values()) < 2 * 240 / 9


def test_a_shift_out_of_sight(stripes: Dataset) -> None:
    with pytest.raises(InputError, match="shift of 6 pixels would move 6×6 images out of sight"):
        shuffle(Images.of(stripes), TrainingPlan(shift=6), 1)


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
