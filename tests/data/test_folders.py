from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from closecall.data import load_dataset
from closecall.errors import DataError


def write(path: Path, level: int | tuple[int, int, int], size: tuple[int, int] = (5, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L" if isinstance(level, int) else "RGB", size, level).save(path)


def test_sub_folders_are_classes_and_are_split_four_to_one(tmp_path: Path) -> None:
    for index in range(10):
        write(tmp_path / "cat" / f"{index}.png", index)
        write(tmp_path / "bird" / f"{index}.png", 100 + index)
    train, test = load_dataset(str(tmp_path)), load_dataset(str(tmp_path), "test")
    assert train.class_names == test.class_names == ("bird", "cat")
    assert (len(train), len(test)) == (16, 4)
    assert train.input_shape == (1, 4, 5)
    levels = [*train.images[:, 0, 0, 0], *test.images[:, 0, 0, 0]]
    assert sorted(levels) == [*range(10), *range(100, 110)]
    assert [*train.labels, *test.labels] == [0 if level >= 100 else 1 for level in levels]


def test_train_and_test_folders_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "train" / "a" / "1.png", 1)
    write(tmp_path / "train" / "b" / "2.png", 2)
    write(tmp_path / "test" / "b" / "3.png", 3)
    assert load_dataset(str(tmp_path)).images[:, 0, 0, 0].tolist() == [1, 2]
    test = load_dataset(str(tmp_path), "test")
    assert test.images[:, 0, 0, 0].tolist() == [3]
    assert test.labels.tolist() == [1]
    assert test.class_names == ("a", "b")


def test_one_colour_picture_makes_all_colour(tmp_path: Path) -> None:
    write(tmp_path / "train" / "a" / "1.png", 7)
    write(tmp_path / "test" / "a" / "2.png", (1, 2, 3))
    assert load_dataset(str(tmp_path)).images[0, :, 0, 0].tolist() == [7, 7, 7]
    assert load_dataset(str(tmp_path), "test").images[0, :, 0, 0].tolist() == [1, 2, 3]


def test_jpeg_is_read_and_other_files_are_not(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.jpg", 200)
    write(tmp_path / "a" / "2.JPEG", 200)
    (tmp_path / "a" / "notes.txt").write_text("not a picture")
    (tmp_path / "a" / ".hidden.png").write_text("not a picture")
    (tmp_path / ".git").mkdir()
    assert len(load_dataset(str(tmp_path))) + len(load_dataset(str(tmp_path), "test")) == 2


def test_a_picture_of_another_size_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.png", 1)
    write(tmp_path / "a" / "odd.png", 1, size=(6, 4))
    with pytest.raises(DataError, match=r"odd.png is 6x4 pixels but .*1.png is 5x4"):
        load_dataset(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"not a picture"])
def test_an_unreadable_picture_is_named(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "a" / "1.png", 1)
    (tmp_path / "a" / "bad.png").write_bytes(content)
    with pytest.raises(DataError, match=r"bad.png is not a PNG or JPEG"):
        load_dataset(str(tmp_path))


def test_a_truncated_picture_is_named(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (4, 5), dtype=np.uint8)
    (tmp_path / "a").mkdir()
    Image.fromarray(noise).save(tmp_path / "a" / "1.png")
    content = (tmp_path / "a" / "1.png").read_bytes()
    (tmp_path / "a" / "1.png").write_bytes(content[: content.index(b"IDAT") + 12])
    with pytest.raises(DataError, match=r"1.png is damaged"):
        load_dataset(str(tmp_path))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty or has no sub-folders"):
        load_dataset(str(tmp_path))


def test_pictures_without_class_folders_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    with pytest.raises(DataError, match="one sub-folder of pictures per class"):
        load_dataset(str(tmp_path))


def test_class_folders_without_pictures_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(DataError, match=r"no .png, .jpg or .jpeg files"):
        load_dataset(str(tmp_path))


def test_too_few_pictures_for_a_split_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a" / "1.png", 1)
    with pytest.raises(DataError, match="none are left for its test split"):
        load_dataset(str(tmp_path), "test")
