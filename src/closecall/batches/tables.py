"""What a store holds as a table: a row for each model and image, as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from closecall.batches.store import ANSWER, Store
from closecall.verdict.verdict import ASKED

Row = dict[str, Any]

# From the record of an answer; the rest of the columns come from the question.
FOUND = (
    "lower_bound", "distance", "amounts", "predicted_before", "predicted_after", "seconds", "nodes", "engine",
    "method", "solver", "time_limit", "threads", "gap", "version",
)  # fmt: skip
BEGUN, WAITING = "begun", "waiting"
COLUMNS = (
    "model", "dataset", "split", "index", "label", "task", *(name for name in ASKED if name != "label"),
    "outcome", "resolved", "finished", *FOUND, "note", "memory", "answered", "network_sha256",
    "image_sha256", "key",
)  # fmt: skip


def rows(store: Store) -> Iterator[Row]:
    """Every question of a store, answered or not, model by model.

    One without an answer is `begun` if its search has proven an interval, else `waiting`.
    """
    answer = ", ".join(f"answers.{name}" for name in (*ANSWER, "digest"))
    found = store.connection.execute(
        f"SELECT model, dataset, split, place, label, task, asked, network, image, questions.key, {answer}, "  # noqa: S608
        "lower, upper, nodes, seconds FROM places JOIN questions USING (key) "
        "LEFT JOIN answers ON answers.key = questions.key "
        "LEFT JOIN intervals ON intervals.key = questions.key "
        "ORDER BY model, dataset, split, place, task, questions.key"
    )
    for line in found:
        place, answered, interval = line[:10], line[10:-4], line[-4:]
        row = asked_of(place)
        if answered[0] is not None:
            store.check_digest(answered[:-1], answered[-1])
            row |= answered_of(dict(zip(ANSWER, answered, strict=False)))
        elif interval[0] is not None:
            names = ("lower_bound", "distance", "nodes", "seconds")
            row |= {"outcome": BEGUN, **dict(zip(names, interval, strict=True))}
        yield {name: row.get(name) for name in COLUMNS}


def asked_of(place: tuple[Any, ...]) -> Row:
    names = ("model", "dataset", "split", "index", "label", "task")
    *known, asked, network, image, key = place
    hashes = {"network_sha256": network, "image_sha256": image, "key": key}
    return {"outcome": WAITING, **json.loads(asked), **dict(zip(names, known, strict=True)), **hashes}


def answered_of(answer: Row) -> Row:
    record = json.loads(answer["record"] or "{}")
    found = {name: record.get(name) for name in (*FOUND, *ASKED) if name in record}
    note = answer["note"] or "; ".join(record.get("notes", ()))
    flags = {name: bool(answer[name]) for name in ("resolved", "finished")}
    kept = {name: answer[name] for name in ("outcome", "memory", "answered")}
    return {**found, **kept, **flags, "note": note}
