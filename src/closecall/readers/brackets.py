"""Text in nested brackets, as VNN-LIB takes it from SMT-LIB, from files that may come from anyone."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from closecall.errors import QueryError

# A token or a list of expressions, as nested as the text.
Expression = str | list["Expression"]

MOST_BYTES = 100_000_000
MOST_TOKENS = 3_000_000
DEEPEST = 100
TOKEN = re.compile(r";[^\n]*|([()])|([^\s();]+)")


def read_text(path: Path) -> str:
    """A file's text, plain or gzipped, if it is not too long."""
    try:
        content = path.read_bytes() if path.stat().st_size <= MOST_BYTES else None
        if content is not None and content[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=BytesIO(content)) as file:
                content = file.read(MOST_BYTES + 1)
        if content is None or len(content) > MOST_BYTES:
            raise QueryError(f"{path} is larger than the {MOST_BYTES:,} bytes that closecall reads.")
        return content.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise QueryError(f"Cannot read the property {path}: {error}.") from error


def forms(text: str) -> Iterator[list[Expression]]:
    """The outermost lists of a text, one after the other."""
    open_lists: list[list[Expression]] = []
    count = 0
    for match in TOKEN.finditer(text):
        bracket, word = match.groups()
        count += 1
        if count > MOST_TOKENS:
            raise QueryError(f"VNN-LIB: one expression has more than {MOST_TOKENS:,} parts.")
        if bracket == "(":
            if len(open_lists) >= DEEPEST:
                raise QueryError(f"VNN-LIB: brackets are nested more than {DEEPEST} deep.")
            open_lists.append([])
        elif bracket == ")":
            if not open_lists:
                raise QueryError("VNN-LIB: a closing bracket has no opening one.")
            done = open_lists.pop()
            if open_lists:
                open_lists[-1].append(done)
            else:
                count = 0
                yield done
        elif word is not None:
            if not open_lists:
                raise QueryError(f"VNN-LIB: expected an opening bracket, but found {shown(word)}.")
            open_lists[-1].append(word)
    if open_lists:
        raise QueryError("VNN-LIB: a closing bracket is missing at the end.")


def shown(expression: Expression) -> str:
    """The beginning of an expression, for messages."""
    if isinstance(expression, str):
        return repr(expression if len(expression) <= 40 else expression[:40] + "…")
    words = [part[:40] if isinstance(part, str) else "(…)" for part in expression[:4]]
    return repr(f"({' '.join(words)}{' …' if len(expression) > 4 else ''})")
