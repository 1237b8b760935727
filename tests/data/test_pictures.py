from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from closecall.data import load_image
from closecall.data.pictures import picture_header
from closecall.errors import DataError

GREY = np.random.default_rng(3).integers(0, 256, (4, 5), dtype=np.uint8)
COLOUR = np.random.default_rng(4).integers(0, 256, (4, 5, 3), dtype=np.uint8)


def save(pixels: np.ndarray, path: Path) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def test_grey_pixels_are_divided_by_255(tmp_path: Path) -> None:
    image = load_image(save(GREY, tmp_path / "x.png"), (1, 4, 5))
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image, GREY[np.newaxis].astype(np.float32) / np.float32(255))


def test_colour_pixels_come_channels_first(tmp_path: Path) -> None:
    image = load_image(str(save(COLOUR, tmp_path / "x.png")), (3, 4, 5))
    assert image[2, 3, 1] == np.float32(COLOUR[3, 1, 2]) / np.float32(255)


def test_grey_becomes_colour_and_back_without_loss(tmp_path: Path) -> None:
    as_colour = load_image(save(GREY, tmp_path / "x.png"), (3, 4, 5))
    np.testing.assert_array_equal(as_colour, np.stack([as_colour[0]] * 3))
    back = load_image(save(np.stack([GREY] * 3, axis=-1), tmp_path / "y.png"), (1, 4, 5))
    np.testing.assert_array_equal(back[0], as_colour[0])


def test_jpeg_is_read(tmp_path: Path) -> None:
    image = load_image(save(np.full((8, 8), 100, np.uint8), tmp_path / "x.jpg"), (1, 8, 8))
    np.testing.assert_allclose(image, 100 / 255, atol=2 / 255)


@pytest.mark.parametrize("suffix", ["png", "jpg"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_as_the_camera_was_held(tmp_path: Path, orientation: int, suffix: str) -> None:
    """What Pillow's own turning gives is the truth; blocks of 8 survive JPEG."""
    held = Image.Exif()
    held[0x0112] = orientation
    blocks = np.array([[0, 60, 120], [180, 220, 255]], np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(blocks).save(path, exif=held, quality=100)
    with Image.open(path) as picture:
        upright = np.asarray(ImageOps.exif_transpose(picture))
    assert upright.shape == ((16, 24) if orientation < 5 else (24, 16))
    np.testing.assert_array_equal(load_image(path, (1, *upright.shape))[0], upright / np.float32(255))
    assert picture_header(path) == (1, upright.shape[::-1])


def test_a_damaged_note_on_the_camera_is_passed_over(tmp_path: Path) -> None:
    path = save(GREY, tmp_path / "x.png")
    with Image.open(path) as picture:
        picture.save(tmp_path / "y.png", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\xff\xff")
    np.testing.assert_array_equal(load_image(tmp_path / "y.png", (1, 4, 5)), load_image(path, (1, 4, 5)))


def test_an_opaque_alpha_channel_is_dropped(tmp_path: Path) -> None:
    opaque = np.dstack([COLOUR, np.full((4, 5), 255, np.uint8)])
    image = load_image(save(opaque, tmp_path / "x.png"), (3, 4, 5))
    np.testing.assert_array_equal(image, load_image(save(COLOUR, tmp_path / "y.png"), (3, 4, 5)))


def test_transparent_pixels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has transparent pixels"):
        load_image(save(np.dstack([COLOUR, GREY]), tmp_path / "x.png"), (3, 4, 5))


def test_16_bit_pixels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only 8-bit"):
        load_image(save(GREY.astype(np.uint16) * 200, tmp_path / "x.png"), (1, 4, 5))


def test_another_size_is_refused_with_both_sizes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is 5x4 pixels .* the network takes 28x27"):
        load_image(save(GREY, tmp_path / "x.png"), (1, 27, 28))


def test_two_channels_need_an_array(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the network takes 2; give a .npy"):
        load_image(save(GREY, tmp_path / "x.png"), (2, 4, 5))


def test_arrays_of_bytes_and_of_floats(tmp_path: Path) -> None:
    np.save(tmp_path / "bytes.npy", GREY)
    np.save(tmp_path / "floats.npy", np.linspace(0, 1, 24).reshape(2, 3, 4))
    np.testing.assert_array_equal(
        load_image(tmp_path / "bytes.npy", (1, 4, 5)), GREY[np.newaxis].astype(np.float32) / np.float32(255)
    )
    floats = load_image(tmp_path / "floats.npy", (2, 3, 4))
    np.testing.assert_array_equal(floats, np.linspace(0, 1, 24).reshape(2, 3, 4).astype(np.float32))


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.full((1, 2, 2), np.nan), "a pixel is NaN"),
        (np.full((1, 2, 2), 255.0), "floats must be in"),
        (np.full((1, 2, 2), -0.5), "floats must be in"),
        (np.zeros((1, 2, 2), np.int32), "not int32"),
        (np.zeros((1, 2, 2), np.complex64), "not complex64"),
        (np.zeros((2, 3)), r"shape \(1, 2, 3\) but the network takes \(1, 2, 2\)"),
        (np.array([None, 1], dtype=object), "not an .npy file of plain numbers"),
    ],
)
def test_bad_arrays_are_refused(tmp_path: Path, values: np.ndarray, complaint: str) -> None:
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(DataError, match=complaint):
        load_image(tmp_path / "x.npy", (1, 2, 2))


@pytest.mark.parametrize("name", ["x.npy", "x.png", "x.jpeg"])
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x93NUM")
    with pytest.raises(DataError, match="is not a"):
        load_image(tmp_path / name, (1, 2, 2))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no image file .*x.png"):
        load_image(tmp_path / "x.png", (1, 2, 2))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gif").write_bytes(b"GIF89a")
    with pytest.raises(DataError, match=r"must be a .png, .jpg, .jpeg or .npy file"):
        load_image(tmp_path / "x.gif", (1, 2, 2))
