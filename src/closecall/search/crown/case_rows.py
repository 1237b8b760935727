"""The goal's cases in torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from closecall.question.goal import Goal


@dataclass(frozen=True, eq=False)
class CaseRows:
    """C and d of C·y − d ≥ 0: (rows, classes) and (rows,) for one case, with a dimension before for many."""

    matrix: Tensor
    threshold: Tensor

    @classmethod
    def of(cls, goal: Goal) -> CaseRows:
        """Those of all cases, short ones filled up with their first row."""
        most = max(len(case.threshold) for case in goal.cases)
        places = np.arange(most)
        taken = [np.where(places < len(case.threshold), places, 0) for case in goal.cases]
        matrix = np.stack([case.matrix[rows] for case, rows in zip(goal.cases, taken, strict=True)])
        threshold = np.stack([case.threshold[rows] for case, rows in zip(goal.cases, taken, strict=True)])
        return cls(torch.from_numpy(matrix), torch.from_numpy(threshold))

    def taken(self, cases: Tensor | int) -> CaseRows:
        return CaseRows(self.matrix[cases], self.threshold[cases])

    def single(self) -> CaseRows:
        """In float32."""
        return CaseRows(self.matrix.float(), self.threshold.float())

    def repeated(self, count: int) -> CaseRows:
        """One case, so many times."""
        return CaseRows(*(part.expand(count, *part.shape) for part in (self.matrix, self.threshold)))
