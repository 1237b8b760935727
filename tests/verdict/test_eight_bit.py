"""What a verdict says of its PNG is what torch sees in the file that a user would open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import closecall
from closecall import data
from closecall.models import build
from closecall.verdict.eight_bit import (
    PngReplay,
    decode_png,
    encode_png,
    enlarge,
    from_steps,
    to_steps,
    why_no_png,
)
from closecall.verdict.saved import save_verdict, witness_files


def torch_class(model: nn.Module, pixels: np.ndarray) -> int:
    with torch.no_grad():
        return int(model(torch.from_numpy(pixels.astype(np.float32))[None])[0].argmax())


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 5, 4)])
def test_the_png_does_what_is_said_of_it(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Over twelve images rounding undoes some witnesses and not others; torch decides which."""
    said = set()
    for seed in range(12):
        model = build("dnn", {"sizes": [8], "input_shape": shape, "classes": 4}, seed=seed).eval()
        image = np.random.default_rng(seed).integers(0, 256, shape) / 255
        other = (torch_class(model, image) + 1) % 4
        verdict = closecall.nearest(model, image, target="any" if seed % 2 else other, norm="linf")
        files = witness_files(verdict.witness, verdict.pixel_range)
        (tmp_path / "witness.png").write_bytes(files["witness.png"])
        seen = torch_class(model, data.load_image(tmp_path / "witness.png", shape))
        wanted = seen != verdict.label if verdict.target is None else seen == verdict.target
        assert verdict.png == PngReplay(wanted, seen)
        assert verdict.to_json()["png"] == {"fools": wanted, "predicted": seen, "reason": ""}
        said.add(wanted)
    assert said == {True, False}


@pytest.mark.parametrize("pixel_range", [(-1.0, 1.0), (0.0, 255.0), (-2.5, -0.5)])
def test_other_pixel_ranges(pixel_range: tuple[float, float], tmp_path: Path) -> None:
    low, high = pixel_range
    model = build("dnn", {"sizes": [8], "input_shape": (3, 4, 5), "classes": 3}, seed=3).eval()
    image = low + np.random.default_rng(3).random((3, 4, 5)) * (high - low)
    verdict = closecall.nearest(model, image, pixel_range=pixel_range)
    save_verdict(verdict, tmp_path, model="m")
    with Image.open(tmp_path / "witness.png") as picture:
        assert (picture.mode, picture.size) == ("RGB", (5, 4))
        pixels = low + np.asarray(picture).transpose(2, 0, 1) / 255 * (high - low)
    np.testing.assert_allclose(pixels, verdict.witness, atol=(high - low) / 510 + 1e-5)
    assert verdict.png.predicted == torch_class(model, pixels)
    assert verdict.png.fools == (verdict.png.predicted != verdict.label)


def test_every_step_survives_and_is_read_as_any_picture_is() -> None:
    steps = np.arange(256, dtype=np.uint8).reshape(1, 8, 32)
    np.testing.assert_array_equal(from_steps(steps, (0.0, 1.0)), steps.astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(to_steps(from_steps(steps, (-3.0, 0.25)), (-3.0, 0.25)), steps)
    colours = np.random.default_rng(0).integers(0, 256, (3, 4, 5), dtype=np.uint8)
    np.testing.assert_array_equal(decode_png(encode_png(colours), channels=3), colours)


@pytest.mark.parametrize(
    ("shape", "side"), [((1, 28, 28), (280, 280)), ((3, 32, 32), (288, 288)), ((1, 8, 24), (96, 288))]
)
def test_an_enlarged_pixel_is_a_square(shape: tuple[int, int, int], side: tuple[int, int]) -> None:
    steps = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    large = enlarge(steps)
    factor = side[0] // shape[1]
    assert large.shape == (shape[0], *side)
    for row, column in ((0, 0), (factor - 1, factor - 1), (side[0] - 1, side[1] - 1), (factor, 2 * factor)):
        np.testing.assert_array_equal(large[:, row, column], steps[:, row // factor, column // factor])


@pytest.mark.parametrize(
    ("shape", "pixel_range", "reason"),
    [
        ((1, 28, 28), (0.0, 1.0), ""),
        ((784,), (0.0, 1.0), ""),
        ((3072,), (0.0, 1.0), ""),
        ((5, 7), (0.0, 1.0), ""),
        ((2, 8, 8), (0.0, 1.0), "a picture has 1 or 3 channels, the image has 2"),
        ((7,), (0.0, 1.0), "7 numbers in a row are no square picture"),
        ((1, 8, 8), (1.0, 1.0), "the pixel range from 1 to 1 cannot be cut into 255 steps"),
        ((1, 8, 8), (0.0, float("inf")), "the pixel range from 0 to inf cannot be cut into 255 steps"),
    ],
)
def test_what_can_be_a_png(shape: tuple[int, ...], pixel_range: tuple[float, float], reason: str) -> None:
    assert why_no_png(shape, pixel_range) == reason


def test_a_flat_row_becomes_a_square_picture(tmp_path: Path) -> None:
    torch.manual_seed(0)
    classifier = closecall.read(nn.Sequential(nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 3)).eval(), (16,))
    verdict = closecall.nearest(classifier, np.full(16, 0.5))
    save_verdict(verdict, tmp_path, model="m")
    with Image.open(tmp_path / "witness.png") as picture:
        assert (picture.mode, picture.size) == ("L", (4, 4))
        rounded = (np.asarray(picture) / 255).astype(np.float32).ravel()
    np.testing.assert_allclose(rounded, verdict.witness, atol=0.5 / 255 + 1e-6)


def test_the_sentences() -> None:
    assert PngReplay(True, 1).sentence() == "Its PNG (8 bit) still fools the model: it is seen as 1."
    assert PngReplay(False, 2).sentence() == (
        "Its PNG (8 bit) does not fool the model as asked: rounding undoes it, it is seen as 2."
    )
    assert PngReplay(None, None, "it is too wide").sentence() == "It has no PNG: it is too wide."
