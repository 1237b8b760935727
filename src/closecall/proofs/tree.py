"""The tree of a proof: where a leaf does not hold, a choice is split, until all leaves hold exactly."""

from __future__ import annotations

import base64
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from closecall.arrays import Vector
from closecall.clock import out_of_time
from closecall.milp.builder import widened
from closecall.proofs.closecheck import Checker, Refused
from closecall.proofs.cutting import Cutting
from closecall.proofs.lines import Line
from closecall.proofs.program import Key, Laid, Multipliers
from closecall.solvers.incremental_lp import WarmProgram

log = logging.getLogger(__name__)

# How finely multipliers are rounded, in turn: the kind of a share's number, its bits, and bits of the others.
FINENESS = (("B", 7, 9), ("H", 15, 18), ("I", 31, 34))
MADE = 1e-9  # a choice whose smallest gap is below this is made


ROUNDS_AT_FIRST, ROUNDS = 12, 3  # of cuts, at the root of a tree and further down
WORTH_A_ROUND = 0.02  # of what is left: a round that gains less is the last one
DUST = 1e-9  # of the larger: a multiplier that is none

# The place of a choice, one of its entries, and multipliers of its plane, its lead and its winner above it.
Added = tuple[int, int, float, float, float]


class NotProvenError(Exception):
    """Why no proof could be made."""


@dataclass
class Split:
    """A choice on the path to a leaf, which of its entries is looked at, and whether that was written."""

    key: Key
    place: int
    winner: int
    written: bool = False


class TreeOfCase:
    """The tree of one case: depth first, each leaf checked exactly before it is written."""

    def __init__(
        self, checker: Checker, case: int, laid: Laid, write: Callable[[Line], None], until: float
    ) -> None:
        self.checker, self.case, self.laid, self.write, self.until = checker, case, laid, write, until
        self.program = WarmProgram(laid.program, lazy=laid.lazy)
        self.path: list[Split] = []
        outputs = [laid.values[index].taken(np.array([unit])) for index, unit in laid.order]
        self.cutting = None if checker.has_leads else Cutting(checker, laid.values, outputs)
        self.cuts: list[Line] = []
        self.numbers: dict[int, int] = {}  # of the cuts that were written, in the file
        self.rows = self.program.rows

    def prove(self) -> None:
        while True:
            if out_of_time(self.until):
                raise NotProvenError("the time was over before the proof was whole")
            found = self.solved_with_cuts()
            if self.close(found):
                if not self.go_on():
                    return
                continue
            self.path.append(Split(*self.chosen(found), 0))

    def solved_with_cuts(self) -> Multipliers:
        """The most that the case can be reached, with cuts for as long as they help."""
        found = self.solve()
        for _ in range(ROUNDS if self.path else ROUNDS_AT_FIRST):
            before = found.reached
            if self.cutting is None or found.point is None or before < 0 or not self.add_cuts(found.point):
                break
            found = self.solve()
            if found.reached > (1 - WORTH_A_ROUND) * before:
                break
        return found

    def add_cuts(self, point: Vector) -> bool:
        """Add the cuts that a point violates."""
        if self.cutting is None:
            return False
        some = [(line, row) for line in self.cutting.cuts_at(point) if (row := self.cutting.row_of(line))]
        if some:
            columns = self.program.columns
            rows = csr_array(vstack([widened(matrix, columns) for _, (matrix, _) in some], format="csr"))
            upper = np.array([most for _, (_, most) in some])
            self.program.add_rows(rows, np.full(len(some), -np.inf), upper)
            self.cuts += [line for line, _ in some]
        return bool(some)

    def solve(self) -> Multipliers:
        """The most that the case can be reached on the path, and why it is no more."""
        laid, program = self.laid, self.program
        upper = laid.program.upper[laid.gaps].copy()
        for split in self.path:
            upper[laid.first[split.place] + split.winner] = 0.0
        program.set_column_bounds(laid.gaps, np.zeros(len(upper)), upper)
        status, value, values = program.solve()
        duals = program.farkas() if status == "infeasible" else program.duals()
        if duals is None:
            duals = np.zeros(program.rows)
        if status not in ("optimal", "infeasible"):
            raise NotProvenError(f"HiGHS ended a linear program as {status}")
        gaps = np.zeros(len(laid.gaps)) if values is None else values[laid.gaps]
        leads = np.maximum(-duals[laid.lead], 0.0) if (laid.lead >= 0).all() else np.zeros(len(laid.lead))
        return Multipliers(
            -math.inf if status == "infeasible" else -value,
            np.maximum(duals[laid.equal], 0.0), np.maximum(-duals[laid.plane], 0.0),
            leads, np.maximum(duals[laid.case], 0.0), gaps, np.maximum(-duals[self.rows :], 0.0), values,
        )  # fmt: skip

    def close(self, found: Multipliers) -> bool:
        """Whether multipliers close the leaf when they are rounded; then it is written."""
        if found.reached >= 0:
            return False
        for kind, bits, more in FINENESS:
            leaf = self.leaf_of(found, kind, bits, more)
            if not self.holds(leaf):
                continue
            while self.path and self.last_is_in_vain(leaf):
                self.path.pop()
            self.write_leaf(leaf)
            return True
        return False

    def holds(self, leaf: Line, depth: int | None = None) -> bool:
        """Whether a leaf holds exactly, with so many of the splits."""
        checker, path = self.checker, self.path[:depth]
        try:
            checker.leaf(leaf, checker.cases[self.case], [(split.key, split.winner) for split in path])
        except Refused as why:
            log.debug("%s", why)
            return False
        return True

    def last_is_in_vain(self, leaf: Line) -> bool:
        """Whether the leaf holds without its last split, of which no child is written."""
        last = self.path[-1]
        needed = any(place == last.place and won for place, _, _, _, won in leaf["added"])
        return not (last.winner or last.written or needed) and self.holds(leaf, len(self.path) - 1)

    def write_leaf(self, leaf: Line) -> None:
        for split in self.path:
            if not split.written:
                self.write({"split": list(split.key)})
                split.written = True
        self.write(leaf)

    def written(self, number: int) -> int:
        """The number of a cut in the file, to which it is written when it is first needed."""
        if number not in self.numbers:
            self.numbers[number] = len(self.checker.cuts)
            self.checker.add_cut(self.cuts[number])
            self.write(self.cuts[number])
        return self.numbers[number]

    def leaf_of(self, found: Multipliers, kind: str, bits: int, more: int) -> Line:
        """Multipliers as a leaf of the file."""
        laid, full = self.laid, 1 << bits
        winners = {split.place: split.winner for split in self.path}
        above = found.planes + found.leads
        shares: list[int] = []
        added: list[Added] = []
        for place in range(len(laid.order)):
            mine = found.entries[laid.first[place] : laid.first[place + 1]]
            led = float(found.leads[place] / above[place]) if above[place] > 0 else 0.0
            if place in winners:
                shares += [full * (j == winners[place]) for j in range(len(mine) - 1)]
                added += added_to_winner(place, winners[place], mine, float(above[place]), led)
                continue
            added += added_to_open(place, mine, float(above[place]), led)
            if above[place] > mine.sum():
                shares += [round(full * led)] + [0] * (len(mine) - 2)
            else:
                shares += rounded_shares(mine, full)
        weights, unit = self.weights_of(found, more)
        whole, scale = whole_numbers(added, unit, more, max(found.cuts, default=0.0))
        amounts = [round(math.ldexp(float(amount) / unit, scale)) for amount in found.cuts]
        cuts = [[self.written(number), amount] for number, amount in enumerate(amounts) if amount]
        text = base64.b64encode(np.array(shares, dtype={"B": "<u1", "H": "<u2", "I": "<u4"}[kind]).tobytes())
        return {
            "leaf": weights,
            "kind": kind,
            "shares": text.decode(),
            "added": whole,
            "scale": scale,
            "cuts": cuts,
        }

    def weights_of(self, found: Multipliers, bits: int) -> tuple[list[int], float]:
        """The weights of the case's rows as whole numbers, and the multiplier that 1 stands for."""
        total, count = float(found.rows.sum()), len(found.rows)
        if total <= 0 or math.isinf(found.reached):
            return [0] * count, 1.0
        if count == 1:
            return [1], total
        return [round(float(row) / total * 2**bits) for row in found.rows], total / 2**bits

    def go_on(self) -> bool:
        """Go to the next child of the deepest split that has one; False at the end of the tree."""
        while self.path:
            last = self.path[-1]
            last.winner += 1
            if last.winner < int(self.laid.first[last.place + 1] - self.laid.first[last.place]):
                return True
            self.path.pop()
        return False

    def chosen(self, found: Multipliers) -> tuple[Key, int]:
        """The open choice whose plane lies furthest above it, weighed by its multiplier."""
        laid = self.laid
        missed = np.minimum.reduceat(found.gaps, laid.first[:-1]) if len(laid.order) else np.zeros(0)
        above = found.planes + found.leads
        for line, multiplier in zip(self.cuts, found.cuts, strict=True):
            above[line["cut"]] += multiplier
        worth = above * missed
        taken = [split.place for split in self.path]
        worth[taken], missed[taken] = -1.0, -1.0
        if not len(worth) or missed.max() <= MADE:
            raise NotProvenError(
                f"an image reaches the case within the radius by {found.reached:g}, or nearly"
            )
        place = int(worth.argmax()) if worth.max() > 0 else int(missed.argmax())
        return laid.order[place], place


