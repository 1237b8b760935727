"""From a store to the results that a page is made of."""

from __future__ import annotations

from pathlib import Path

from closecall.arrays import Image
from closecall.batches.results import Results, easiest, groups_of, hardest
from closecall.batches.store import Store
from closecall.batches.tables import rows

PICTURED = 6  # of the easiest and of the hardest images of each model


def read_results(path: Path) -> Results:
    """Every row, and pictures of the easiest and the hardest images."""
    with Store.reading(path) as store:
        known = Results(path.name, [*rows(store)], store.class_names())
        chosen = [
            row["key"]
            for group in groups_of(known)
            for row in (*easiest(group, PICTURED), *hardest(group, PICTURED))
        ]
        pictures: dict[str, tuple[Image, Image]] = {}
        for key in chosen:
            verdict = store.verdict(key)
            if verdict is not None and verdict.witness is not None:
                pictures[key] = verdict.image, verdict.witness
    return Results(known.name, known.rows, known.class_names, pictures)
