"""Section 7: which MILP is the more suitable, the DNN's or the CNN's."""

from __future__ import annotations

import math

from closecall.compare.page.duel import (
    FAMILIES,
    PAIRINGS,
    Duel,
    duels_of,
    solved_words,
    suitable_words,
)
from closecall.compare.page.numbers import SOLVER_NAMES, count, duration, median, percent
from closecall.compare.results import EncodingRow, Results
from closecall.report import (
    Axis,
    Cell,
    Chart,
    Curve,
    Section,
    bullets,
    chart,
    panels,
    paragraph,
    powers_axis,
    shares_axis,
    sortable_table,
)

TITLE = "Which MILP is the more suitable?"
HEADS = (
    "pairing", "network", "accuracy", "units", "variables", "binaries", "nodes", "time", "solved",
)  # fmt: skip
TONES = {"dnn": 1, "cnn": 2}
SHORTEST = 1e-3  # seconds; shorter ones are drawn here


def milps_section(results: Results) -> Section:
    """The words, the charts and the table."""
    if not results.encodings:
        return Section(TITLE, [paragraph("No DNN and CNN were compared by their MILPs.")], "milp")
    in_all, *each = suitable_words(duels_of(results))
    blocks = [
        paragraph(
            "The same question, the nearest adversarial of one image, as a 0-1 MILP of a fully connected and "
            "of a convolutional network, in the tight form and within the distance that an attack had "
            f"reached. {SOLVER_NAMES[results.how.solver]} had {duration(results.how.milp_time_limit)} for "
            "each. Figures are medians over the images; an unsolved question counts with its time limit."
        ),
        paragraph(in_all),
        bullets(each),
        panels([chart(shown) for shown in milp_charts(results)]),
        sortable_table("The MILPs", HEADS, [line(row) for row in results.encodings]),
    ]
    return Section(TITLE, blocks, "milp")


def line(row: EncodingRow) -> list[Cell]:
    gap = median([math.inf if answer.gap is None else answer.gap for answer in row.answers])
    gap_left = percent(gap) if math.isfinite(gap) else "unknown"
    held_out = row.validation_accuracy
    return [
        Cell(row.pairing, row.pairing),
        Cell(row.model, row.model, row.description, TONES[row.family]),
        Cell(
            percent(row.accuracy), row.accuracy, "" if held_out is None else f"{percent(held_out)} held out"
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
    across = powers_axis([*times, results.how.milp_time_limit], "seconds")
    return [solved_chart(duel, across, results.how.milp_time_limit) for duel in duels_of(results)]


def solved_chart(duel: Duel, across: Axis, limit: float) -> Chart:
    title = PAIRINGS[duel.pairing].capitalize()
    curves = [solved_curve(row, across.low, limit) for row in (duel.dnn, duel.cnn)]
    said = f"{solved_words(duel.dnn)} of the DNN's and {solved_words(duel.cnn)} of the CNN's"
    spoken = f"{title}, share of questions solved by time: {said}"
    return Chart(f"{title}: share solved", across, shares_axis([0.0]), curves, spoken)


def solved_curve(row: EncodingRow, low: float, limit: float) -> Curve:
    """Steps up at each solved question, from the left end of the axis to the time limit."""
    times = sorted(max(answer.seconds, low) for answer in row.answers if answer.solved)
    across, up, total = [low], [0.0], max(1, len(row.answers))
    for number, seconds in enumerate(times, start=1):
        across += [seconds, seconds]
        up += [(number - 1) / total, number / total]
    across.append(max(limit, across[-1]))
    up.append(len(times) / total)
    return Curve(FAMILIES[row.family], across, up, TONES[row.family])
