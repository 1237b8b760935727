"""The store of a batch: one SQLite file, written by one process, one transaction for each answer."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from closecall.batches.answers import Reply, packed, record_of, unpacked, verdict_from
from closecall.batches.items import Contender, Item
from closecall.batches.schema import connect, damaged, explaining
from closecall.files import held_alone
from closecall.verdict.saved import located
from closecall.verdict.verdict import Verdict

ANSWER = ("key", "outcome", "resolved", "finished", "record", "witness", "note", "memory", "answered")


@dataclass(frozen=True)
class State:
    """What is known of a question that was answered before."""

    outcome: str
    resolved: bool
    finished: bool


class Store:
    """A store that is open; questions first, then an answer for each."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection, self.path = connection, path

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Store]:
        """Open or make a store and keep every other batch out of it."""
        connect(path, create=True).close()
        refusal = (
            f"Another batch is writing to {path}: wait for it, or give this one a store of its own and join "
            "the two with `closecall batch merge`."
        )
        with held_alone(path.with_name(f"{path.name}-lock"), refusal):
            yield from cls._opened(connect(path, create=True), path)

    @classmethod
    @contextmanager
    def reading(cls, path: Path) -> Iterator[Store]:
        """Open a store that is there, also while a batch is writing to it."""
        yield from cls._opened(connect(path, create=False), path)

    @classmethod
    def _opened(cls, connection: sqlite3.Connection, path: Path) -> Iterator[Store]:
        try:
            with explaining(path):
                yield cls(connection, path)
        finally:
            connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing, on the disk when it is over."""
        with explaining(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite may have rolled it back itself
                    self.connection.execute("ROLLBACK")
                raise

    def add_contenders(self, contenders: Iterable[Contender], dataset: str, names: Iterable[str]) -> None:
        with self.transaction() as rows:
            for each in contenders:
                source = located(str(each.model)) if isinstance(each.model, (str, Path)) else ""
                rows.execute("INSERT OR REPLACE INTO networks VALUES (?, ?)", (each.fingerprint, source))
            rows.execute("INSERT OR REPLACE INTO datasets VALUES (?, ?)", (dataset, json.dumps([*names])))

    def add_questions(self, items: Iterable[Item]) -> None:
        """Write down what is going to be asked, all at once."""
        with self.transaction() as rows:
            for item in items:
                place = item.place
                rows.execute(
                    "INSERT OR IGNORE INTO places VALUES (?, ?, ?, ?, ?)",
                    (item.key, place.model, place.dataset, place.split, place.index),
                )
                rows.execute(
                    "INSERT OR IGNORE INTO images VALUES (?, ?)", (item.image_hash, packed(item.pixels))
                )
                asked = json.dumps(item.asked, sort_keys=True)
                rows.execute(
                    "INSERT OR IGNORE INTO questions VALUES (?, ?, ?, ?, ?, ?)",
                    (item.key, item.network, item.image_hash, item.task, item.label, asked),
                )

    def states(self) -> dict[str, State]:
        """Every question that has an answer."""
        rows = self.connection.execute("SELECT key, outcome, resolved, finished FROM answers")
        return {key: State(outcome, bool(resolved), bool(done)) for key, outcome, resolved, done in rows}

    def put(self, reply: Reply, task: str) -> None:
        """Keep an answer, unless a better one is there; a verdict has the interval of its search."""
        verdict = reply.verdict
        witness = None if verdict is None or verdict.witness is None else packed(verdict.witness)
        values = (
            reply.key, reply.outcome, int(reply.resolved(task)), int(reply.finished),
            None if verdict is None else record_of(verdict), witness, reply.note, reply.memory,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )  # fmt: skip
        with self.transaction() as rows:
            known = rows.execute("SELECT resolved FROM answers WHERE key = ?", (reply.key,)).fetchone()
            if known is None or not known[0] or reply.resolved(task):
                insert_answer(rows, values)
            if verdict is not None:
                rows.execute("DELETE FROM intervals WHERE key = ?", (reply.key,))

    def note_interval(self, key: str, lower: float, upper: float, nodes: int, seconds: float) -> None:
        """Keep what a running search has proven so far: a crash leaves it."""
        with self.transaction() as rows:
            end = upper if math.isfinite(upper) else None
            values = (key, lower, end, nodes, seconds)
            rows.execute("INSERT OR REPLACE INTO intervals VALUES (?, ?, ?, ?, ?)", values)

    def verdict(self, key: str) -> Verdict | None:
        """The verdict on a question, if there is one."""
        names = ", ".join(f"answers.{name}" for name in (*ANSWER, "digest"))
        row = self.connection.execute(
            f"SELECT {names}, images.pixels FROM answers JOIN questions USING (key) "  # noqa: S608 (our names)
            "JOIN images ON images.hash = questions.image WHERE answers.key = ?",
            (key,),
        ).fetchone()
        if row is None:
            return None
        *values, digest, pixels = row
        self.check_digest(values, digest)
        record, witness = values[ANSWER.index("record")], values[ANSWER.index("witness")]
        if record is None:
            return None
        try:
            seen = None if witness is None else unpacked(witness)
            return verdict_from(json.loads(record), unpacked(pixels), seen)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise damaged(self.path, f"the answer {key[:12]}… cannot be read") from error

    def check_digest(self, values: Iterable[Any], digest: str) -> None:
        if digest_of(values) != digest:
            key = str(next(iter(values)))
            raise damaged(self.path, f"the answer {key[:12]}… is not what was written")

    def class_names(self) -> Mapping[str, list[str]]:
        """The classes of every data set in it."""
        rows = self.connection.execute("SELECT name, class_names FROM datasets")
        return {name: json.loads(names) for name, names in rows}

    def sources(self) -> Mapping[str, str]:
        """Where each network was read from; empty where it was given as a module."""
        return dict(self.connection.execute("SELECT fingerprint, source FROM networks"))


def insert_answer(rows: sqlite3.Connection, values: tuple[Any, ...]) -> None:
    marks = ", ".join("?" * (len(ANSWER) + 1))
    rows.execute(f"INSERT OR REPLACE INTO answers VALUES ({marks})", (*values, digest_of(values)))  # noqa: S608


def digest_of(values: Iterable[Any]) -> str:
    """A sha256 over an answer as it was written: a bit that flips on a disk is noticed."""
    digest = hashlib.sha256()
    for value in values:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()
