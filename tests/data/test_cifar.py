from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from closecall.data.cifar import parse_batches, write_batches_from_sheets
from closecall.errors import DataError

SHEETS = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def test_sheets_become_the_published_binary_form(tmp_path: Path) -> None:
    images = np.random.default_rng(5).integers(0, 256, (6, 2, 32, 32, 3), dtype=np.uint8)
    labels = [[index, index + 1] for index in range(6)]
    for sheet, pictures in zip(SHEETS, images, strict=True):
        Image.fromarray(pictures.reshape(2, 1024, 3)).save(tmp_path / f"{sheet}.png")
    (tmp_path / "train_lables.json").write_text(
        json.dumps([label for batch in labels[:5] for label in batch])
    )
    (tmp_path / "test_lables.json").write_text(json.dumps(labels[5]))
    write_batches_from_sheets(tmp_path)
    for sheet, pictures, numbers in zip(SHEETS, images, labels, strict=True):
        expected = b"".join(
            bytes([number]) + b"".join(picture[:, :, channel].tobytes() for channel in range(3))
            for picture, number in zip(pictures, numbers, strict=True)
        )
        assert (tmp_path / f"{sheet}.bin").read_bytes() == expected


def test_batches_are_read_in_order() -> None:
    red = bytes([3]) + bytes([255]) * 1024 + bytes(2048)
    blue_corner = bytes([9]) + bytes(3071) + bytes([7])
    images, labels = parse_batches([red, blue_corner])
    assert labels.tolist() == [3, 9]
    assert images.shape == (2, 3, 32, 32)
    assert images[0].mean(axis=(1, 2)).tolist() == [255, 0, 0]
    assert images[1, 2, 31, 31] == 7
    assert images[1].sum() == 7
    assert images.flags.writeable
    assert images.flags.c_contiguous


@pytest.mark.parametrize("length", [0, 3072, 3074])
def test_a_batch_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(DataError, match=f"multiple of 3073 bytes, not {length}"):
        parse_batches([bytes(length)])
