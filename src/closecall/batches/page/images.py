"""The easiest and the hardest images of each model."""

from __future__ import annotations

from collections.abc import Sequence

from closecall.batches.results import Group, Results, Row, easiest, hardest, lower_of, upper_of, with_witness
from closecall.report import (
    Section,
    Shot,
    difference_uri,
    gallery,
    image_uri,
    paragraph,
    subheading,
)
from closecall.report.numbers import measure_name, rounded_down, rounded_up
from closecall.verdict.eight_bit import why_no_png

SHOWN = 6


def images_section(results: Results, groups: Sequence[Group]) -> Section:
    """The smallest changes that turn a verdict, and the largest that are needed for one."""
    blocks: list[str] = []
    for group in groups:
        chosen_by = {"easiest": easiest(group, SHOWN)}
        if len(with_witness(group)) > SHOWN:
            chosen_by["hardest"] = hardest(group, SHOWN)
        for told, chosen in chosen_by.items():
            shots = [shot(results, row) for row in chosen if can_be_shown(results, row)]
            if shots:
                title = f"{group.model}, {measure_name(group.norm)}: the {told} to change"
                blocks += [subheading(title), gallery(shots)]
    if not blocks:
        blocks = [paragraph("No image was found that changes a verdict, or none that is a picture.")]
    return Section("The easiest and the hardest", blocks, "images")


def can_be_shown(results: Results, row: Row) -> bool:
    return row["key"] in results.pictures and not why_no_png(results.pictures[row["key"]][0].shape, ends(row))


def ends(row: Row) -> tuple[float, float]:
    low, high = row["pixel_range"]
    return low, high


def proof_words(row: Row) -> str:
    """What is proven about one image, in a few words."""
    if row["task"] == "certify":
        return f"found within {row['radius']:.6g}, not asked for the nearest"
    none = f"none below {rounded_down(lower_of(row))}"
    return f"proven nearest, {none}" if row["outcome"] == "nearest" else none


def shot(results: Results, row: Row) -> Shot:
    original, witness = results.pictures[row["key"]]
    low, high = ends(row)
    return Shot(
        original=image_uri(original, low, high),
        changed=image_uri(witness, low, high),
        difference=difference_uri(witness - original),
        before=results.class_name(row, row["predicted_before"]),
        after=results.class_name(row, row["predicted_after"]),
        distance=rounded_up(upper_of(row)),
        proof=f"image {row['index']}: {proof_words(row)}",
        closed=row["outcome"] == "nearest",
    )
