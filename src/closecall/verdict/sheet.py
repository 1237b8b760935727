"""A sheet of images: a row for each model and a column for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from closecall.arrays import Image
from closecall.verdict.picture import FAINT, bare, draw_image, new_figure, png_bytes

CELL = 1.25  # inches of a cell's side


@dataclass(frozen=True, eq=False)
class Cell:
    """An image and what is said below it."""

    image: Image
    caption: str


def sheet_picture(rows: Sequence[Sequence[Cell]], names: Sequence[str], columns: Sequence[str]) -> bytes:
    """The sheet as the content of a PNG file; a cell that was not reached stays empty."""
    widest = max(len(name) for name in names)
    figure = new_figure((CELL * len(columns) + 0.08 * widest + 0.4, (CELL + 0.3) * len(rows) + 0.3))
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    for row, cells in enumerate(rows):
        for column, title in enumerate(columns):
            axes = grid[row, column]
            bare(axes)
            if column < len(cells):
                cell = cells[column]
                draw_image(axes, cell.image, 0.0, 1.0, title if row == 0 else "")
                axes.set_xlabel(cell.caption, fontsize=7, labelpad=2, color=FAINT)
            else:
                axes.set_title(title if row == 0 else "", fontsize=10)
        grid[row, 0].set_ylabel(names[row], fontsize=9)
    return png_bytes(figure)
