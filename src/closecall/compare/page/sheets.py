"""Sheets of pictures as figures: the gallery, reconstructions, overlapping things, dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.compare.page.capsules import signed
from closecall.compare.page.gallery import MOST_SHOWN, pictured
from closecall.compare.page.known import Known, upper_of
from closecall.compare.page.names import title_of
from closecall.compare.results import CapsuleRow, Dimensions, DistanceRow, OverlapRow, Picture, Results
from closecall.report import difference_pixels
from closecall.report.numbers import NORM_NAMES, rounded_up
from closecall.verdict.picture import as_picture, new_figure

SIDE = 112  # pixels of the canvas for a picture's side
GAP = 14
WORDS = 30  # room above a picture
INK, EDGE = "#1d1f23", 187
DOTS_PER_INCH = 112
SIZE = 7  # of the words, in points; more letters than the longest that fit are written smaller
LONGEST = 18


class Sheet:
    """Square pictures in rows and columns, each under a few words, put on one canvas: quick to draw."""

    def __init__(self, columns: int, rows: int, *, words: int = WORDS, head: int = 0) -> None:
        self.words, self.head = words, head
        height, width = head + rows * (SIDE + words) + GAP // 2, columns * (SIDE + GAP)
        self.canvas: NDArray[np.uint8] = np.full((height, width, 4), 255, dtype=np.uint8)
        self.texts: list[tuple[float, float, str]] = []

    def put(self, column: int, row: int, picture: Picture, words: str = "") -> None:
        """Draw an image, grey or in colours."""
        pixels = np.round(255 * np.clip(as_picture(np.array(picture)), 0.0, 1.0)).astype(np.uint8)
        colours = pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, np.newaxis], 3, axis=2)
        solid = np.full((*colours.shape[:2], 1), 255, dtype=np.uint8)
        self.draw(column, row, np.concatenate([colours, solid], axis=2), words)

    def draw(self, column: int, row: int, colours: NDArray[np.uint8], words: str = "") -> None:
        """Draw red, green, blue and opacity in a thin frame."""
        left, top = column * (SIDE + GAP) + GAP // 2, self.top(row)
        down, along = (np.arange(SIDE) * size // SIDE for size in colours.shape[:2])
        framed = np.full((SIDE + 2, SIDE + 2, 4), (EDGE, EDGE, EDGE, 255), dtype=np.uint8)
        framed[1:-1, 1:-1] = colours[down][:, along]
        self.canvas[top - 1 : top + SIDE + 1, left - 1 : left + SIDE + 1] = framed
        self.say(column, row, words)

    def say(self, column: int, row: int, words: str) -> None:
        """Write above the place of a picture."""
        x, y = column * (SIDE + GAP) + (GAP + SIDE) / 2, self.top(row) - 6
        self.texts.append((x, y, words))

    def name_row(self, row: int, words: str) -> None:
        """Write in the middle of the first column."""
        self.texts.append((SIDE / 2, self.top(row) + 0.75 * SIDE, words))

    def top(self, row: int) -> int:
        return self.head + row * (SIDE + self.words) + self.words

    def figure(self, scale: float = 1.0) -> Any:
        """All of it as a figure; `scale` makes the pictures smaller, not the words."""
        height, width = self.canvas.shape[:2]
        drawn = new_figure((scale * width / DOTS_PER_INCH, scale * height / DOTS_PER_INCH))
        drawn.set_layout_engine("none")
        axes = drawn.add_axes((0, 0, 1, 1))
        axes.imshow(self.canvas, interpolation="nearest", aspect="auto", extent=(0, width, height, 0))
        axes.set_axis_off()
        for x, y, words in self.texts:
            size = SIZE * min(1.0, LONGEST / max(1, len(words)))
            axes.text(x, y, words, ha="center", va="bottom", fontsize=size, color=INK)
        return drawn


def gallery_sheet(results: Results, known: Sequence[Known]) -> Any:
    """A row for each image: the original, then for each model the nearest adversarial and the difference."""
    indices = pictured(results)[:MOST_SHOWN]
    sheet = Sheet(1 + 2 * len(known), len(indices))
    for line, index in enumerate(indices):
        rows = {row.model: row for row in results.distances if row.index == index}
        for row in rows.values():
            if row.original is not None:
                sheet.put(0, line, row.original, f"test image {index}: {results.class_names[row.label]}")
                break
        for place, part in enumerate(known):
            put_change(sheet, (1 + 2 * place, line), rows.get(part.model.name), results.class_names)
    return sheet.figure()


def put_change(sheet: Sheet, place: tuple[int, int], row: DistanceRow | None, names: Sequence[str]) -> None:
    if row is None or row.nearest is None or row.original is None or row.became is None:
        return
    column, line = place
    sheet.put(column, line, row.nearest, f"{title_of(row.model)}: {names[row.became]}")
    if row.outcome == "misclassified":
        sheet.say(column + 1, line, "misread to begin with")
        return
    bound = "" if row.proven else "≤ "
    proof = " unproven" if row.outcome == "attacked" else ""
    change = difference_pixels(np.array(row.nearest) - np.array(row.original))
    sheet.draw(column + 1, line, change, f"{NORM_NAMES[row.norm]} {bound}{rounded_up(upper_of(row))}{proof}")


def reconstruction_sheet(results: Results, row: CapsuleRow) -> Any:
    """Test images over what the decoder makes of them."""
    sheet = Sheet(len(row.reconstructions), 2)
    for column, one in enumerate(row.reconstructions):
        sheet.put(column, 0, one.original, results.class_names[one.label])
        sheet.put(column, 1, one.restored, f"as {results.class_names[one.predicted]}")
    return sheet.figure()


def overlap_sheet(results: Results, row: OverlapRow) -> Any:
    """Overlapping things over what was reconstructed of each."""
    sheet = Sheet(len(row.shots), 1 + max(len(shot.restored) for shot in row.shots))
    names = results.class_names
    for column, shot in enumerate(row.shots):
        sheet.put(column, 0, shot.image, " and ".join(names[label] for label in sorted(shot.labels)))
        for line, (label, restored) in enumerate(zip(shot.predicted, shot.restored, strict=False), start=1):
            sheet.put(column, line, restored, f"as {names[label]}")
    return sheet.figure()


def dimension_sheet(results: Results, one: Dimensions) -> Any:
    """A row for each dimension of a capsule, a column for each step it is moved by."""
    sheet = Sheet(1 + len(one.steps), len(one.pictures), words=GAP, head=2 * WORDS)
    sheet.say(0, 0, results.class_names[one.predicted])
    for column, step in enumerate(one.steps, start=1):
        sheet.say(column, 0, signed(step))
    for line, pictures in enumerate(one.pictures):
        sheet.name_row(line, str(line + 1))
        for column, picture in enumerate(pictures, start=1):
            sheet.put(column, line, picture)
    return sheet.figure(scale=0.4)
