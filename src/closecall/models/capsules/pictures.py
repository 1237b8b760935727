"""Pictures of what capsules know: perturbed dimensions, reconstructions and couplings.

Every function gives a matplotlib figure; `write_figure` writes it as PNG, PDF or SVG.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from closecall.data import Dataset, PairDataset
from closecall.data.dataset import to_unit_interval
from closecall.errors import InputError
from closecall.files import explaining_failed_writes, prepare_file, write_whole
from closecall.models.capsnet import CapsNet
from closecall.models.capsules.routing import dynamic_routing, lengths_of, squash

FORMATS = (".png", ".pdf", ".svg")
STEPS = tuple(round(-0.25 + 0.05 * step, 2) for step in range(11))
INK, FAINT, RIGHT, WRONG = "#222222", "#8a8a8a", "#2a7f4f", "#c0392b"
COUPLING_COLOURS = "magma"
AT_A_TIME = 500


def perturbation_sheet(model: CapsNet, image: NDArray[np.float32], names: Sequence[str]) -> Any:
    """Draw what the decoder makes of the longest capsule as each of its dimensions moves."""
    with torch.no_grad():
        capsules, scores = model.encode(torch.from_numpy(image).unsqueeze(0))
        chosen = scores.argmax(1)
        rows = perturbed(model, capsules, chosen)
        restored = model.decode(capsules, chosen)[0]
    dimensions = len(rows)
    figure, grid = _figure_grid(dimensions + 1, len(STEPS), cell=0.44, left=0.4, top=0.08)
    _show(grid[0][0], image)
    _show(grid[0][1], restored.numpy())
    for axes in grid[0][2:]:
        axes.set_visible(False)
    score = float(scores.max())
    text = f"the image, and what the capsule of {names[int(chosen)]}\n(length {score:.2f}) makes of it"
    axes = grid[0][1]
    axes.text(1.25, 0.5, text, transform=axes.transAxes, fontsize=8, color=INK, va="center")
    for dimension, row in enumerate(rows):
        for axes, picture in zip(grid[dimension + 1], row, strict=True):
            _show(axes, picture)
        label = grid[dimension + 1][0]
        label.set_ylabel(str(dimension + 1), rotation=0, fontsize=8, color=INK, ha="right", va="center")
    for axes, step in zip(grid[-1], STEPS, strict=True):
        axes.set_xlabel(f"{step:+.2f}".replace("-", "−") if step else "0", fontsize=7, color=INK)
    return figure


def perturbed(model: CapsNet, capsules: Tensor, chosen: Tensor) -> NDArray[np.float32]:
    """Decode every dimension moved by every step: (dimensions, steps, channels, height, width)."""
    dimensions = capsules.shape[2]
    moved = capsules.repeat(dimensions * len(STEPS), 1, 1).reshape(
        dimensions, len(STEPS), *capsules.shape[1:]
    )
    for dimension in range(dimensions):
        moved[dimension, :, int(chosen), dimension] += torch.tensor(STEPS)
    decoded = model.decode(moved.flatten(0, 1), chosen.expand(dimensions * len(STEPS)))
    pictures: NDArray[np.float32] = decoded.reshape(dimensions, len(STEPS), *decoded.shape[1:]).numpy()
    return pictures


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some images of a data set, by their numbers, with one label each or two."""

    dataset: Dataset
    indices: list[int]

    @property
    def images(self) -> NDArray[np.float32]:
        """The images (count, channels, height, width) in [0, 1]."""
        return to_unit_interval(self.dataset.images[self.indices])

    @property
    def labels(self) -> NDArray[np.int64]:
        """The classes of what is on each image, (count, 1) or (count, 2)."""
        dataset = self.dataset
        labels = dataset.both_labels() if isinstance(dataset, PairDataset) else dataset.labels[:, np.newaxis]
        chosen: NDArray[np.int64] = labels[self.indices]
        return chosen


