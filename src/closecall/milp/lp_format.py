"""A MILP as a file in the LP format, which people can read, or in MPS: what the file's name asks for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from closecall.errors import InputError
from closecall.milp import Milp
from closecall.milp.mps_format import column_names, write_lines, write_mps

SUFFIXES = (".mps", ".mps.gz", ".lp")
LONGEST_LINE = 200  # readers may cut lines of more than 255 letters
# No names: what may be read as a number, or as the beginning of a section.
NUMBER_LIKE = re.compile(r"e\d*|e\d+_.*|(inf|nan).*")
SECTIONS = frozenset(
    (
        *("st", "subject", "such", "end", "bound", "bounds", "free", "semi", "sos", "sos1", "sos2"),
        *("min", "minimize", "minimise", "minimum", "max", "maximize", "maximise", "maximum"),
        *("bin", "binary", "binaries", "gen", "general", "generals", "int", "integer", "integers"),
    )
)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse a file whose name does not say how to write it."""
    if not str(path).lower().endswith(SUFFIXES):
        raise InputError(
            f"A MILP is written as {', '.join(SUFFIXES)}, by the ending of the file's name, "
            f"not as {Path(path).name!r}."
        )


def write_milp(milp: Milp, path: str | os.PathLike[str]) -> None:
    """Write the model as MPS, compressed MPS or LP."""
    check_suffix(path)
    if str(path).lower().endswith(".lp"):
        write_lp(milp, path)
    else:
        write_mps(milp, path)


def write_lp(milp: Milp, path: str | os.PathLike[str]) -> None:
    """Write the model in the LP format, whole or not at all.

    Rows are named r0, r1, …; one with two sides becomes two rows, r3 and r3_most, since not every reader
    takes both at once, and one without sides is left out. Numbers have 17 digits, so that reading gives back
    the same floats.
    """
    names = column_names(milp)
    if len(set(names)) != milp.columns or not all(_can_be_written(name) for name in names):
        raise InputError(
            f"An LP file needs {milp.columns} different column names of letters, digits and underscores that "
            "are no words of the format; rename the columns or leave the names out."
        )
    write_lines(Path(path), _lp_lines(milp, names))


def _can_be_written(name: str) -> bool:
    small = name.lower()
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", small) is not None
    return plain and small not in SECTIONS and NUMBER_LIKE.fullmatch(small) is None


def _lp_lines(milp: Milp, names: tuple[str, ...]) -> Iterator[str]:
    yield "Minimize"
    yield from _folded([" cost:", *_objective(milp, names)])
    yield "Subject To"
    yield from _rows(milp, names)
    yield "Bounds"
    for name, lower, upper in zip(names, milp.lower.tolist(), milp.upper.tolist(), strict=True):
        yield _bounds(name, lower, upper)
    if milp.integer.any():
        yield "General"
        yield from (f" {names[j]}" for j in np.flatnonzero(milp.integer).tolist())
    yield "End"


def _objective(milp: Milp, names: tuple[str, ...]) -> Iterator[str]:
    """Every column is named here, so that readers number the columns as we do."""
    yield from (_term(cost, name) for cost, name in zip(milp.objective.tolist(), names, strict=True))
    if milp.quadratic is not None and milp.quadratic.any():
        squares = (2.0 * milp.quadratic).tolist()
        terms = [f"{squares[j]!r} {names[j]}^2" for j in np.flatnonzero(squares).tolist()]
        yield f"+ [ {terms[0]}"  # not every reader takes a sign here
        yield from (f"+ {term}" for term in terms[1:])
        yield "] / 2"


def _rows(milp: Milp, names: tuple[str, ...]) -> Iterator[str]:
    matrix = milp.matrix.copy()
    matrix.sum_duplicates()
    starts, places, entries = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    for i, (lower, upper) in enumerate(zip(milp.row_lower.tolist(), milp.row_upper.tolist(), strict=True)):
        span = range(starts[i], starts[i + 1])
        terms = [_term(entries[k], names[places[k]]) for k in span] or [_term(0.0, names[0])]
        if lower == upper:
            yield from _folded([f" r{i}:", *terms, f"= {lower!r}"])
            continue
        if np.isfinite(lower):
            yield from _folded([f" r{i}:", *terms, f">= {lower!r}"])
        if np.isfinite(upper):
            suffix = "_most" if np.isfinite(lower) else ""
            yield from _folded([f" r{i}{suffix}:", *terms, f"<= {upper!r}"])


def _term(factor: float, name: str) -> str:
    return f"- {-factor!r} {name}" if factor < 0 else f"+ {factor!r} {name}"


def _bounds(name: str, lower: float, upper: float) -> str:
    if lower == -np.inf and upper == np.inf:
        return f" {name} free"
    left = "-inf" if lower == -np.inf else repr(lower)
    right = "+inf" if upper == np.inf else repr(upper)
    return f" {left} <= {name} <= {right}"


def _folded(words: Iterable[str]) -> Iterator[str]:
    """One line of words, continued on further lines where it grows too long."""
    line = ""
    for word in words:
        if line and len(line) + len(word) > LONGEST_LINE:
            yield line
            line = "  "
        line = f"{line} {word}" if line else word
    yield line
