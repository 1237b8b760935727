"""Section 3: the share of images still right at every radius, proven and as an attack sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from closecall.compare.page.gallery import proof_words
from closecall.compare.page.known import MISSED, Known, attack_of, lower_of, upper_of
from closecall.compare.page.names import all_of, in_words, title_of
from closecall.compare.results import DistanceRow, Results
from closecall.report import (
    Axis,
    Cell,
    Chart,
    Curve,
    Section,
    chart,
    folded,
    panels,
    paragraph,
    sortable_table,
    span_axis,
)
from closecall.report.numbers import (
    NORM_NAMES,
    count,
    duration,
    interval,
    listed,
    percent,
    rounded_down,
    rounded_up,
)
from closecall.report.survival import STILL_RIGHT, both_sides, furthest, jumps_of, surviving

HEADS = (
    "model",
    "proven to the end",
    "median distance",
    "by the attack alone",
    "attack missed",
    "time to prove",
)
IMAGE_HEADS = (
    "model",
    "image",
    "label",
    "became",
    "at least",
    "at most",
    "attack alone",
    "time",
    "nodes",
    "proof",
)


def distances_section(results: Results, known: Sequence[Known]) -> Section:
    """A panel for each model, a summary of what the attack missed, and every single distance."""
    measured = [part for part in known if part.rows]
    if not measured:
        return Section("Distances", [paragraph("No distances were measured.")], "distances")
    blocks = [
        paragraph(
            "How many of the images are still read right when an opponent may change them by a radius. The "
            "true share is proven to lie in the band; where every search finished, the band is a line. The "
            "dashed curve is what the gradient attack alone makes believe: where it runs above the band, the "
            "attack missed images that do change the verdict."
        ),
        panels([chart(shown) for shown in distance_charts(results, known)]),
        paragraph(missed_words(measured)),
        sortable_table("What is proven, beside the attack", HEADS, [summary_line(part) for part in measured]),
        folded(
            "Every distance",
            [sortable_table("Every distance", IMAGE_HEADS, image_lines(results, measured))],
        ),
    ]
    return Section("Distances", blocks, "distances")


def distance_charts(results: Results, known: Sequence[Known]) -> list[Chart]:
    """One for each model that has distances, all over the same radii."""
    measured = [part for part in known if part.rows]
    rows = [row for part in measured for row in part.rows]
    end = furthest([value for row in rows for value in ends(row)])
    across = span_axis([end], f"{NORM_NAMES[results.norm]} radius")
    return [distance_chart(part, across) for part in measured]


def distance_chart(part: Known, across: Axis) -> Chart:
    """The proven band, its upper edge as a line, and the attack's curve; without proofs, the attack alone."""
    jumps = jumps_of([value for row in part.rows for value in ends(row)], across.high)
    radii = both_sides(jumps)
    right = [surviving([far(row) for row in part.rows], jumps) for far in (lower_of, upper_of)]
    believed = surviving([attack_of(row) for row in part.rows], jumps)
    attack = Curve("attack alone", radii, believed, 6 if part.tone != 6 else 1, dashed=True)
    name = title_of(part.model.name)
    up = STILL_RIGHT
    if not part.model.provable:
        spoken = f"{name}, not proven: under attack half of the images are lost at {rounded_up(part.attack)}"
        return Chart(f"{name}: not proven", across, up, [attack], spoken)
    band = Curve("proven band", radii, right[1], part.tone, band=(right[0], right[1]))
    spoken = (
        f"Share of images that {in_words(part.model.name)} still reads right by radius. Half of them are "
        f"lost at {interval(part.lower, part.upper)}; the attack alone says {rounded_up(part.attack)}."
    )
    return Chart(name, across, up, [band, attack], spoken)


def ends(row: DistanceRow) -> tuple[float, float, float]:
    return lower_of(row), upper_of(row), attack_of(row)


def missed_words(measured: Sequence[Known]) -> str:
    """How often the attack was beaten."""
    proven = [part for part in measured if part.model.provable]
    others = [part.model.name for part in measured if not part.model.provable]
    words = []
    if proven:
        told = listed([missed_under(part) for part in proven])
        words.append(
            "Of the images that were read right, a nearer adversarial than the attack's, by more than "
            f"{percent(MISSED - 1, 0)}, is known for {told}."
        )
    if others:
        words.append(f"For {all_of(others)} there is only the attack, so nothing shows what it missed.")
    return " ".join(words)


def missed_under(part: Known) -> str:
    missed, right = part.missed()
    return f"{missed} of {right} images under {in_words(part.model.name)}"


def summary_line(part: Known) -> list[Cell]:
    missed, right = part.missed()
    attack = part.attack
    proven = part.model.provable
    seconds = sum(row.seconds for row in part.rows)
    return [
        Cell(title_of(part.model.name), part.model.name, "", part.tone),
        Cell(f"{part.closed} of {len(part.rows)}", part.closed) if proven else Cell("not proven"),
        Cell(part.written(), None if math.isinf(part.upper) else part.upper),
        Cell("failed" if math.isinf(attack) else rounded_up(attack), None if math.isinf(attack) else attack),
        Cell(f"{missed} of {right}", missed) if proven else Cell("unknown"),
        Cell(duration(seconds), seconds) if proven else Cell("not proven"),
    ]


def image_lines(results: Results, measured: Sequence[Known]) -> list[list[Cell]]:
    names = results.class_names
    return [
        [
            Cell(title_of(part.model.name), part.model.name, "", part.tone),
            Cell(str(row.index), row.index),
            Cell(names[row.label], names[row.label]),
            Cell("nothing") if row.became is None else Cell(names[row.became], names[row.became]),
            bound_cell(lower_of(row), rounded_down) if row.outcome != "attacked" else Cell("not proven"),
            bound_cell(upper_of(row), rounded_up),
            bound_cell(attack_of(row), rounded_up),
            Cell(duration(row.seconds), row.seconds),
            Cell(count(row.nodes), row.nodes),
            Cell(proof_words(row), row.outcome),
        ]
        for part in measured
        for row in part.rows
    ]


def bound_cell(value: float, written: Callable[[float], str]) -> Cell:
    return Cell("none") if math.isinf(value) else Cell(written(value), value)
