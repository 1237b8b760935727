"""Sections 4 and 5: accuracy on moved images, and after training on few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from closecall.compare.page.known import tone_of
from closecall.compare.page.numbers import listed, percent, spread
from closecall.compare.results import Results, TransformRow
from closecall.report import (
    Axis,
    Cell,
    Chart,
    Curve,
    Section,
    chart,
    fixed_axis,
    legend,
    panels,
    paragraph,
    shares_axis,
    sortable_table,
)

UNMOVED = {"scale": 1.0}
MOST_TICKS = 7
TITLES = {"shift": "Shift", "rotation": "Rotation", "scale": "Scale", "shear": "Shear"}


def moved_section(results: Results) -> Section:
    """A chart for each kind of movement, and the accuracy at its furthest."""
    rows = results.transformed
    if not rows:
        return Section("Moved images", [paragraph("No moved images were tried.")], "moved")
    charts = moved_charts(results)
    kinds = list(dict.fromkeys(row.kind for row in rows))
    names = present(results, [row.model for row in rows])
    heads = ["model", "unmoved", *(f"{kind}, at worst" for kind in kinds)]
    lines = [
        [
            Cell(name, name, "", tone_of(results, name)),
            mean_cell(unmoved(rows, name)),
            *(worst_cell(rows, name, kind) for kind in kinds),
        ]
        for name in names
    ]
    shade = " The shade spans the seeds." if len(results.seeds) > 1 else ""
    blocks = [
        paragraph(
            "The same test images, shifted, rotated, scaled and sheared before the model sees them. What "
            f"each model was trained on is said at the end of this page.{shade}"
        ),
        legend(charts[0].curves),
        panels([chart(shown, keys=False) for shown in charts]),
        sortable_table("Accuracy at the furthest movement", heads, lines),
    ]
    return Section("Moved images", blocks, "moved")


def moved_charts(results: Results) -> list[Chart]:
    rows = results.transformed
    up = shares_axis([value for row in rows for value in row.accuracy], "accuracy")
    shown = []
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        unit = own[0].unit
        across = amounts_axis([row.amount for row in own], f"{kind} ({unit})" if unit else kind)
        curves = [moved_curve(results, own, name) for name in present(results, [row.model for row in own])]
        said = "; ".join(
            f"{curve.name} {percent(min(curve.up))} at worst, {percent(max(curve.up))} at best"
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
        name, [row.amount for row in rows], [row.accuracy for row in rows], tone_of(results, name)
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


def worst_cell(rows: Sequence[TransformRow], name: str, kind: str) -> Cell:
    own = [row for row in rows if (row.model, row.kind) == (name, kind)]
    if not own:
        return Cell("not measured")
    worst = min(own, key=lambda row: mean(row.accuracy))
    where = f"at {worst.amount:g} {worst.unit}".strip().replace("-", "−")
    return Cell(percent(mean(worst.accuracy)), mean(worst.accuracy), where)


def mean_cell(values: Sequence[float]) -> Cell:
    return Cell(percent(mean(values)), mean(values), spread(values)) if values else Cell("not measured")


def few_section(results: Results) -> Section:
    """Accuracy against the number of training images of each class, with the spread over seeds."""
    rows = results.few
    if not rows:
        return Section("Few training images", [paragraph("No training on few images was tried.")], "few")
    names = present(results, [row.model for row in rows])
    counts = sorted({row.images_per_class for row in rows})
    lines = [
        [
            Cell(name, name, "", tone_of(results, name)),
            *(mean_cell(few_values(results, name, images)) for images in counts),
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
        curves.append(seeds_curve(name, own, by_seed, tone_of(results, name)))
    said = "; ".join(
        f"{curve.name} from {percent(curve.up[0])} at {curve.across[0]:g} to {percent(curve.up[-1])} at "
        f"{curve.across[-1]:g}"
        for curve in curves
    )
    return Chart(
        "Accuracy by training images",
        fixed_axis(counts, "training images of each class", logarithmic=True),
        shares_axis([row.accuracy for row in rows], "accuracy"),
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