def added_to_winner(place: int, winner: int, entries: Vector, above: float, led: float) -> list[Added]:
    """What a split unit's rivals, plane and lead are worth."""
    found: list[Added] = [
        (place, j, 0.0, 0.0, float(won)) for j, won in enumerate(entries) if j != winner and won > 0
    ]
    if above > 0:
        found.append((place, winner, above * (1 - led), above * led, 0.0))
    return found


def added_to_open(place: int, entries: Vector, above: float, led: float) -> list[Added]:
    """Where both a plane and an entry of a unit count, they bound the entry by the plane."""
    total = float(entries.sum())
    both = min(above, total)
    if both <= DUST * max(above, total):
        return []
    parts = entries * (both / total)
    return [
        (place, j, float(part) * (1 - led), float(part) * led, 0.0)
        for j, part in enumerate(parts)
        if part > 0
    ]


def whole_numbers(added: list[Added], unit: float, bits: int, also: float) -> tuple[list[list[int]], int]:
    """What is added in whole numbers of one exponent, the largest of so many bits."""
    largest = max([also / unit, *(amount / unit for each in added for amount in each[2:])])
    scale = max(0, bits - math.frexp(largest)[1]) if largest > 0 else 0
    listed = [
        [*each[:2], *(round(math.ldexp(amount / unit, scale)) for amount in each[2:])] for each in added
    ]
    return [each for each in listed if any(each[2:])], scale


def rounded_shares(multipliers: Vector, full: int) -> list[int]:
    """The share of each entry but the last."""
    total = float(multipliers.sum())
    if total <= 0:
        return [0] * (len(multipliers) - 1)
    ends = np.round(np.cumsum(multipliers) / total * full).astype(np.int64)
    shares: list[Any] = np.diff(ends, prepend=0).tolist()
    return shares[:-1]
