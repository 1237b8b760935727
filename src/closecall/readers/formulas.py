"""Formulas of linear constraints joined by `and` and `or`, taken apart case by case.

A formula may have far more cases than fit into memory: they are made one by one. The depth of recursion is
that of the brackets in the file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constraint:
    """Σ coefficient · variable ≤ bound, over variables such as ("X", 3): all inputs, or all outputs."""

    coefficients: tuple[tuple[tuple[str, int], float], ...]
    bound: float

    @property
    def kind(self) -> str:
        """Whether it is about inputs "X", outputs "Y", or nothing at all."""
        return self.coefficients[0][0][0] if self.coefficients else ""


@dataclass(frozen=True, slots=True)
class Every:
    """A conjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction."""

    parts: tuple[Formula, ...]


Formula = Constraint | Every | Either


def every(parts: Sequence[Formula]) -> Every:
    """A conjunction whose parts are none."""
    return Every(tuple(itertools.chain(*(p.parts if isinstance(p, Every) else (p,) for p in parts))))


def either(parts: Sequence[Formula]) -> Formula:
    """A disjunction whose parts are none; the part itself if there is just one."""
    flat = tuple(itertools.chain(*(part.parts if isinstance(part, Either) else (part,) for part in parts)))
    return flat[0] if len(flat) == 1 else Either(flat)


def constraints(formula: Formula) -> Iterator[Constraint]:
    if isinstance(formula, Constraint):
        yield formula
    else:
        for part in formula.parts:
            yield from constraints(part)


def count(formula: Formula) -> float:
    if isinstance(formula, Constraint):
        return 1.0
    counts = map(count, formula.parts)
    return math.prod(counts, start=1.0) if isinstance(formula, Every) else sum(counts)


def longest(formula: Formula) -> int:
    """The most constraints that one case has."""
    if isinstance(formula, Constraint):
        return 1
    return (sum if isinstance(formula, Every) else max)(map(longest, formula.parts))


def alternatives(formula: Formula) -> Iterator[tuple[Constraint, ...]]:
    """The formula as a disjunction of conjunctions, made one by one."""
    if isinstance(formula, Constraint):
        yield (formula,)
    elif isinstance(formula, Either):
        for part in formula.parts:
            yield from alternatives(part)
    else:
        yield from combinations(formula.parts)


def combinations(parts: Sequence[Formula]) -> Iterator[tuple[Constraint, ...]]:
    """One alternative of every part, in all ways."""
    waiting = [alternatives(parts[0])]
    chosen: list[tuple[Constraint, ...]] = []
    while waiting:
        picked = next(waiting[-1], None)
        del chosen[len(waiting) - 1 :]
        if picked is None:
            waiting.pop()
            continue
        chosen.append(picked)
        if len(chosen) == len(parts):
            yield tuple(itertools.chain(*chosen))
        else:
            waiting.append(alternatives(parts[len(chosen)]))


def bounded(formula: Formula) -> set[tuple[int, bool]]:
    """Which inputs are bounded below (False) or above (True) in every case."""
    if isinstance(formula, Constraint):
        return {(index, factor > 0) for (kind, index), factor in formula.coefficients if kind == "X"}
    if isinstance(formula, Either):
        return set.intersection(*map(bounded, formula.parts))
    found: set[tuple[int, bool]] = set()
    for part in formula.parts:
        found |= bounded(part)
    return found
