"""CIFAR-10's binary batches: for each image a label byte, then 1,024 red, green and blue bytes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from closecall.errors import DataError

_PIXELS = 32 * 32
_RECORD = 1 + 3 * _PIXELS


def parse_batches(batches: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (N, 3, 32, 32) and labels (N,) of all batches in order."""
    for batch in batches:
        if not batch or len(batch) % _RECORD:
            raise DataError(
                f"a CIFAR-10 batch must hold a multiple of {_RECORD} bytes, not {len(batch)}; fetch it again."
            )
    records = np.concatenate([np.frombuffer(batch, np.uint8).reshape(-1, _RECORD) for batch in batches])
    images = np.ascontiguousarray(records[:, 1:]).reshape(-1, 3, 32, 32)
    return images, records[:, 0].astype(np.int64)


def write_batches_from_sheets(folder: Path) -> None:
    """Turn the PNG sheets in `folder` into binary batches beside them.

    Row i of a sheet is image i: 1,024 RGB pixels, the rows of the image one after the other.
    """
    training = json.loads((folder / "train_lables.json").read_text(encoding="ascii"))
    testing = json.loads((folder / "test_lables.json").read_text(encoding="ascii"))
    sheets = [f"data_batch_{number}" for number in range(1, 6)]
    for sheet, labels in zip(
        [*sheets, "test_batch"], [*_in_parts(training, len(sheets)), testing], strict=True
    ):
        (folder / f"{sheet}.bin").write_bytes(_to_batch((folder / f"{sheet}.png").read_bytes(), labels))


def _in_parts(labels: list[int], parts: int) -> list[list[int]]:
    length = len(labels) // parts
    return [labels[part * length : (part + 1) * length] for part in range(parts)]


def _to_batch(sheet: bytes, labels: list[int]) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(sheet), formats=["PNG"]) as picture:
        pixels = np.asarray(picture.convert("RGB"))  # (N, 1024, 3)
    planes = pixels.transpose(0, 2, 1).reshape(len(pixels), 3 * _PIXELS)
    return np.hstack([np.array(labels, np.uint8)[:, np.newaxis], planes]).tobytes()