def choose_images(model: CapsNet, dataset: Dataset, first: int, count: int, failures: int) -> Chosen:
    """Choose `count` images in a row and the next `failures` images that the model gets wrong."""
    if count < 0 or failures < 0 or count + failures < 1:
        raise InputError("Choose at least one image: --count and --failures are not negative and not both 0.")
    if not 0 <= first <= len(dataset) - max(count, 1):
        raise InputError(f"{dataset.name} has images 0 to {len(dataset) - 1}: choose --first within them.")
    indices = list(range(first, first + count))
    wrong: list[int] = []
    for start in range(first + count, len(dataset), AT_A_TIME):
        if len(wrong) >= failures:
            break
        block = Chosen(dataset, list(range(start, min(start + AT_A_TIME, len(dataset)))))
        labels = np.sort(block.labels, axis=1)
        missed = (_predicted(model, block.images, labels.shape[1]) != labels).any(axis=1)
        wrong += [block.indices[position] for position in np.flatnonzero(missed)]
    return Chosen(dataset, indices + wrong[:failures])


def _predicted(model: CapsNet, images: NDArray[np.float32], things: int) -> NDArray[np.int64]:
    """Give the classes of the longest capsules, in ascending order: (count, things)."""
    with torch.no_grad():
        best: NDArray[np.int64] = model(torch.from_numpy(images)).topk(things).indices.sort(1).values.numpy()
    return best


def reconstruction_rows(model: CapsNet, chosen: Chosen) -> Any:
    """Draw images over their reconstructions, with labels, prediction and what was reconstructed.

    An image that is classified wrongly gets two columns: reconstructed as its label and as the prediction.
    Two things on an image are drawn in two colours, red and green, which mix where both are.
    """
    images, names = chosen.images, chosen.dataset.class_names
    labels = np.sort(chosen.labels, axis=1)
    predicted = _predicted(model, images, labels.shape[1])
    columns = [
        (index, restored)
        for index, pair in enumerate(zip(labels.tolist(), predicted.tolist(), strict=True))
        for restored in dict.fromkeys(map(tuple, pair))
    ]
    figure, grid = _figure_grid(2, len(columns), cell=0.72, left=1.0, top=0.25, bottom=0.08)
    with torch.no_grad():
        capsules, _ = model.encode(torch.from_numpy(images))
        for number, (index, restored) in enumerate(columns):
            decoded = [model.decode(capsules[[index]], torch.tensor([k]))[0].numpy() for k in restored]
            _show(grid[0][number], images[index])
            _show(grid[1][number], decoded[0] if len(decoded) == 1 else _coloured(*decoded))
            shown = (labels[index], predicted[index], restored)
            title = ", ".join("+".join(names[k] for k in classes) for classes in shown)
            colour = RIGHT if (labels[index] == predicted[index]).all() else WRONG
            grid[0][number].set_title(title, fontsize=6, color=colour, pad=4)
    for axes, text in zip((row[0] for row in grid), ("image", "reconstruction"), strict=True):
        axes.set_ylabel(text, rotation=0, fontsize=8, color=INK, ha="right", va="center", labelpad=6)
    legend = "label, prediction,\nreconstructed as"
    grid[0][0].text(-0.12, 1.05, legend, transform=grid[0][0].transAxes, fontsize=6, color=FAINT, ha="right")
    return figure


def _coloured(red: NDArray[np.float32], green: NDArray[np.float32]) -> NDArray[np.float32]:
    """Lay two grey images (1, height, width) over each other on black, one red and one green."""
    return np.concatenate([red, green, np.zeros_like(red)])


