"""What a tree branches on: the phases of ReLUs and the winners of poolings; in L0 the pixels, too.

A pixel is one more choice, of two entries. *Unchanged* fixes its shift to 0. *Changed* counts it as one whole
pixel from now on and lets it move freely: the column that pays for each part of its way is closed, one that
pays nothing is opened, and the count that is fixed rises by one. So only bounds of columns change from node
to node here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from closecall.arrays import Indices, Vector
from closecall.milp.builder import Entries
from closecall.solvers.incremental_lp import WarmProgram

Picks = NDArray[np.int32]  # for each choice the entry picked, −1 while it is open


@dataclass(frozen=True, eq=False)
class Branches:
    """The entries of all choices: entry e belongs to choice `choice[e]`."""

    entries: Entries
    phases: int

    @property
    def choice(self) -> Indices:
        return self.entries.choice

    @property
    def count(self) -> int:
        return self.phases

    @cached_property
    def members(self) -> tuple[Indices, ...]:
        """The entries of each choice."""
        order = np.argsort(self.choice, kind="stable")
        starts = np.flatnonzero(np.diff(self.choice[order], prepend=-1))
        return tuple(np.split(order, starts[1:])) if len(order) else ()

    def shares(self, values: Vector) -> Vector:
        """How far each entry is from being picked at a point."""
        return np.asarray(np.maximum(values[self.entries.gap], 0.0) / self.entries.most)

    def fix(self, program: WarmProgram, picks: Picks) -> None:
        """Close the gaps of what is picked, and open all others."""
        phases = picks[: self.phases]
        upper = self.entries.most.copy()
        upper[phases[phases >= 0]] = 0.0
        program.set_column_bounds(self.entries.gap, np.zeros(len(upper)), upper)


@dataclass(frozen=True, eq=False)
class PixelColumns:
    """For each way to shift a pixel: which pixel, the column that pays for it, and the one that does not."""

    pixel: Indices  # counted from 0 without gaps
    paid: Indices
    free: Indices
    fixed: int  # the column of the count that is fixed

    @property
    def pixels(self) -> int:
        return int(self.pixel.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class PixelBranches(Branches):
    """The choices of the network, then one for each pixel: unchanged or changed."""

    columns: PixelColumns

    @cached_property
    def _choice(self) -> Indices:
        return np.concatenate(
            [self.entries.choice, self.phases + np.repeat(np.arange(self.columns.pixels), 2)]
        )

    @property
    def choice(self) -> Indices:
        return self._choice

    @property
    def count(self) -> int:
        return self.phases + self.columns.pixels

    def shares(self, values: Vector) -> Vector:
        columns = self.columns
        paid = np.bincount(columns.pixel, np.maximum(values[columns.paid], 0.0), columns.pixels)
        paid = np.minimum(paid, 1.0)
        pixels = np.column_stack([paid, 1.0 - paid]).ravel()
        return np.concatenate([super().shares(values), pixels])

    def fix(self, program: WarmProgram, picks: Picks) -> None:
        super().fix(program, picks)
        columns, picked = self.columns, picks[self.phases :]
        changed = (picked >= 0) & ((picked - len(self.entries.choice)) % 2 == 1)
        nothing = np.zeros(len(columns.pixel))
        program.set_column_bounds(columns.paid, nothing, np.where(picked < 0, 1.0, 0.0)[columns.pixel])
        program.set_column_bounds(columns.free, nothing, changed.astype(np.float64)[columns.pixel])
        count = np.array([float(changed.sum())])
        program.set_column_bounds(np.array([columns.fixed]), count, count)
