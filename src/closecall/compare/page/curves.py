"""Sections 4 and 5: accuracy on moved images, and after training on few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from closecall.compare.page.known import tone_of
from closecall.compare.page.names import title_of
from closecall.compare.results import Results, TransformRow
from closecall.report import (
    Axis,
    Cell,
    Chart,
    Curve,
    Section,
    chart,
    fixed_axis,
    folded,
    legend,
    panels,
    paragraph,
    shares_axis,
    sortable_table,
)
from closecall.report.numbers import accuracy_digits, listed, percent, spread

UNMOVED = {"scale": 1.0}
MOST_TICKS = 7
MOVED_HEADS = ("model", "movement", "amount", "accuracy")
TITLES = {"shift": "Shift", "rotation": "Rotation", "scale": "Scale", "shear": "Shear"}
UNITS = {"shear": "sideways for each pixel of height"}


def moved_section(results: Results) -> Section:
    """A chart for each kind of movement, and the accuracy at its furthest."""
    rows = results.transformed
    if not rows:
        return Section("Moved images", [paragraph("No moved images were tried.")], "moved")
    charts = moved_charts(results)
    kinds = list(dict.fromkeys(row.kind for row in rows))
    shade = " The shade spans the seeds." if len(results.seeds) > 1 else ""
    blocks = [
        paragraph(
            "The same test images, shifted, rotated, scaled and sheared before the model sees them. What "
            f"each model was trained on is said at the end of this page.{shade}"
        ),
        legend(charts[0].curves),
        panels([chart(shown, keys=False) for shown in charts]),
        sortable_table(
            "Accuracy on moved images where it is lowest",
            ["model", "unmoved", *(f"{kind}, at worst" for kind in kinds)],
            worst_lines(results, kinds),
        ),
        folded(
            "Every accuracy",
            [sortable_table("Accuracy on moved images", MOVED_HEADS, every_line(results))],
        ),
    ]
    return Section("Moved images", blocks, "moved")


def worst_lines(results: Results, kinds: Sequence[str]) -> list[list[Cell]]:
    rows, digits = results.transformed, accuracy_digits(results.test_images)
    return [
        [
            model_cell(results, name),
            mean_cell(unmoved(rows, name), digits),
            *(worst_cell(rows, name, kind, digits) for kind in kinds),
        ]
        for name in present(results, [row.model for row in rows])
    ]


def every_line(results: Results) -> list[list[Cell]]:
    """What the charts show, to be read without a mouse."""
    return [
        [
            model_cell(results, row.model),
            Cell(row.kind, row.kind),
            Cell(amount_words(row), row.amount),
            mean_cell(row.accuracy, accuracy_digits(results.test_images)),
        ]
        for row in results.transformed
    ]


def moved_charts(results: Results) -> list[Chart]:
    rows = results.transformed
    digits = accuracy_digits(results.test_images)
    up = shares_axis([value for row in rows for value in row.accuracy], "accuracy", digits=digits)
    shown = []
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        unit = UNITS.get(kind, own[0].unit)
        across = amounts_axis([row.amount for row in own], f"{kind} ({unit})" if unit else kind)
        curves = [moved_curve(results, own, name) for name in present(results, [row.model for row in own])]
        said = "; ".join(
            f"{curve.name} {up.said(min(curve.up))} at worst, {up.said(max(curve.up))} at best"
            for curve in curves
        )
        shown.append(Chart(TITLES.get(kind, kind), across, up, curves, f"Accuracy by {kind}: {said}"))
    return shown


def amounts_axis(amounts: Sequence[float], label: str) -> Axis:
    """From the first to the last amount, with as many of them written as there is room for."""
    ticks = sorted(set(amounts))
    return replace(fixed_axis(ticks, label), ticks=ticks[:: math.ceil(len(ticks) / MOST_TICKS)])


def moved_curve(results: Results, own: Sequence[TransformRow], name: str) -> Curve:
    rows = sorted((row for row in own if row.model == name), key=lambda row: row.amount)
    return seeds_curve(
        title_of(name), [row.amount for row in rows], [row.accuracy for row in rows], tone_of(results, name)
    )


def seeds_curve(name: str, across: Sequence[float], by_seed: Sequence[Sequence[float]], tone: int) -> Curve:
    """The mean over seeds as a line, and their spread as a band."""
    several = any(len(values) > 1 for values in by_seed)
    band = ([min(values) for values in by_seed], [max(values) for values in by_seed]) if several else None
    return Curve(name, across, [mean(values) for values in by_seed], tone, marks=True, band=band)


def unmoved(rows: Sequence[TransformRow], name: str) -> list[float]:
    """The accuracy on images that were left where they are, if that was measured."""
    same = (row for row in rows if row.model == name and row.amount == UNMOVED.get(row.kind, 0.0))
    found = next(same, None)
    return [] if found is None else found.accuracy


def worst_cell(rows: Sequence[TransformRow], name: str, kind: str, digits: int) -> Cell:
    own = [row for row in rows if (row.model, row.kind) == (name, kind)]
    if not own:
        return Cell("not measured")
    worst = min(own, key=lambda row: mean(row.accuracy))
    return Cell(percent(mean(worst.accuracy), digits), mean(worst.accuracy), f"at {amount_words(worst)}")


def amount_words(row: TransformRow) -> str:
    return f"{row.amount:g} {row.unit}".strip().replace("-", "−")


def mean_cell(values: Sequence[float], digits: int) -> Cell:
    if not values:
        return Cell("not measured")
    return Cell(percent(mean(values), digits), mean(values), spread(values, digits))


def model_cell(results: Results, name: str) -> Cell:
    return Cell(title_of(name), name, "", tone_of(results, name))


def few_section(results: Results) -> Section:
    """Accuracy against the number of training images of each class, with the spread over seeds."""
    rows = results.few
    if not rows:
        return Section("Few training images", [paragraph("No training on few images was tried.")], "few")
    names = present(results, [row.model for row in rows])
    counts = sorted({row.images_per_class for row in rows})
    digits = accuracy_digits(results.test_images)
    lines = [
        [
            model_cell(results, name),
            *(mean_cell(few_values(results, name, images), digits) for images in counts),
        ]
        for name in names
    ]
    seeds = sorted({row.seed for row in rows})
    over = (
        f"Lines are means over {len(seeds)} seeds, which also draw the images, and shades their spread."
        if len(seeds) > 1
        else "One seed, so there is no spread to show."
    )
    blocks = [
        paragraph(
            f"Accuracy on the test images after training on {listed([str(images) for images in counts])} "
            f"images of each class. {over}"
        ),
        panels([chart(few_chart(results))]),
        sortable_table(
            "Accuracy after training on few images",
            ["model", *(f"{images} a class" for images in counts)],
            lines,
        ),
    ]
    return Section("Few training images", blocks, "few")


def few_chart(results: Results) -> Chart:
    rows = results.few
    counts = sorted({row.images_per_class for row in rows})
    curves = []
    for name in present(results, [row.model for row in rows]):
        own = [images for images in counts if few_values(results, name, images)]
        by_seed = [few_values(results, name, images) for images in own]
        curves.append(seeds_curve(title_of(name), own, by_seed, tone_of(results, name)))
    digits = accuracy_digits(results.test_images)
    up = shares_axis([row.accuracy for row in rows], "accuracy", digits=digits)
    said = "; ".join(
        f"{curve.name} from {up.said(curve.up[0])} at {curve.across[0]:g} to {up.said(curve.up[-1])} at "
        f"{curve.across[-1]:g}"
        for curve in curves
    )
    return Chart(
        "Accuracy by training images",
        fixed_axis(counts, "training images of each class", logarithmic=True),
        up,
        curves,
        f"Accuracy by training images of each class: {said}",
    )


def few_values(results: Results, name: str, images: int) -> list[float]:
    return [row.accuracy for row in results.few if (row.model, row.images_per_class) == (name, images)]


def present(results: Results, measured: Sequence[str]) -> list[str]:
    """The names that were measured, in the order of the models."""
    return [model.name for model in results.models if model.name in measured]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
