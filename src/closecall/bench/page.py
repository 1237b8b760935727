"""docs/PERFORMANCE.md: the figures of every yardstick, and a hand-written part that is left as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from closecall.bench.record import Measurement
from closecall.bench.summary import Group, Standing, Summary, interval, kind_of
from closecall.bench.yardsticks import YARDSTICKS
from closecall.errors import InputError

BEGIN, END = "<!-- improvements: written by hand, kept by closecall bench -->", "<!-- end of improvements -->"
UNWRITTEN = """
## Improvements: what changed, before, after

| what changed | before | after |
|---|---|---|
"""


def kept_part(page: Path) -> str:
    """The hand-written part of an earlier page."""
    if not page.exists():
        return UNWRITTEN
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise InputError(
            f"{page} was not written by closecall bench: it lacks the lines {BEGIN} and {END} around what is "
            "written by hand; add them or move the file."
        )
    return text.split(BEGIN)[1].split(END)[0]


def performance_page(
    summaries: Sequence[Summary], left_out: Sequence[str], pictures: Sequence[tuple[str, str]], kept: str
) -> str:
    """The page as markdown; pictures are (file, caption)."""
    contradictions = [sentence for summary in summaries for sentence in summary.contradictions]
    parts = ["# Performance", INTRODUCTION]
    if contradictions:
        parts.append("## Wrong answers\n\n**Something here is wrong: do not trust these figures.**")
        parts.append("\n".join(f"- **{cell(sentence)}**" for sentence in contradictions))
    parts += [f"![{caption}]({file})" for file, caption in pictures]
    parts += [yardstick_part(summary) for summary in summaries]
    if left_out:
        parts.append("## Left out\n\n" + "\n".join(f"- {sentence}" for sentence in left_out))
    parts.append(machine_part([m for summary in summaries for m in summary.measurements]))
    return "\n\n".join(parts) + f"\n\n{BEGIN}{kept}{END}\n"


INTRODUCTION = """Written by `closecall bench` from the measurements in `performance.jsonl` beside this file.
Every ratio is measured side by side: the contenders answer a question one after the other in one run, on one
core unless a yardstick says otherwise. *Solved* means proven to a relative gap of 1e-4 (or, with a radius,
answered) within the time limit. *Seconds* are geometric means that count a time-out as its limit and leave
out reading the model. A *speed-up* is the geometric mean of a contender's seconds over those of `auto`.
*Undecided units* are those whose sign or winner linear bounds leave open within the radius or, without one,
within the distance that was found; the median over the images."""


def yardstick_part(summary: Summary) -> str:
    known = YARDSTICKS.get(summary.yardstick)
    what = known.what if known is not None else ""
    parts = [f"## {summary.yardstick} ({summary.run} run)", what, table(summary)]
    refusals: dict[tuple[str, str], list[str]] = {}  # by contender and by what is said beside all numbers
    for m in summary.measurements:
        if m.left_out:
            refusals.setdefault((m.contender, re.sub(r"\d[\d,]*", "", m.note)), []).append(m.note)
    for (contender, _), notes in refusals.items():
        told = "1 question was" if len(notes) == 1 else f"{len(notes)} questions were"
        of_which = "" if len(set(notes)) == 1 else "; it said of the first"
        parts.append(f"{told} left out of the means of {contender}{of_which}: {notes[0]}")
    parts.append(details(summary.measurements))
    return "\n\n".join(part for part in parts if part)


def table(summary: Summary) -> str:
    """A row for each network and kind of question, and one for all of them."""
    counting = any(group.undecided is not None for group in summary.groups)
    heads = ["network", "question"] + (["undecided units"] if counting else [])
    for number, standing in enumerate(summary.overall.standings):
        heads += [f"{standing.contender}, {standing.limit:g} s: solved", "seconds"]
        heads += ["speed-up"] if number else []
    rows = [row(group, counting) for group in summary.groups]
    if len(rows) > 1:
        rows.append([f"**{text}**" if text else "" for text in row(summary.overall, counting)])
    return markdown_table(heads, rows)


def row(group: Group, counting: bool) -> list[str]:
    cells = [group.network, group.kind]
    if counting:
        cells.append("" if group.undecided is None else f"{group.undecided:g}")
    for number, standing in enumerate(group.standings):
        cells += [solved(standing), seconds(standing.seconds)]
        cells += [speedup(standing)] if number else []
    return cells


def solved(standing: Standing) -> str:
    return f"{standing.solved} of {standing.asked - standing.left_out}"


def speedup(standing: Standing) -> str:
    return "" if standing.speedup is None else f"{standing.speedup:.3g}×"


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def details(measurements: Sequence[Measurement]) -> str:
    """Every measurement, folded away."""
    heads = [
        "network",
        "image",
        "question",
        "contender",
        "outcome",
        "seconds",
        "distance",
        "nodes",
        "undecided",
    ]
    expected = any(m.expected for m in measurements)
    rows = [
        [
            m.network, str(m.image), kind_of(m), m.contender, outcome(m),
            "" if m.left_out else seconds(m.seconds),
            "" if m.left_out or m.target == "vnnlib" else interval(m), str(m.nodes),
            "" if m.undecided is None else str(m.undecided), *([m.expected or ""] if expected else []),
        ]
        for m in measurements
    ]  # fmt: skip
    inside = markdown_table([*heads, *(["expected"] if expected else [])], rows)
    return f"<details><summary>All {len(rows)} measurements</summary>\n\n{inside}\n\n</details>"


def outcome(measurement: Measurement) -> str:
    if measurement.solved or measurement.left_out:
        return measurement.outcome
    late = measurement.outcome in ("nearest", "robust", "sat", "unsat")
    return f"{measurement.outcome}, too late" if late else f"{measurement.outcome} (not solved)"


def machine_part(measurements: Sequence[Measurement]) -> str:
    """Where, when and with which versions everything on the page was measured."""
    dates = sorted(m.date for m in measurements if m.date)
    versions = ", ".join(sorted({m.version for m in measurements}))
    lines = [f"closecall {versions}" if versions else "Nothing has been measured yet."]
    if dates:
        lines.append(f"measured from {dates[0]} to {dates[-1]}")
    lines += sorted({m.machine for m in measurements if m.machine})
    return "## Machine\n\n" + "\n".join(f"- {line}" for line in lines)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines)


def cell(text: str) -> str:
    """Text that keeps to its cell."""
    return " ".join(text.replace("|", "\\|").split())
