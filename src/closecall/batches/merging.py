"""Several stores joined into one, such as those of the shards of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from closecall.batches.store import ANSWER, Store, insert_answer
from closecall.errors import InputError

COPIED = ("networks", "datasets", "images", "questions", "places")


def merge(target: Path, sources: Sequence[Path]) -> int:
    """Bring all questions and answers into one store; give how many answers were new or better.

    Of two answers to one question the one that resolves it is kept, then the one that was not cut short.
    """
    for source in sources:
        if source.exists() and target.exists() and source.samefile(target):
            raise InputError(f"{source} cannot be joined with itself: give the other stores.")
    taken = 0
    with Store.writing(target) as store:
        for path in sources:
            with Store.reading(path) as other:
                taken += copy(other, store)
    return taken


def copy(other: Store, store: Store) -> int:
    """One store into another, all of it or nothing."""
    names = ", ".join((*ANSWER, "digest"))
    taken = 0
    with store.transaction() as rows:
        for table in COPIED:
            for line in other.connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 (a table of ours)
                marks = ", ".join("?" * len(line))
                rows.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", line)  # noqa: S608
        for *values, digest in other.connection.execute(f"SELECT {names} FROM answers"):  # noqa: S608
            other.check_digest(values, digest)
            key, _, resolved, finished = values[:4]
            known = rows.execute("SELECT resolved, finished FROM answers WHERE key = ?", (key,)).fetchone()
            if known is None or (resolved, finished) > known:
                insert_answer(rows, tuple(values))
                taken += 1
    return taken
