"""What turns into what, where the time went, and every single question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from closecall.batches.results import (
    Group,
    Results,
    Row,
    has_interval,
    lower_of,
    measure_of,
    upper_of,
    with_witness,
)
from closecall.report import (
    Cell,
    Chart,
    Curve,
    Section,
    chart,
    folded,
    panels,
    paragraph,
    powers_axis,
    shares_axis,
    sortable_table,
    subheading,
)
from closecall.report.numbers import count, duration, measure_name, median, rounded_down, rounded_up

LEAST_SECONDS = 1e-3  # a logarithmic axis has no 0
ROW_HEADS = (
    "model", "image", "label", "became", "task", "distance in", "outcome", "at least", "at most", "time",
    "nodes", "engine",
)  # fmt: skip


def confusion_section(results: Results, groups: Sequence[Group]) -> Section:
    """For each model, which class the witnesses of each class are taken for."""
    blocks: list[str] = []
    for group in groups:
        turned = Counter((row["predicted_before"], row["predicted_after"]) for row in with_witness(group))
        if turned:
            title = f"{group.model}, {measure_name(group.norm)}"
            blocks += [subheading(title), confusion_table(results, group, turned)]
    if not blocks:
        return Section("What turns into what", [paragraph("No verdict was turned.")], "confusion")
    said = "How often the witness of an image of a class, by line, was taken for another class, by column."
    return Section("What turns into what", [paragraph(said), *blocks], "confusion")


def confusion_table(results: Results, group: Group, turned: Counter[tuple[int, int]]) -> str:
    classes = sorted({number for pair in turned for number in pair})
    names = [results.class_name(group.rows[0], number) for number in classes]
    lines = [
        [
            Cell(name, number),
            *(Cell(count(turned[number, after]) if turned[number, after] else "", turned[number, after])
              for after in classes),
            Cell(count(sum(turned[number, after] for after in classes)),
                 sum(turned[number, after] for after in classes)),
        ]
        for number, name in zip(classes, names, strict=True)
    ]  # fmt: skip
    return sortable_table(f"What {group.model} sees in the witnesses", ["seen as", *names, "all"], lines)


def time_section(results: Results) -> Section:
    """How many questions were answered in how many seconds, and where the seconds went."""
    rows = [row for row in results.rows if row["seconds"] is not None and row["outcome"] != "begun"]
    if not rows:
        return Section("Time spent", [paragraph("No time was spent yet.")], "time")
    models = [*dict.fromkeys(row["model"] for row in results.rows)]
    curves = [
        curve
        for tone, model in enumerate(models, start=1)
        if (curve := time_curve(model, [row for row in rows if row["model"] == model], tone % 6 or 6))
    ]
    spent = sorted(max(LEAST_SECONDS, row["seconds"]) for row in rows)
    spoken = f"Half of the questions took no more than {duration(median(spent))}."
    shown = Chart(
        "Answered within",
        powers_axis([spent[0], max(spent[-1], 2 * spent[0])], "seconds of search"),
        shares_axis([0.0], "share of the questions"),
        curves,
        spoken,
    )
    lines = [time_line(model, [row for row in rows if row["model"] == model]) for model in models]
    heads = ("model", "questions", "median", "longest", "in all", "most memory of a process")
    blocks = [
        paragraph(spoken),
        panels([chart(shown)]),
        sortable_table("Time by model", heads, [line for line in lines if line]),
    ]
    return Section("Time spent", blocks, "time")


def time_curve(model: str, rows: Sequence[Row], tone: int) -> Curve | None:
    """The share of a model's questions that took no longer, as steps up."""
    if not rows:
        return None
    spent = sorted(max(LEAST_SECONDS, row["seconds"]) for row in rows)
    across, up = [spent[0]], [1 / len(spent)]
    for place, (before, after) in enumerate(pairwise(spent), start=1):
        if after > before:
            across += [after, after]
            up += [place / len(spent), (place + 1) / len(spent)]
        else:
            up[-1] = (place + 1) / len(spent)
    return Curve(model, across, up, tone)


def time_line(model: str, rows: Sequence[Row]) -> list[Cell]:
    if not rows:
        return []
    spent = [row["seconds"] for row in rows]
    memory = max(row["memory"] or 0 for row in rows)
    return [
        Cell(model, model),
        Cell(count(len(rows)), len(rows)),
        *(Cell(duration(value), value) for value in (median(spent), max(spent), sum(spent))),
        Cell(f"{memory / 1e6:,.0f} MB", memory),
    ]


def questions_section(results: Results) -> Section:
    """One line for each question, to be sorted."""
    lines = [question_line(results, row) for row in results.rows]
    table = sortable_table("Every question", ROW_HEADS, lines)
    return Section("Every question", [folded(f"{count(len(lines))} lines", [table])], "questions")


def question_line(results: Results, row: Row) -> list[Cell]:
    known = has_interval(row)
    lower, upper = (lower_of(row), upper_of(row)) if known else (None, None)
    before, after = (results.class_name(row, row[name]) for name in ("label", "predicted_after"))
    radius = "" if row["radius"] is None else f"within {row['radius']:.6g}"
    return [
        Cell(row["model"], row["model"]),
        Cell(f"{row['dataset']} {row['index']}".strip(), row["index"], row["split"] or ""),
        Cell(before, before),
        Cell(after, after or None),
        Cell(row["task"], row["task"], radius),
        Cell(measure_name(measure_of(row)), measure_of(row)),
        Cell(row["outcome"], row["outcome"], row["note"] or ""),
        bound_cell(lower, down=True),
        bound_cell(upper, down=False),
        Cell("", None) if row["seconds"] is None else Cell(duration(row["seconds"]), row["seconds"]),
        Cell("", None) if row["nodes"] is None else Cell(count(row["nodes"]), row["nodes"]),
        Cell(row["engine"] or "", row["engine"] or None),
    ]


def bound_cell(value: float | None, *, down: bool) -> Cell:
    if value is None or value == float("inf"):
        return Cell("" if value is None else "∞", None)
    return Cell(rounded_down(value) if down else rounded_up(value), value)