def coupling_maps(model: CapsNet, image: NDArray[np.float32], names: Sequence[str]) -> Any:
    """Draw how the couplings of all primary capsules, and the lengths of the class capsules, settle."""
    if model.sizes.routing != "dynamic":
        raise InputError(
            f"Only dynamic routing has couplings that change over iterations, not {model.sizes.routing}."
        )
    couplings, lengths = couplings_and_lengths(model, image)
    figure = _blank_figure(width=7.2, height=0.5 + 1.55 * len(couplings))
    grid = figure.add_gridspec(len(couplings), 3, width_ratios=(1.0, 4.2, 1.3), wspace=0.12, hspace=0.42)
    figure.subplots_adjust(left=0.02, right=0.97, top=1 - 0.35 / figure.get_figheight(), bottom=0.09)
    _show(figure.add_subplot(grid[0, 0]), image)
    brightest = max(float(values.max()) for values in couplings)
    for number, (values, length) in enumerate(zip(couplings, lengths, strict=True)):
        map_axes, bar_axes = figure.add_subplot(grid[number, 1]), figure.add_subplot(grid[number, 2])
        drawn = map_axes.imshow(
            values, aspect="auto", cmap=COUPLING_COLOURS, vmin=0, vmax=brightest, interpolation="nearest"
        )
        _label_classes(map_axes, names)
        map_axes.set_title(f"iteration {number + 1}", fontsize=8, color=INK, loc="left", pad=3)
        map_axes.set_xticks([])
        _draw_lengths(bar_axes, length)
    map_axes.set_xlabel(f"{couplings[0].shape[1]} primary capsules, by type and position", fontsize=8)
    bar_axes.set_xlabel("length of the class capsule", fontsize=8)
    box = grid[-1, 0].get_position(figure)
    colour_axes = figure.add_axes((box.x0 + 0.02, box.y0 + 0.02, 0.015, box.height - 0.02))
    figure.colorbar(drawn, cax=colour_axes).ax.tick_params(labelsize=7)
    colour_axes.set_title("coupling", fontsize=7, loc="left", pad=4)
    return figure


def couplings_and_lengths(
    model: CapsNet, image: NDArray[np.float32]
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Give, for every routing iteration, c (classes, primary capsules) and ‖v‖ (classes,) of one image."""
    trace: list[Tensor] = []
    with torch.no_grad():
        votes = model.votes(torch.from_numpy(image).unsqueeze(0))
        dynamic_routing(votes, model.sizes.iterations, trace=trace)
        lengths = [lengths_of(squash(torch.einsum("bji,bjid->bjd", c, votes)))[0].numpy() for c in trace]
    return [couplings[0].numpy() for couplings in trace], lengths


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that its file name asks for."""
    check_format(path)
    prepare_file(path)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=220, facecolor="white")
    with explaining_failed_writes(str(path)):
        write_whole(path, content.getvalue())


def check_format(path: Path) -> None:
    """Refuse a file whose name does not say how to write a picture."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"A picture is written as {', '.join(FORMATS)}, not {path.name!r}.")


def _blank_figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def _figure_grid(
    rows: int, columns: int, *, cell: float, left: float, top: float, bottom: float = 0.3
) -> tuple[Any, list[list[Any]]]:
    """Give a figure with a grid of square cells, and its axes; the lengths are in inches."""
    right = 0.1
    width, height = left + columns * cell + right, top + rows * cell + bottom
    figure = _blank_figure(width, height)
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(
        left=left / width,
        right=1 - right / width,
        top=1 - top / height,
        bottom=bottom / height,
        wspace=0.06,
        hspace=0.06,
    )
    return figure, [list(row) for row in grid]


def _show(axes: Any, picture: NDArray[np.float32]) -> None:
    channels = picture.shape[0]
    pixels = picture.transpose(1, 2, 0) if channels == 3 else picture[0]
    axes.imshow(pixels, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#cccccc")
        spine.set_linewidth(0.5)


def _label_classes(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.tick_params(length=0)


def _draw_lengths(axes: Any, lengths: NDArray[np.float32]) -> None:
    longest = int(lengths.argmax())
    colours = [RIGHT if index == longest else "#b5b5b5" for index in range(len(lengths))]
    axes.barh(range(len(lengths)), lengths, color=colours, height=0.75)
    axes.set_ylim(len(lengths) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_yticks([])
    axes.tick_params(labelsize=6)
    axes.spines[["top", "right", "left"]].set_visible(False)
