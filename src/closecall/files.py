"""Files that are written whole or not at all, and records that grow line by line."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from closecall.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def append_line(path: Path, line: str) -> None:
    """Add a line by a single write that has reached the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
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
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot write into the folder {folder}: {reason}; choose another.") from error
