"""What is proven: a line for each model, and the share of images that are safe at every radius."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from closecall.batches.results import Group, Results, lower_of, upper_of
from closecall.report import Cell, Chart, Curve, Section, chart, panels, paragraph, sortable_table, span_axis
from closecall.report.numbers import count, duration, interval, measure_name, median, percent
from closecall.report.survival import STILL_RIGHT, both_sides, furthest, jumps_of, surviving
from closecall.report.words import distance_words

HEADS = (
    "model", "distance", "questions", "read right", "proven to the end", "median distance", "search time",
)  # fmt: skip


def answer_section(results: Results, groups: Sequence[Group]) -> Section:
    """A line for each model and norm."""
    if not groups:
        return Section("The answer", [paragraph("Nothing is answered yet.")], "answer")
    norms = dict.fromkeys(group.norm for group in groups)
    blocks = [
        paragraph(
            "How far the images are from the nearest one that changes the verdict. A median is given as far "
            "as it is proven: where searches ended early, as an interval that holds it."
        ),
        sortable_table("What is proven, model by model", HEADS, [answer_line(group) for group in groups]),
        *(paragraph(f"{distance_words(norm, colours=results.colours)}.") for norm in norms),
    ]
    open_ones = Counter(
        row["outcome"] for row in results.rows if row["outcome"] in ("waiting", "failed", "crashed")
    )
    if open_ones:
        told = ", ".join(f"{count(number)} {outcome}" for outcome, number in open_ones.items())
        blocks.append(paragraph(f"Not counted above: {told}."))
    return Section("The answer", blocks, "answer")


def answer_line(group: Group) -> list[Cell]:
    rows = group.rows
    right = [row for row in rows if row["distance"] != 0]
    closed = sum(bool(row["resolved"]) for row in rows)
    lower, upper = median([lower_of(row) for row in rows]), median([upper_of(row) for row in rows])
    seconds = sum(row["seconds"] or 0.0 for row in rows)
    return [
        Cell(group.model, group.model, "", group.tone),
        Cell(measure_name(group.norm), group.norm),
        Cell(count(len(rows)), len(rows)),
        Cell(percent(len(right) / len(rows)), len(right) / len(rows)),
        Cell(percent(closed / len(rows)), closed / len(rows), f"{count(closed)} of {count(len(rows))}"),
        Cell(interval(lower, upper), lower),
        Cell(duration(seconds), seconds),
    ]


def proven_section(groups: Sequence[Group]) -> Section:
    """A panel for each model and norm; those of one norm share their radii."""
    if not groups:
        return Section("Proven at every radius", [paragraph("Nothing is answered yet.")], "proven")
    shown = [chart(proven_chart(group, end_of(groups, group.norm))) for group in groups]
    blocks = [
        paragraph(
            "How many of the images are still read right when an opponent may change them by a radius. The "
            "true share is proven to lie in the band; where every search finished, the band is a line. A "
            "question about one radius says nothing beyond it: the band opens there."
        ),
        panels(shown),
    ]
    return Section("Proven at every radius", blocks, "proven")


def end_of(groups: Sequence[Group], norm: str) -> float:
    rows = [row for group in groups if group.norm == norm for row in group.rows]
    return furthest([end for row in rows for end in (lower_of(row), upper_of(row))])


def proven_chart(group: Group, end: float) -> Chart:
    lower, upper = [lower_of(row) for row in group.rows], [upper_of(row) for row in group.rows]
    jumps = jumps_of([*lower, *upper], end)
    least, most = surviving(lower, jumps), surviving(upper, jumps)
    band = Curve("proven band", both_sides(jumps), most, group.tone, band=(least, most))
    spoken = (
        f"Share of images that {group.model} still reads right by radius in {measure_name(group.norm)}. Half "
        f"of them are lost at {interval(median(lower), median(upper))}."
    )
    title = f"{group.model}, {measure_name(group.norm)}"
    across = span_axis([end], f"{measure_name(group.norm)} radius")
    return Chart(title, across, STILL_RIGHT, [band], spoken)
