"""Section 7: which MILP is the more suitable, the DNN's or the CNN's."""

from __future__ import annotations

import math

from closecall.compare.page.duel import (
    FAMILIES,
    Duel,
    duels_of,
    solved_words,
    suitable_words,
    ways,
)
from closecall.compare.page.names import title_of
from closecall.compare.results import EncodingRow, Results
from closecall.report import (
    Axis,
    Cell,
    Chart,
    Curve,
    Section,
    bullets,
    chart,
    folded,
    panels,
    paragraph,
    powers_axis,
    shares_axis,
    sortable_table,
)
from closecall.report.numbers import SOLVER_NAMES, accuracy_digits, count, duration, median, percent

TITLE = "Which MILP is the more suitable?"
HEADS = (
    "pairing", "network", "accuracy", "units", "variables", "binaries", "nodes", "time", "solved",
)  # fmt: skip
TONES = {"dnn": 1, "cnn": 2}
SHORTEST = 1e-3  # seconds; shorter ones are drawn here


def milps_section(results: Results) -> Section:
    """The answer, the charts, what was asked, each pairing in words, and the table for who wants it."""
    if not results.encodings:
        return Section(TITLE, [paragraph("No DNN and CNN were compared by their MILPs.")], "milp")
    in_all, *each = suitable_words(duels_of(results))
    lines = [line(row, accuracy_digits(results.test_images)) for row in results.encodings]
    blocks = [
        paragraph(in_all),
        panels([chart(shown) for shown in milp_charts(results)]),
        paragraph(
            "The same question, the nearest adversarial of one image, as a 0-1 MILP of a fully connected and "
            "of a convolutional network, in the tight form and within the distance that an attack had "
            f"reached. {SOLVER_NAMES[results.how.solver]} had {duration(results.how.milp_time_limit)} for "
            "each. Figures are medians over the images; an unsolved question counts with its time limit. "
            "Accuracies are those of the one network that was asked about."
        ),
        bullets(each),
        folded("Every MILP in numbers", [sortable_table("The MILPs", HEADS, lines)]),
    ]
    return Section(TITLE, blocks, "milp")


def line(row: EncodingRow, digits: int) -> list[Cell]:
    gap = median([math.inf if answer.gap is None else answer.gap for answer in row.answers])
    gap_left = percent(gap) if math.isfinite(gap) else "unknown"
    held_out = row.validation_accuracy
    return [
        Cell(row.pairing, row.pairing),
        Cell(title_of(row.model), row.model, row.description, TONES[row.family]),
        Cell(
            percent(row.accuracy, digits),
            row.accuracy,
            "" if held_out is None else f"{percent(held_out, digits)} held out",
        ),
        Cell(count(row.units), row.units, f"{count(row.parameters)} parameters"),
        Cell(count(row.variables), row.variables, f"{count(row.rows)} rows"),
        Cell(count(row.binaries), row.binaries, f"{count(row.undecided)} undecided"),
        Cell(count(row.nodes), row.nodes),
        Cell(duration(row.seconds), row.seconds),
        Cell(solved_words(row), row.solved_share, f"{gap_left} gap left"),
    ]


def milp_charts(results: Results) -> list[Chart]:
    """For each pairing, the share of questions that are solved within so many seconds."""
    times = [max(answer.seconds, SHORTEST) for row in results.encodings for answer in row.answers]
    limit = results.how.milp_time_limit
    across = powers_axis([*times, limit], f"seconds, up to the limit of {duration(limit)}")
    return [solved_chart(duel, across, limit) for duel in duels_of(results)]


def solved_chart(duel: Duel, across: Axis, limit: float) -> Chart:
    title = ways([duel]).capitalize()
    curves = [solved_curve(row, across.low, limit) for row in (duel.dnn, duel.cnn)]
    said = f"{solved_words(duel.dnn)} of the DNN's and {solved_words(duel.cnn)} of the CNN's"
    spoken = f"{title}, share of questions solved by time: {said}"
    return Chart(title, across, shares_axis([0.0], "share of the questions solved"), curves, spoken)


def solved_curve(row: EncodingRow, low: float, limit: float) -> Curve:
    """Steps up at each solved question, from the left end of the axis to the time limit."""
    times = sorted(max(answer.seconds, low) for answer in row.answers if answer.solved)
    across, up, total = [low], [0.0], max(1, len(row.answers))
    for number, seconds in enumerate(times, start=1):
        across += [seconds, seconds]
        up += [(number - 1) / total, number / total]
    across.append(max(limit, across[-1]))
    up.append(len(times) / total)
    return Curve(FAMILIES[row.family], across, up, TONES[row.family], wide=row.family == "dnn")
