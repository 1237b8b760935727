"""The tables of a store, and how one is opened: what is no store, newer or damaged is refused by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from closecall.errors import InputError, OutputError
from closecall.files import prepare_file

VERSION = 1
APPLICATION = 0x436C6F63  # "Cloc", by which `file` and we know a store of ours
SECONDS_TO_WAIT = 30.0  # for somebody else's transaction

TABLES = """
CREATE TABLE networks (fingerprint TEXT PRIMARY KEY, source TEXT NOT NULL);
CREATE TABLE datasets (name TEXT PRIMARY KEY, class_names TEXT NOT NULL);
CREATE TABLE images (hash TEXT PRIMARY KEY, pixels BLOB NOT NULL);
CREATE TABLE questions (
    key TEXT PRIMARY KEY, network TEXT NOT NULL, image TEXT NOT NULL, task TEXT NOT NULL,
    label INTEGER NOT NULL, asked TEXT NOT NULL
);
CREATE TABLE places (
    key TEXT NOT NULL, model TEXT NOT NULL, dataset TEXT NOT NULL, split TEXT NOT NULL,
    place INTEGER NOT NULL, PRIMARY KEY (key, model, dataset, split, place)
);
CREATE TABLE answers (
    key TEXT PRIMARY KEY, outcome TEXT NOT NULL, resolved INTEGER NOT NULL, finished INTEGER NOT NULL,
    record TEXT, witness BLOB, note TEXT NOT NULL, memory INTEGER NOT NULL, answered TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE intervals (
    key TEXT PRIMARY KEY, lower REAL NOT NULL, upper REAL, nodes INTEGER NOT NULL, seconds REAL NOT NULL
);
"""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a store, or make one; each transaction is on the disk when it is over."""
    if create:
        prepare_file(path)
    elif not path.is_file():
        raise InputError(f"There is no store {path}: give one that `closecall batch --store` wrote.")
    with explaining(path):
        connection = sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None)
        try:
            prepare(connection, path, create)
        except BaseException:
            connection.close()
            raise
    return connection


def prepare(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if empty and create:
        connection.execute("PRAGMA journal_mode = WAL")
        make_tables(connection)
    check(connection, path)
    connection.execute("PRAGMA synchronous = FULL")


def make_tables(connection: sqlite3.Connection) -> None:
    statements = "".join(["BEGIN IMMEDIATE;", TABLES, f"PRAGMA application_id = {APPLICATION};"])
    connection.executescript(f"{statements}PRAGMA user_version = {VERSION};COMMIT;")


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no store, what a newer closecall wrote, and what is damaged."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise InputError(f"{path} is not a store of closecall: choose another file with --store.")
    if version > VERSION:
        raise InputError(
            f"{path} was written by a newer closecall (store version {version}, this one knows {VERSION}): "
            "use that version, or another store."
        )
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise damaged(path, str(found).splitlines()[-1])


def damaged(path: Path, reason: str) -> InputError:
    return InputError(f"The store {path} is damaged ({reason}): restore a copy of it, or begin a new one.")


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn what SQLite says about a store into one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL"):
            reason = "the disk is full; all earlier answers are kept: make room and run it again"
        elif name.startswith("SQLITE_IOERR"):
            reason = "the disk takes no more of it; all earlier answers are kept: make room and run it again"
        else:
            reason = f"{error}; all earlier answers are kept"
        raise OutputError(f"Cannot write the store {path}: {reason}.") from error
    except sqlite3.DatabaseError as error:
        raise damaged(path, str(error)) from error
