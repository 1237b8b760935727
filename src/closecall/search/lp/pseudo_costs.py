"""How much branching on each choice is likely to raise the bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import Vector
from closecall.search.lp.branches import Picks
from closecall.search.lp.relaxation import Relaxation

LEAST_GAIN = 1e-6


class PseudoCosts:
    """How much the bound rose for each entry when its gap was closed, per share of gap closed."""

    def __init__(self, relaxation: Relaxation) -> None:
        count = len(relaxation.branches.choice)
        self.order = np.argsort(relaxation.branches.choice, kind="stable")  # entries, choice by choice
        self.starts = np.flatnonzero(np.diff(relaxation.branches.choice[self.order], prepend=-1))
        self.sums = np.zeros(count)
        self.trials = np.zeros(count)
        self.last = np.zeros(count)

    def learn(self, entry: int, gain: float, share: float) -> None:
        self.sums[entry] += gain / max(share, 1e-6)
        self.trials[entry] += 1
        self.last[entry] = gain

    def openness(self, shares: Vector, picks: Picks) -> Vector:
        """How far each open choice is from being made: the smallest share of its entries."""
        smallest = np.minimum.reduceat(shares[self.order], self.starts)
        return np.asarray(np.where(picks >= 0, 0.0, smallest))

    def scores(self, shares: Vector) -> Vector:
        """For each choice the product of its smallest and its largest expected gain."""
        average = self.sums.sum() / max(self.trials.sum(), 1.0)
        rates = np.where(self.trials > 0, self.sums / np.maximum(self.trials, 1.0), average + 1e-9)
        expected = np.maximum(rates * shares, LEAST_GAIN)[self.order]
        return np.asarray(
            np.minimum.reduceat(expected, self.starts) * np.maximum.reduceat(expected, self.starts)
        )

    def score_of_last_trials(self, members: NDArray[np.int64]) -> float:
        gains = np.maximum(self.last[members], LEAST_GAIN)
        return float(gains.min() * gains.max())
