"""Section 2: the same images under each model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from closecall.compare.page.known import Known, lower_of, upper_of
from closecall.compare.page.names import title_of
from closecall.compare.results import DistanceRow, Results
from closecall.report import Change, Section, Strip, difference_uri, folded, image_uri, paragraph, strips
from closecall.report.numbers import rounded_down, rounded_up
from closecall.report.words import distance_words

MOST_SHOWN = 8


def gallery_section(results: Results, known: Sequence[Known]) -> Section:
    """A strip for each image: the original, then what changes each model's mind."""
    shown = [strip(results, known, index) for index in pictured(results)]
    if not shown:
        return Section("The nearest adversarials", [paragraph("No pictures were kept.")], "gallery")
    blocks = [
        paragraph(
            "Each image, the nearest changed one that the model reads otherwise, and the difference: red "
            "pixels became brighter, blue ones darker, strongest where that image changed most. The number "
            f"is the distance, {distance_words(results.norm, colours=results.input_shape[0] > 1)}."
        ),
        strips(shown[:MOST_SHOWN]),
    ]
    rest = shown[MOST_SHOWN:]
    if rest:
        blocks.append(folded(f"{len(rest)} more", [strips(rest)]))
    return Section("The nearest adversarials", blocks, "gallery")


def pictured(results: Results) -> list[int]:
    """The images that a picture was kept of, in their order."""
    kept = {row.index for row in results.distances if row.original is not None}
    return [index for index in results.distance_images if index in kept]


def strip(results: Results, known: Sequence[Known], index: int) -> Strip:
    rows = [(part, row) for part in known for row in part.rows if row.index == index]
    original = next(row.original for _, row in rows if row.original is not None)
    name = results.class_names[rows[0][1].label]
    return Strip(
        original=image_uri(np.array(original)),
        title=f"test image {index}: {name}",
        changes=[change(results, part, row) for part, row in rows],
    )


def change(results: Results, part: Known, row: DistanceRow) -> Change:
    changed = difference = ""
    if row.nearest is not None and row.original is not None and row.outcome != "misclassified":
        changed = image_uri(np.array(row.nearest))
        difference = difference_uri(np.array(row.nearest) - np.array(row.original))
    upper = upper_of(row)
    return Change(
        model=title_of(part.model.name),
        tone=part.tone,
        changed=changed,
        difference=difference,
        before=results.class_names[row.label],
        after="" if row.became is None else results.class_names[row.became],
        distance="" if math.isinf(upper) else rounded_up(upper),
        said=proof_words(row),
        state=state_of(row),
    )


def state_of(row: DistanceRow) -> str:
    if row.outcome == "attacked":
        return "open"
    return "closed" if row.proven and row.outcome != "misclassified" else "bounded"


def proof_words(row: DistanceRow) -> str:
    """What is proven about one image, in a few words."""
    lower, upper = lower_of(row), upper_of(row)
    if row.outcome == "misclassified":
        return "misread to begin with"
    if row.outcome == "attacked":
        return (
            "the attack found nothing; not proven" if math.isinf(upper) else "found by an attack; not proven"
        )
    if row.outcome == "robust" or math.isinf(lower):
        return "proven: no image is read otherwise"
    if row.proven:
        return f"proven nearest: none below {rounded_down(lower)}"
    if math.isinf(upper):
        return f"none found; none below {rounded_down(lower)}"
    return f"the nearest lies between {rounded_down(lower)} and {rounded_up(upper)}"
