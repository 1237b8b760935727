"""The picture of a curve: the original, the worst image found, and the band that is left between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from closecall.arrays import Vector
from closecall.question.question import Question
from closecall.verdict.curve import Curve
from closecall.verdict.picture import AFTER, BEFORE, FAINT, NORM_TITLES, draw_image, new_figure, png_bytes

SPREADS_BELOW = 1.5  # how far the chart goes below what was found, in heights of that


def curve_picture(curve: Curve, class_names: tuple[str, ...]) -> bytes:
    """The original, the worst image found, and the chart, as the content of a PNG file."""
    return png_bytes(curve_figure(curve, class_names))


def curve_figure(curve: Curve, class_names: tuple[str, ...]) -> Any:
    figure = new_figure((11.0, 4.2))
    figure.suptitle(headline(curve, class_names), fontsize=12)
    panels = figure.subplot_mosaic([["original", "chart"], ["worst", "chart"]], width_ratios=(1, 3.4))
    low, high = curve.question.pixel_range
    draw_image(panels["original"], curve.image, low, high, f"original: {class_names[curve.predicted]}")
    last = curve.points[-1]
    title = f"found within {last.radius:.4g}: {class_names[last.predicted]}"
    draw_image(panels["worst"], curve.images[-1], low, high, title)
    draw_curve(panels["chart"], curve)
    return figure


def headline(curve: Curve, class_names: tuple[str, ...]) -> str:
    label = class_names[curve.question.label]
    if math.isinf(curve.lost):
        return f"{label}: proven to hold up to {curve.safe:.4g}, no image found that changes the verdict"
    return f"{label}: proven to hold up to {curve.safe:.4g}, lost at {curve.lost:.4g}"


def draw_curve(axes: Any, curve: Curve) -> None:
    """The band that holds at every radius, as steps; the intervals at the points; and the line of zero."""
    radii, lower, upper = arrays_of(curve)
    known = np.isfinite(lower)
    floor = float(min(lower[known].min(), upper.min(), 0.0))
    edges = np.stack([radii[:-1], radii[1:]], axis=1).ravel()
    below, above = np.repeat(np.where(known, lower, floor)[1:], 2), np.repeat(upper[:-1], 2)
    axes.fill_between(edges, below, above, color=BEFORE, alpha=0.15, linewidth=0, label="somewhere here")
    axes.vlines(radii[known], lower[known], upper[known], color=FAINT, linewidth=1)
    axes.plot(radii, upper, "v", color=AFTER, markersize=5, label="found")
    axes.plot(radii[known], lower[known], "^", color=BEFORE, markersize=5, label="proven")
    axes.axhline(0, color="black", linewidth=0.9)
    if curve.nearest is not None and math.isfinite(curve.nearest[1]):
        axes.axvspan(*curve.nearest, color=AFTER, alpha=0.25, linewidth=0)
        axes.axvline(curve.nearest[1], color=AFTER, linewidth=0.9, linestyle="--", label="nearest image")
    axes.set_xlim(0, 1.02 * radii[-1])
    # Bounds that are far off would leave no room for what is known.
    spread = float(upper.max() - upper.min()) or 1.0
    axes.set_ylim(bottom=max(axes.get_ylim()[0], float(min(upper.min(), 0.0)) - SPREADS_BELOW * spread))
    axes.set_xlabel(axis_title(curve.question), fontsize=10)
    axes.set_ylabel("worst margin within the radius", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def arrays_of(curve: Curve) -> tuple[Vector, Vector, Vector]:
    numbers = np.array([(point.radius, point.lower, point.upper) for point in curve.points])
    return numbers[:, 0], numbers[:, 1], numbers[:, 2]


def axis_title(question: Question) -> str:
    if question.change is None:
        return f"{NORM_TITLES[question.norm]} radius"
    size = f", {NORM_TITLES[question.norm]} size" if "+" in question.change else ""
    return f"change of {question.change}{size}"
