"""A picture of one perturbation: δ, the images as they are, and what they become."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from closecall.verdict.picture import (
    AFTER,
    FAINT,
    NORM_TITLES,
    bare,
    draw_difference,
    draw_image,
    new_figure,
    png_bytes,
)
from closecall.verdict.universal import Universal

CELL = 1.6  # inches of an image's side


def universal_picture(found: Universal, class_names: Sequence[str]) -> bytes:
    """The content of a PNG file: originals above, perturbed images below, δ beside them."""
    images, low, high = len(found.labels), *found.pixel_range
    figure = new_figure((CELL * images + 2.9, 2 * CELL + 1.0))
    figure.suptitle(headline(found), fontsize=12)
    left, right = figure.subfigures(1, 2, width_ratios=(2.9, CELL * images))
    shown = left.subplots()
    if found.delta is None:
        bare(shown)
        shown.set_title("no perturbation", fontsize=10)
    else:
        draw_difference(left, shown, found.delta.astype(np.float64))
        shown.set_title("perturbation", fontsize=10)
    grid = right.subplots(2, images, squeeze=False)
    for place in range(images):
        before = short_name(found.predicted_before[place], class_names)
        draw_image(grid[0, place], found.originals[place], low, high, f"seen as {before}")
        bare(grid[1, place])
        if found.perturbed is not None and found.predicted_after is not None:
            after = short_name(found.predicted_after[place], class_names)
            draw_image(grid[1, place], found.perturbed[place], low, high, f"seen as {after}")
            grid[1, place].title.set_color(AFTER if found.flipped[place] else FAINT)
    return png_bytes(figure)


def short_name(number: int, names: Sequence[str]) -> str:
    """The name of a class; a data set may have fewer than the model."""
    return names[number] if number < len(names) else str(number)


def headline(found: Universal) -> str:
    """What was found, in one line."""
    norm = NORM_TITLES[found.norm]
    if found.outcome in ("none", "unresolved") or found.distance is None:
        return "no perturbation (proven)" if found.outcome == "none" else "no perturbation found"
    turned = f"{norm} size {found.distance:.4g} turns {found.count} of {len(found.labels)} images"
    if found.most:
        return turned + (" (proven most)" if found.outcome == "most" else f" (at most {found.count_bound})")
    if found.outcome == "smallest":
        return f"{turned} (proven smallest)"
    return f"{turned} (the smallest is {found.lower_bound:.4g} or more)"
