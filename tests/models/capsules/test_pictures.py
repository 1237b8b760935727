"""The pictures: what they draw is what the network says, and the files are images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from closecall import data, models
from closecall.data import Dataset
from closecall.data.multimnist import overlap_digits
from closecall.errors import InputError
from closecall.models import CapsNet
from closecall.models.capsules.pictures import (
    STEPS,
    Chosen,
    choose_images,
    coupling_maps,
    couplings_and_lengths,
    perturbation_sheet,
    reconstruction_rows,
    write_figure,
)

NAMES = tuple("0123456789")


@pytest.fixture(scope="module")
def trained() -> CapsNet:
    network = models.load_model("zoo:mnist-caps")
    assert isinstance(network, CapsNet)
    return network


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return data.load_dataset("mnist", "test").subset(np.arange(1000))


def drawn(axes: object) -> np.ndarray:
    return np.asarray(axes.get_images()[0].get_array())


def test_the_sheet_decodes_every_dimension_at_every_step(trained: CapsNet, digits: Dataset) -> None:
    assert STEPS == (-0.25, -0.2, -0.15, -0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
    figure = perturbation_sheet(trained, digits.image(0), NAMES)
    grid = figure.axes
    assert len(grid) == 17 * 11
    with torch.no_grad():
        capsules, scores = trained.encode(torch.from_numpy(digits.image(0)).unsqueeze(0))
        label = int(scores.argmax())
        for dimension, step in ((0, 0), (7, 10), (15, 3)):
            moved = capsules.clone()
            moved[0, label, dimension] += STEPS[step]
            expected = trained.decode(moved, torch.tensor([label]))[0, 0].numpy()
            found = drawn(grid[11 * (dimension + 1) + step])
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_failures_get_two_columns(trained: CapsNet, digits: Dataset) -> None:
    chosen = choose_images(trained, digits, first=2, count=3, failures=2)
    with torch.no_grad():
        predicted = trained(torch.from_numpy(digits.images.astype(np.float32) / 255)).argmax(1).numpy()
    wrong = [index for index in range(5, 1000) if predicted[index] != digits.labels[index]]
    assert chosen.indices == [2, 3, 4, *wrong[:2]]
    figure = reconstruction_rows(trained, chosen)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    right = [f"{label}, {label}, {label}" for label in digits.labels[2:5]]
    assert titles[:3] == right
    first = wrong[0]
    label, prediction = digits.labels[first], predicted[first]
    assert titles[3:5] == [f"{label}, {prediction}, {label}", f"{label}, {prediction}, {prediction}"]
    assert len(titles) == 7


def test_two_digits_are_drawn_in_two_colours(digits: Dataset) -> None:
    pairs = overlap_digits(digits.subset(np.arange(20)), 0, "pairs")
    torch.manual_seed(0)
    network = CapsNet((1, 36, 36)).eval()
    figure = reconstruction_rows(network, Chosen(pairs, [0]))
    columns = len(figure.axes) // 2
    title = figure.axes[0].get_title()
    assert title.startswith("+".join(str(k) for k in sorted((pairs.labels[0], pairs.second_labels[0]))))
    colours = drawn(figure.axes[columns])  # (36, 36, 3): red and green, no blue
    with torch.no_grad():
        capsules, _ = network.encode(torch.from_numpy(pairs.image(0)).unsqueeze(0))
        for channel, label in enumerate(sorted((pairs.labels[0], pairs.second_labels[0]))):
            expected = network.decode(capsules, torch.tensor([label]))[0, 0].numpy()
            np.testing.assert_allclose(colours[..., channel], expected, atol=1e-5)
    assert not colours[..., 2].any()


def test_couplings_are_those_of_the_forward_pass(trained: CapsNet, digits: Dataset) -> None:
    couplings, lengths = couplings_and_lengths(trained, digits.image(3))
    assert len(couplings) == len(lengths) == 3
    assert np.allclose(couplings[0], 0.1)
    for values in couplings:
        np.testing.assert_allclose(values.sum(axis=0), 1, atol=1e-5)
    with torch.no_grad():
        scores = trained(torch.from_numpy(digits.image(3)).unsqueeze(0))[0].numpy()
    np.testing.assert_allclose(lengths[-1], scores, atol=1e-5)
    figure = coupling_maps(trained, digits.image(3), NAMES)
    maps = [drawn(axes) for axes in figure.axes if axes.get_title(loc="left").startswith("iteration")]
    for found, expected in zip(maps, couplings, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_files_are_what_their_names_say(
    suffix: str, trained: CapsNet, digits: Dataset, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / f"routing{suffix}"
    write_figure(coupling_maps(trained, digits.image(0), NAMES), path)
    content = path.read_bytes()
    assert content.startswith({".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix])
    if suffix == ".png":
        with Image.open(path) as picture:
            assert picture.width > 1200


def test_what_cannot_be_drawn(trained: CapsNet, digits: Dataset, tmp_path: Path) -> None:
    figure = coupling_maps(trained, digits.image(0), NAMES)
    with pytest.raises(InputError, match=r"written as \.png, \.pdf, \.svg, not 'a\.bmp'"):
        write_figure(figure, tmp_path / "a.bmp")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another file"):
        write_figure(figure, tmp_path / "file" / "a.png")
    with pytest.raises(InputError, match="Only dynamic routing"):
        coupling_maps(CapsNet(routing="attention"), digits.image(0), NAMES)
    for first, count, failures in ((0, 0, 0), (0, -1, 3), (999, 5, 0), (-1, 1, 0)):
        with pytest.raises(InputError, match=r"at least one image|choose --first"):
            choose_images(trained, digits, first, count, failures)
