"""Cuts by concave envelopes as rows of a relaxation over a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack

from closecall.arrays import Indices, Vector
from closecall.bounds.envelope_cuts import Cut, Envelopes, Ranges
from closecall.search.lp.relaxation import Relaxation


@dataclass(frozen=True, eq=False)
class Rows:
    """matrix·columns ≤ heights, a row for each cut."""

    cuts: list[Cut]
    matrix: csr_array
    heights: Vector

    @property
    def unlimited(self) -> Vector:
        return np.full(len(self.cuts), -np.inf)


class CutRows:
    """Which column of a relaxation each input of its envelopes is; −1 if it is none, being decided."""

    def __init__(self, envelopes: Envelopes, relaxation: Relaxation) -> None:
        self.envelopes, self.relaxation = envelopes, relaxation
        self.column = np.full(envelopes.width, -1)
        self.column[envelopes.spans[0]] = np.arange(envelopes.spans[0].stop)
        entries = relaxation.entries
        starts = np.array([envelopes.spans[int(node)].start for node in relaxation.reader], dtype=np.int64)
        self.column[starts + entries.output] = entries.whole

    def rows(self, cuts: Sequence[Cut]) -> Rows:
        """The rows of the cuts whose unit is still open and whose inputs are columns."""
        kept: list[Cut] = []
        columns: list[Indices] = []
        entries: list[Vector] = []
        for cut in cuts:
            unit = self.column[self.envelopes.spans[cut.reader].start + cut.output]
            weighty = np.flatnonzero(cut.slopes)
            read = self.column[cut.inputs[weighty]]
            if unit >= 0 and (read >= 0).all():
                kept.append(cut)
                columns.append(np.append(read, unit))
                entries.append(np.append(-cut.slopes[weighty], 1.0))
        ends = np.cumsum([0, *(len(some) for some in columns)])
        nothing = np.zeros(0)
        data = (np.concatenate([nothing, *entries]), np.concatenate([nothing.astype(int), *columns]), ends)
        width = self.relaxation.program.columns
        return Rows(kept, csr_array(data, shape=(len(kept), width)), np.array([cut.height for cut in kept]))

    def added(self, cuts: Sequence[Cut]) -> Relaxation:
        """The relaxation with the rows of the cuts."""
        program, rows = self.relaxation.program, self.rows(cuts)
        longer = replace(
            program,
            matrix=csr_array(vstack([program.matrix, rows.matrix], format="csr")),
            row_lower=np.concatenate([program.row_lower, rows.unlimited]),
            row_upper=np.concatenate([program.row_upper, rows.heights]),
        )
        return replace(self.relaxation, program=longer)

    def violated(self, values: Vector, ranges: Ranges) -> list[Cut]:
        """The cuts that an LP's point breaks."""
        relaxation = self.relaxation
        here = np.where(self.column >= 0, values[self.column], ranges[0])
        first = np.array([members[0] for members in relaxation.branches.members], dtype=np.int64)
        cuts: list[Cut] = []
        for reader in np.unique(relaxation.reader[first]):
            mine = first[relaxation.reader[first] == reader]
            units, worth = relaxation.entries.output[mine], values[relaxation.entries.whole[mine]]
            cuts += self.envelopes.cuts(int(reader), units, worth, here, ranges)
        return cuts
