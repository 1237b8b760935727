"""What is left of a question about images of levels when all images have been searched.

Engines look at all images, which nearly always settles those of levels, too. Where one that is not of levels
lies nearer than any of levels that was found, a solver is given the pixels as integers.
"""

from __future__ import annotations

from closecall.search.level_incumbent import LevelIncumbent
from closecall.search.milp import solve_rest
from closecall.search.problem import Problem


def settle_levels(problem: Problem) -> None:
    """Ask a solver for images of levels, unless the question is settled or it was asked already."""
    incumbent = problem.incumbent
    if not isinstance(incumbent, LevelIncumbent) or incumbent.demanding:
        return
    incumbent.demand_levels()
    if incumbent.settled or problem.clock.left <= 0 or problem.network.capsules is not None:
        return
    problem.why.append("a solver, with pixels as integers: the nearest image of all is not of 8 bits")
    problem.asked.append("solver")
    solve_rest(problem)
