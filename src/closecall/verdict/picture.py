"""Pictures of answers: the image before and after, what changed, and what the network says to both."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall.question.images import channels_last
from closecall.verdict.naming import moved, nothing
from closecall.verdict.verdict import Verdict

Pixels = NDArray[np.float64]

BEFORE, AFTER, FAINT = "#4c78a8", "#e45756", "#6b6b6b"
MOST_BARS = 16
NORM_TITLES = {"l1": "L1", "l2": "L2", "linf": "L∞", "l0": "L0"}


def verdict_picture(verdict: Verdict, class_names: tuple[str, ...]) -> bytes:
    """Original, adversarial, signed difference and the class scores of both, as the content of a PNG file."""
    return png_bytes(verdict_figure(verdict, class_names))


def verdict_figure(verdict: Verdict, class_names: tuple[str, ...]) -> Any:
    """The same as a figure; the panels with pixels are all of one size."""
    figure = new_figure((13.0, 3.6) if verdict.witness is not None else (7.0, 3.6))
    figure.suptitle(headline(verdict, class_names), fontsize=12)
    low, high = verdict.pixel_range
    before = class_names[verdict.predicted_before]
    if verdict.witness is None or verdict.predicted_after is None:
        original, scores = figure.subplots(1, 2, width_ratios=(1, 1.3))
        draw_image(original, verdict.image, low, high, f"original: {before}")
        draw_scores(scores, verdict.scores_before, None, class_names)
        return figure
    original, witness, difference, scores = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.5))
    draw_image(original, verdict.image, low, high, f"original: {before}")
    draw_image(witness, verdict.witness, low, high, f"adversarial: {class_names[verdict.predicted_after]}")
    draw_difference(figure, difference, verdict.witness.astype(np.float64) - verdict.image)
    draw_scores(scores, verdict.scores_before, verdict.scores_after, class_names)
    return figure


def image_picture(image: NDArray[np.float32], title: str, low: float = 0.0, high: float = 1.0) -> bytes:
    """One image under a title, as the content of a PNG file."""
    figure = new_figure((4.2, 4.6))
    draw_image(figure.subplots(), image, low, high, title)
    return png_bytes(figure)


def headline(verdict: Verdict, class_names: tuple[str, ...]) -> str:
    """What was found, in one line."""
    measured = measured_in(verdict)
    if verdict.distance is None or verdict.predicted_after is None:
        if verdict.outcome == "robust" and verdict.change is not None:
            return f"{nothing(verdict.question)} turns the verdict (proven)"
        if verdict.outcome == "robust" and verdict.radius is not None:
            return f"no adversarial within {measured} {verdict.radius:g} (proven)"
        return "no adversarial in the box (proven)" if verdict.outcome == "robust" else "no adversarial found"
    if verdict.distance == 0:
        return f"already seen as {class_names[verdict.predicted_before]}: distance 0"
    proof = (
        "proven nearest"
        if verdict.outcome == "nearest"
        else f"the nearest is at {verdict.lower_bound:.4g} or more"
    )
    said = f"{measured} {verdict.distance:.4g}" if verdict.amounts is None else moved(verdict, 4)
    return f"{said} ({proof})"


def measured_in(verdict: Verdict) -> str:
    """What the numbers of a verdict are: a distance, or the size of a change."""
    title = NORM_TITLES[verdict.norm]
    if verdict.change is None:
        return f"{title} distance"
    return f"{title} size" if "+" in verdict.change else f"change of {verdict.change}"


def new_figure(size: tuple[float, float]) -> Any:
    """A figure that belongs to no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png_bytes(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()


def as_picture(image: NDArray[Any]) -> Pixels:
    """(height, width) for one channel, (height, width, 3) for three; flat images as square as they can be."""
    pixels: Pixels = np.asarray(image, dtype=np.float64)
    if channels_last(pixels.shape):
        pixels = np.moveaxis(pixels, 2, 0)
    if pixels.ndim == 3 and pixels.shape[0] == 3:
        return np.moveaxis(pixels, 0, 2)
    if pixels.ndim == 3 and pixels.shape[0] == 1:
        return np.squeeze(pixels, 0)
    if pixels.ndim == 2:
        return pixels
    size = pixels.size
    height = next(side for side in range(math.isqrt(size), 0, -1) if size % side == 0)
    return pixels.reshape(height, size // height)


def draw_image(axes: Any, image: NDArray[Any], low: float, high: float, title: str) -> None:
    axes.imshow(
        (as_picture(image) - low) / (high - low), cmap="gray", vmin=0, vmax=1, interpolation="nearest"
    )
    axes.set_title(title, fontsize=10)
    bare(axes)


def draw_difference(figure: Any, axes: Any, difference: Pixels) -> None:
    """Blue where pixels fell, red where they rose, on a scale that is the same both ways."""
    shown = strongest_channel(as_picture(difference))
    largest = float(np.abs(shown).max(initial=0.0)) or 1.0
    drawn = axes.imshow(shown, cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest")
    draw_scale(figure, axes, drawn, *shown.shape)
    changed = int((np.abs(difference) > 1e-6).sum())
    axes.set_title(f"difference: {changed} of {difference.size} values", fontsize=10)
    bare(axes)


def strongest_channel(difference: Pixels) -> Pixels:
    """(height, width): of several colours the one that changed most."""
    if difference.ndim == 2:
        return difference
    strongest = np.abs(difference).argmax(axis=2)[:, :, None]
    return np.take_along_axis(difference, strongest, axis=2)[:, :, 0]


def draw_scale(figure: Any, axes: Any, drawn: Any, height: int, width: int) -> None:
    """The colour bar along the longer side of a panel: outside of it, so that the panel keeps its size."""
    thickness = 0.05 * max(height, width)
    if width > 1.5 * height:
        place, way = (0.0, -1.8 * thickness / height, 1.0, thickness / height), "horizontal"
    else:
        place, way = (1 + 0.8 * thickness / width, 0.0, thickness / width, 1.0), "vertical"
    bar = figure.colorbar(drawn, cax=axes.inset_axes(place), orientation=way)
    bar.ax.tick_params(labelsize=8)
    if way == "horizontal":
        bar.ax.locator_params(nbins=5)  # numbers side by side need more room than above each other


def draw_scores(axes: Any, before: Pixels, after: Pixels | None, class_names: tuple[str, ...]) -> None:
    """The class scores as bars, side by side when there are two images; of many classes only the highest."""
    highest = before if after is None else np.maximum(before, after)
    shown = np.sort(np.argsort(-highest)[:MOST_BARS])
    before, after = before[shown], None if after is None else after[shown]
    names = [class_names[place] for place in shown]
    places = np.arange(len(shown), dtype=np.float64)
    width = 0.4 if after is not None else 0.7
    offset = width / 2 if after is not None else 0.0
    axes.bar(places - offset, before, width, color=BEFORE, label="original")
    if after is not None:
        axes.bar(places + offset, after, width, color=AFTER, label="adversarial")
    axes.axhline(0, color=FAINT, linewidth=0.6)
    crowded = max(len(name) for name in names) > 3
    axes.set_xticks(places, names, rotation=60 if crowded else 0, fontsize=9)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_title("class scores", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def bare(axes: Any) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#bbbbbb")
