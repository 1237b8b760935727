"""The ways to answer a question; each writes what it finds and proves to the problem's incumbent."""

from __future__ import annotations

from collections.abc import Callable

from closecall.clock import OutOfTimeError
from closecall.errors import QueryError
from closecall.search.auto import BASIC, IMPROVED, MILP, TABLE, Plan, follow
from closecall.search.levels import settle_levels
from closecall.search.problem import Finding, Problem

METHODS: dict[str, tuple[Plan, ...]] = {
    "auto": TABLE,
    "milp": MILP,
    "milp-improved": IMPROVED,
    "milp-basic": BASIC,
}


def search(problem: Problem, method: str) -> Finding:
    """Search by a method; cut off anywhere, by Ctrl-C or by the end of time or memory, keep what is known."""
    return search_by(problem, METHODS[method], then=settle_levels)


def search_by(
    problem: Problem, table: tuple[Plan, ...], then: Callable[[Problem], None] | None = None
) -> Finding:
    """Search by the first plan of a table that applies; `then` for what no plan knows of."""
    interrupted = False
    with problem.clock.noting_interrupts():
        try:
            follow(problem, table)
            if then is not None:
                then(problem)
        except KeyboardInterrupt:
            interrupted = True
        except OutOfTimeError:
            pass
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if problem.incumbent.result == (None, 0.0):
                raise QueryError(
                    "memory ran out before anything was known: ask about a smaller network or image."
                ) from error
            problem.notes.append("memory ran out: the interval holds as far as it was proven")
    incumbent = problem.incumbent
    return Finding(
        *incumbent.result,
        incumbent.statistics.nodes,
        interrupted,
        tuple(problem.notes),
        engine_asked_last(problem),
        tuple(problem.why),
    )


def engine_asked_last(problem: Problem) -> str:
    """A solver by its own name."""
    engine = problem.asked[-1].partition(",")[0] if problem.asked else ""
    return problem.solver if engine == "solver" else engine


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is about memory, also one that torch calls by another name."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error)
