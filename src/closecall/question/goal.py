"""What the new image must achieve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from closecall.arrays import Mask, Vector
from closecall.network import Network
from closecall.network.gradient import input_gradient


@dataclass(frozen=True, eq=False)
class Case:
    """Scores y with matrix · y ≥ threshold in every row."""

    matrix: Vector  # (rows, classes)
    threshold: Vector  # (rows,)

    def slack(self, scores: Vector) -> Vector:
        """The smallest row's excess for each row of scores: the case holds where it is ≥ 0."""
        return np.asarray((scores @ self.matrix.T - self.threshold).min(axis=-1))


@dataclass(frozen=True, eq=False)
class Goal:
    """What the new image must achieve: at least one of the cases.

    Scores that miss it by no more than `tolerance` still do what is meant, as where a margin is asked for
    so that the answer is no tie.
    """

    cases: tuple[Case, ...]
    tolerance: float = 0.0

    def slack(self, scores: Vector) -> Vector:
        return np.asarray(np.max([case.slack(scores) for case in self.cases], axis=0))

    def reached(self, scores: Vector) -> Mask:
        """Which rows of scores achieve it."""
        return np.asarray(self.slack(scores) >= -self.tolerance)


def slack_and_gradient(network: Network, goal: Goal, points: Vector) -> tuple[Vector, Vector]:
    """Each point's slack in its own case (points go round the cases in turn) and the slope of that slack."""
    values = network.values(points)
    rows = np.zeros_like(values[-1])
    slack = np.zeros(len(points))
    for index, case in enumerate(goal.cases):
        mine = slice(index, None, len(goal.cases))
        excess = values[-1][mine] @ case.matrix.T - case.threshold
        slack[mine] = excess.min(axis=1)
        rows[mine] = case.matrix[excess.argmin(axis=1)]
    return slack, input_gradient(network, values, rows)
