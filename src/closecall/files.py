"""Files that are written whole or not at all, and records that grow line by line."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from closecall.errors import InputError, OutputError

PROBE_BYTES = 1 << 16


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        error.filename = str(path)  # a failed write leaves it out
        raise
    finally:
        partial.unlink(missing_ok=True)


def append_line(path: Path, line: str) -> None:
    """Add a line that has reached the disk when this returns, by a single write where the disk allows it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        content = f"{line}\n".encode()
        while content:  # a disk that is nearly full takes a part, then refuses the rest
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)  # a failed write leaves it out
        raise
    finally:
        os.close(descriptor)


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a record; a last one that was cut off by a crash is removed from the file."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
    return content[:whole].splitlines()


def prepare_folder(folder: Path) -> None:
    """Make a folder and try to write into it, so that a search is not lost to a folder that refuses."""
    try:
        make_and_try(folder)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot write into the folder {folder}: {reason}; choose another.") from error


def prepare_file(path: Path) -> None:
    """Make the folder of a file and try to write there, before the work for the file begins."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        make_and_try(path.parent)
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}; choose another file.") from error


def make_and_try(folder: Path) -> None:
    """Write some bytes that are gone again at once: a full disk takes an empty file, but no bytes."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(bytes(PROBE_BYTES))
        probe.flush()
        os.fsync(probe.fileno())


@contextmanager
def explaining_failed_writes(what: str) -> Iterator[None]:
    """Turn a failed write into one sentence."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"Cannot write {what}: {error.strerror or error}.") from error


@contextmanager
def held_alone(lock: Path, refusal: str) -> Iterator[None]:
    """Hold a lock file for as long as this lasts; the system lets go of it when the process ends, however."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(refusal) from error
        yield
