"""Section 1: one line for each model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from closecall.compare.page.known import Known
from closecall.compare.page.names import all_of, in_words, sentence, title_of
from closecall.compare.results import ModelRow, Results
from closecall.report import Cell, Section, bullets, note, paragraph, ranges, sortable_table, span_axis
from closecall.report.numbers import (
    NORM_NAMES,
    accuracy_digits,
    count,
    duration,
    interval,
    listed,
    milliseconds,
    percent,
    rounded_down,
    rounded_up,
    spread,
)
from closecall.report.words import distance_words

SIZES = (
    "Architectures: 16-16 is a dense layer of 16 units and another one of 16; 8x4s2p1/2 16 is a convolution "
    "with 8 kernels of 4×4, stride 2 and padding 1, max pooling over 2×2, and a dense layer of 16."
)


def answer_section(results: Results, known: Sequence[Known]) -> Section:
    """The table, the medians as bars, and what there is to say about each model."""
    measured = [part for part in known if part.rows]
    blocks = [paragraph(answer_words(results, measured))]
    lines = [line(results, part) for part in known]
    blocks.append(sortable_table("The answer for each model", heads(results), lines))
    if measured:
        blocks.append(paragraph(reading_words(results, measured)))
        blocks.append(median_bars(results, measured))
    blocks.append(bullets([model_words(part.model) for part in known]))
    if any(part.model.kind in ("dnn", "cnn") for part in known):
        blocks.append(note(SIZES))
    return Section("The answer", blocks, "answer")


def heads(results: Results) -> list[str]:
    median = f"median {NORM_NAMES[results.norm]} distance"
    return ["model", "accuracy", "parameters", "training time", "time per image", median, "proven interval"]


def line(results: Results, part: Known) -> list[Cell]:
    model, digits = part.model, accuracy_digits(results.test_images)
    training = model.training_seconds
    mean = sum(training) / len(training) if training else None
    return [
        Cell(title_of(model.name), model.name, other_kind(model), part.tone),
        Cell(percent(model.mean_accuracy, digits), model.mean_accuracy, spread(model.accuracy, digits)),
        Cell(count(model.parameters), model.parameters),
        Cell("not here" if mean is None else duration(mean), mean),
        Cell(
            milliseconds(model.milliseconds_single),
            model.milliseconds_single,
            f"{milliseconds(model.milliseconds_batched)} in batches",
        ),
        median_cell(part),
        proof_cell(part),
    ]


def other_kind(model: ModelRow) -> str:
    """What kind of network it is, where its name does not say it."""
    return "" if model.kind in (model.name, "other") else title_of(model.kind)


def median_cell(part: Known) -> Cell:
    if not part.rows or math.isinf(part.upper):
        return Cell(part.written())
    about = "" if part.state == "closed" else "≤ "
    return Cell(f"{about}{rounded_up(part.upper)}", part.upper)


def proof_cell(part: Known) -> Cell:
    if not part.rows:
        return Cell("not measured")
    if part.state == "open":
        return Cell("not proven", None, "an attack's upper bound")
    return Cell(
        interval(part.lower, part.upper),
        None if math.isinf(part.lower) else part.lower,
        f"{part.closed} of {len(part.rows)} proven to the end",
    )


def answer_words(results: Results, measured: Sequence[Known]) -> str:
    """The best accuracy and the largest proven median, as far as the numbers tell them apart."""
    words = [most_accurate(results)]
    proven = [part for part in measured if part.model.provable and math.isfinite(part.lower)]
    if len(proven) > 1:
        words.append(hardest_to_fool(proven))
    open_ones = [part.model.name for part in measured if part.state == "open"]
    if open_ones:
        words.append(
            f"For {all_of(open_ones)} there is only what an attack found: the nearest may be nearer still, "
            "and nothing is proven about it."
        )
    return " ".join(words)


def most_accurate(results: Results) -> str:
    digits = accuracy_digits(results.test_images)
    best = max(model.mean_accuracy for model in results.models)
    leaders = [model.name for model in results.models if model.mean_accuracy == best]
    verb = "reads" if len(leaders) == 1 else "read"
    average = " on average" if len(results.seeds) > 1 else ""
    return f"{sentence(all_of(leaders))} {verb} the most test images right, {percent(best, digits)}{average}."


def hardest_to_fool(proven: Sequence[Known]) -> str:
    """Name the model whose median is proven to be above every other's, or those that it may be."""
    furthest = max(proven, key=lambda part: part.lower)
    rivals = [part for part in proven if part is furthest or part.upper >= furthest.lower]
    others = [part for part in proven if part not in rivals]
    names = all_of([part.model.name for part in proven])
    if len(rivals) > 1:
        slower = all_of([part.model.name for part in others], "or")
        behind = f"; it is proven not to be {slower}" if others else ""
        return (
            f"The hardest to fool is {all_of([part.model.name for part in rivals], 'or')}: their proven "
            f"intervals overlap, so that it is not settled{behind}."
        )
    nearest = max(others, key=lambda part: part.upper)
    return (
        f"Of those with proofs ({names}), {in_words(furthest.model.name)} is the hardest to fool: half of "
        f"the images need a change of {rounded_down(furthest.lower)} or more, while for "
        f"{in_words(nearest.model.name)} half of them need no more than {rounded_up(nearest.upper)}."
    )


def reading_words(results: Results, measured: Sequence[Known]) -> str:
    """What the distances are, and which images they are the median of."""
    images = len(results.distance_images)
    misread = [f"{part.misread} by {in_words(part.model.name)}" for part in measured if part.misread]
    zero = (
        f" Images that are misread to begin with count as distance 0: {listed(misread)}." if misread else ""
    )
    return (
        f"Distances are {distance_words(results.norm, colours=results.input_shape[0] > 1)}. The medians are "
        f"over the same {images} test images for every model, under the networks of the first seed.{zero}"
    )


def median_bars(results: Results, measured: Sequence[Known]) -> str:
    """The medians on one scale: filled where proven, dashed where only an attack speaks."""
    ends = [end for part in measured for end in (part.lower, part.upper) if math.isfinite(end)]
    label = f"median {NORM_NAMES[results.norm]} distance; filled: proven; dashed: at most this, not proven"
    spoken = "; ".join(f"{title_of(part.model.name)}: {part.written()}" for part in measured)
    shown = [part.range() for part in measured if math.isfinite(part.lower)]
    return ranges(shown, span_axis(ends, label), f"Median distances. {spoken}")


def model_words(model: ModelRow) -> str:
    note = f" {model.note}" if model.note else ""
    return f"{title_of(model.name)}: {model.description}; {model.source}.{note}"
