"""A store refuses what it cannot be sure of, and names what is damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import closecall
from closecall.batches.schema import VERSION
from closecall.batches.store import Store
from closecall.batches.tables import rows
from closecall.errors import InputError


@pytest.fixture
def filled(small: Path, tmp_path: Path) -> Path:
    path = tmp_path / "r.sqlite"
    list(closecall.batch(small, "digits", indices=range(2), norm="linf", workers=0, store=path))
    return path


def read_all(path: Path) -> int:
    with Store.reading(path) as store:
        return len([*rows(store)])


def changed(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_a_newer_store_is_refused(filled: Path) -> None:
    changed(filled, f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(InputError, match="was written by a newer closecall"):
        read_all(filled)


def test_another_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    changed(path, "CREATE TABLE theirs (one)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="is not a store of closecall"), Store.writing(path):
        pass
    assert path.read_bytes() == before


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("no database " * 500)
    with pytest.raises(InputError, match=r"The store .*text\.sqlite is damaged \(file is not a database\)"):
        read_all(path)
    with pytest.raises(InputError, match="There is no store"):
        read_all(tmp_path / "nothing.sqlite")


def test_a_page_that_was_overwritten_is_found_at_once(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    filled.write_bytes(content)
    with pytest.raises(InputError, match=r"The store .*r\.sqlite is damaged"):
        read_all(filled)


def test_an_answer_that_was_altered_is_named(filled: Path) -> None:
    """SQLite itself finds nothing wrong with a number that changed."""
    changed(
        filled, "UPDATE answers SET record = replace(record, '\"lower_bound\": 0.', '\"lower_bound\": 9.')"
    )
    with pytest.raises(InputError, match=r"the answer [0-9a-f]{12}… is not what was written"):
        read_all(filled)


def test_a_store_is_written_by_one_batch_and_read_by_anybody(filled: Path) -> None:
    with Store.writing(filled):
        assert read_all(filled) == 2
        with pytest.raises(InputError, match="Another batch is writing to"), Store.writing(filled):
            pass
    with Store.writing(filled):
        pass


def test_the_interval_of_a_search_that_never_ended_is_kept(filled: Path) -> None:
    with Store.writing(filled) as store:
        key = next(iter(store.states()))
        store.connection.execute("DELETE FROM answers WHERE key = ?", (key,))
        store.note_interval(key, 0.25, float("inf"), 3, 1.5)
    with Store.reading(filled) as store:
        (row,) = [row for row in rows(store) if row["key"] == key]
    assert (row["outcome"], row["lower_bound"], row["distance"], row["seconds"]) == ("begun", 0.25, None, 1.5)
