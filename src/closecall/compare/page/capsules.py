"""Section 6: overlapping things, reconstructions, and what the dimensions of a capsule mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from closecall.compare.page.known import tone_of
from closecall.compare.page.names import in_words, title_of
from closecall.compare.results import CapsuleRow, Dimensions, OverlapRow, OverlapShot, Picture, Results
from closecall.report import (
    Cell,
    Section,
    Tile,
    folded,
    image_uri,
    paragraph,
    sheet,
    sortable_table,
    subheading,
    tiles,
)
from closecall.report.numbers import accuracy_digits, count, duration, percent

OVERLAP_HEADS = ("model", "both right", "parameters", "trained on", "tested on", "training")
MOST_SHEETS = 1
GREY = 0.5


def capsules_section(results: Results) -> Section:
    """Everything that only capsules show; what was not measured is said."""
    blocks = overlap_blocks(results)
    for row in results.capsules:
        blocks += reconstruction_blocks(results, row) + dimension_blocks(results, row)
    if not results.capsules:
        blocks.append(paragraph("No capsule network is among the models."))
    return Section("Inside the capsules", blocks, "capsules")


def overlap_blocks(results: Results) -> list[str]:
    if not results.overlapping:
        return [paragraph("Overlapping digits were not tried.")]
    lines = [overlap_line(results, row) for row in results.overlapping]
    blocks = [
        subheading("Overlapping digits"),
        paragraph("Two digits of different classes at once; an image counts as right when both are named."),
        sortable_table("Overlapping digits", OVERLAP_HEADS, lines),
    ]
    for row in results.overlapping:
        if row.shots:
            blocks.append(paragraph(f"{title_of(row.model)}, with what it makes of each digit it sees:"))
            blocks.append(tiles([overlap_tile(results, row, shot) for shot in row.shots]))
    return blocks


def overlap_line(results: Results, row: OverlapRow) -> list[Cell]:
    return [
        Cell(title_of(row.model), row.model, row.description, tone_of(results, row.model)),
        Cell(percent(row.accuracy, accuracy_digits(results.test_images)), row.accuracy),
        Cell(count(row.parameters), row.parameters),
        Cell(f"{count(row.trained_pairs)} pairs", row.trained_pairs),
        Cell(f"{count(row.tested_pairs)} pairs", row.tested_pairs),
        Cell(duration(row.seconds), row.seconds),
    ]


def overlap_tile(results: Results, row: OverlapRow, shot: OverlapShot) -> Tile:
    names = results.class_names
    labels = " and ".join(names[label] for label in sorted(shot.labels))
    seen = [names[label] for label in shot.predicted]
    pictures = [(image_uri(np.array(shot.image)), f"overlapping {labels}")]
    for name, restored in zip(seen, shot.restored, strict=False):
        pictures.append((image_uri(np.array(restored)), f"what {in_words(row.model)} reconstructs as {name}"))
    right = sorted(shot.labels) == sorted(shot.predicted)
    read = " and ".join(names[label] for label in sorted(shot.predicted))
    return Tile(pictures, labels if right else f"{labels}, read as {read}", right)


def reconstruction_blocks(results: Results, row: CapsuleRow) -> list[str]:
    if not row.reconstructions:
        return []
    shown = []
    for one in row.reconstructions:
        label, seen = results.class_names[one.label], results.class_names[one.predicted]
        pictures = [
            (image_uri(np.array(one.original)), f"test image {one.index}: {label}"),
            (image_uri(np.array(one.restored)), f"what {in_words(row.model)} reconstructs of it, as {seen}"),
        ]
        right = one.label == one.predicted
        shown.append(Tile(pictures, label if right else f"{label}, read as {seen}", right))
    return [
        subheading(f"Reconstructions by {in_words(row.model)}"),
        paragraph("Test images, and below each what the decoder draws from nothing but its longest capsule."),
        tiles(shown),
    ]


def dimension_blocks(results: Results, row: CapsuleRow) -> list[str]:
    if not row.dimensions:
        return []
    sheets = [dimension_blocks_of(results, one) for one in row.dimensions]
    first, rest = sheets[:MOST_SHEETS], sheets[MOST_SHEETS:]
    blocks = [
        subheading(f"What the dimensions of a capsule mean in {in_words(row.model)}"),
        paragraph(
            "Each row moves one dimension of the longest capsule and decodes it again: the columns are the "
            "steps added, the middle one leaves it as it is."
        ),
        *(block for one in first for block in one),
    ]
    if rest:
        blocks.append(folded(f"{len(rest)} more", [block for one in rest for block in one]))
    return blocks


def dimension_blocks_of(results: Results, one: Dimensions) -> list[str]:
    name = results.class_names[one.predicted]
    lowest, highest = signed(min(one.steps)), signed(max(one.steps))
    rows = [
        (
            str(number),
            image_uri(side_by_side(pictures)),
            f"dimension {number} of the capsule of {name}, moved from {lowest} to {highest}",
        )
        for number, pictures in enumerate(one.pictures, start=1)
    ]
    ends = [signed(step) if step in (min(one.steps), 0, max(one.steps)) else "" for step in one.steps]
    return [paragraph(f"Test image {one.index}, read as {name}."), sheet(rows, ends)]


def side_by_side(pictures: Sequence[Picture]) -> NDArray[np.float64]:
    """(channels, height, all widths): small pictures in one row, with a grey line between them."""
    arrays = [np.array(picture) for picture in pictures]
    line = np.full((*arrays[0].shape[:2], max(1, arrays[0].shape[2] // 14)), GREY)
    parts = [part for array in arrays for part in (line, array)][1:]
    joined: NDArray[np.float64] = np.concatenate(parts, axis=2)
    return joined


def signed(step: float) -> str:
    return f"{step:+.2f}".replace("-", "−") if step else "0"
