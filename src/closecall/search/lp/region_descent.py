"""RegionDescent a witness downhill through linear regions: within one, the nearest point is an LP.

A region is a way to make every choice. At its nearest point some choices tie; where the LP's reduced cost
says that leaving the picked entry would lead nearer, the other entry of the tie is picked, and so on.
"""

from __future__ import annotations

import time

import numpy as np

from closecall.arrays import Vector
from closecall.network import Network
from closecall.search.lp.branches import Picks
from closecall.search.lp.relaxation import Relaxation
from closecall.solvers.incremental_lp import WarmProgram

TIE = 1e-7  # of a gap's room: a choice that is nearer to a tie counts as one


def picks_at(relaxation: Relaxation, network: Network, image: Vector) -> Picks:
    """The entry that wins each choice at an image."""
    values = network.values(image[None])
    entries = relaxation.entries
    worth = np.zeros(len(entries.choice))
    for node in np.unique(relaxation.node):
        mine = (relaxation.node == node) & (entries.unit >= 0)
        worth[mine] = values[node][0][entries.unit[mine]]
    order = np.lexsort((worth, entries.choice))
    last = np.append(np.flatnonzero(np.diff(entries.choice[order])), len(order) - 1)
    return order[last].astype(np.int32) if len(order) else np.zeros(0, dtype=np.int32)


class RegionDescent:
    """The LP of one region, moved from region to region."""

    def __init__(self, relaxation: Relaxation, single_flips: int) -> None:
        self.relaxation, self.single_flips = relaxation, single_flips
        self.program = WarmProgram(relaxation.program, lazy=relaxation.lazy)

    def descend(self, picks: Picks, deadline: float) -> Vector | None:
        """The image of the lowest objective met."""
        value, values = self._settle(picks, np.inf, deadline)
        best_values = values
        while values is not None and time.perf_counter() < deadline:
            flips = self._flips(picks, values)
            moved = False
            for chosen in (
                [flips, *([flip] for flip in flips[: self.single_flips])] if len(flips) > 1 else [flips]
            ):
                trial = picks.copy()
                for choice, entry in chosen:
                    trial[choice] = entry
                reached, point = self._settle(trial, value, deadline) if chosen else (np.inf, None)
                if point is not None and reached < value - 1e-9:
                    picks, value, values, best_values, moved = trial, reached, point, point, True
                    break
            if not moved:
                break
        return None if best_values is None else self.relaxation.pixels.at(best_values)

    def _settle(self, picks: Picks, cutoff: float, deadline: float) -> tuple[float, Vector | None]:
        entries = self.relaxation.entries
        upper = entries.most.copy()
        upper[picks] = 0.0
        self.program.set_column_bounds(entries.gap, np.zeros(len(upper)), upper)
        left = max(0.0, deadline - time.perf_counter())
        status, value, values = self.program.solve(cutoff=cutoff, seconds=left)
        return (value, values) if status == "optimal" else (np.inf, None)

    def _flips(self, picks: Picks, values: Vector) -> list[tuple[int, int]]:
        """Ties worth leaving, the most promising first."""
        entries = self.relaxation.entries
        costs = self.program.reduced_costs(self.program.duals(), self.program.objective)[entries.gap]
        tied = values[entries.gap] <= TIE * np.maximum(1.0, entries.most)
        tied[picks] = False
        worthwhile = np.flatnonzero(tied & (costs[picks[entries.choice]] < -1e-9))
        order = worthwhile[np.argsort(costs[picks[entries.choice[worthwhile]]])]
        return [(int(entries.choice[entry]), int(entry)) for entry in order]
