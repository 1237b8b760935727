"""Cuts of ReLUs over the ranges of what they read: which of them an LP's point lies above, and their rows.

The cut that is tightest at a point takes the terms in the order in which they have come along their ranges:
those before the sum rises above 0 are early, the one with which it does crosses, the others are late.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Indices, Vector
from closecall.milp.builder import Expression
from closecall.proofs.closecheck import Affine, Checker, Cut, Refused
from closecall.proofs.lines import Line

WORTH_A_CUT = 1e-4  # of a unit's range: how far its value must lie above a cut


@dataclass(frozen=True, eq=False)
class Sum:
    """The open unit at a place, and the sum a = b + Σ w·x that it reads: nodes, units, weights and ranges."""

    place: int
    source: Indices
    unit: Indices
    weight: Vector
    low: Vector
    high: Vector
    bias: float


class Cutting:
    """The open ReLUs of a network, the values of its nodes as columns of a program, and the cuts so far."""

    def __init__(self, checker: Checker, values: list[Expression], outputs: list[Expression]) -> None:
        self.checker, self.values, self.outputs = checker, values, outputs
        found = (self.sum_of(place) for place in range(len(checker.order)))
        self.sums = [each for each in found if each is not None]
        self.sources = sorted({int(source) for each in self.sums for source in each.source})

    def sum_of(self, place: int) -> Sum | None:
        checker, (index, unit) = self.checker, self.checker.order[place]
        choice, node = checker.choice(index, unit), checker.nodes[checker.nodes[index].inputs[0]]
        if not isinstance(node, Affine) or choice.entries[1:] != [-1]:
            return None
        entry = choice.entries[0]
        terms = [
            (
                s,
                j,
                float(Fraction(w, 1 << more)),
                *(float_of(end[s][j], checker.exponents[s]) for end in ends),
            )
            for ends in [(checker.low, checker.high)]
            for s, (rows, more) in zip(node.inputs, node.weights, strict=True)
            for j, w in zip(*rows[entry], strict=True)
        ]
        source, units, weight, low, high = (np.array(column) for column in zip(*terms, strict=True))
        bias = float(Fraction(node.bias[entry], 1 << node.bias_exponent))
        return Sum(place, source, units, weight, low, high, bias)

    def cuts_at(self, point: Vector) -> list[Line]:
        """The lines of the cuts that the point violates."""
        values = {source: self.values[source].at(point) for source in self.sources}
        return [line for each in self.sums if (line := self.cut_of(each, values, point)) is not None]

    def cut_of(self, each: Sum, values: dict[int, Vector], point: Vector) -> Line | None:
        here = np.empty(len(each.weight))
        for source in self.sources:
            mine = each.source == source
            here[mine] = values[source][each.unit[mine]]
        a = each.bias + float(each.weight @ here)
        sign = -1.0 if a > 0 else 1.0
        weight, width = sign * each.weight, each.high - each.low
        share = np.divide(here - each.low, width, out=np.zeros_like(here), where=width > 0)
        share = np.where(weight > 0, share, 1.0 - share)
        span = np.abs(weight) * width
        order = np.argsort(-share, kind="stable")
        sums = sign * each.bias + float(np.minimum(weight * each.low, weight * each.high).sum())
        reached = sums + np.cumsum(span[order])
        if sums > 0 or reached[-1] <= 0:
            return None
        place = int(np.argmax(reached > 0))
        crossing, late = int(order[place]), order[place + 1 :]
        most = reached[place] * share[crossing] + float(span[late] @ share[late])
        output = float(self.outputs[each.place].at(point)[0])
        if output - max(a, 0.0) - most < WORTH_A_CUT * float(span.sum()):
            return None
        beside = 1 if sign > 0 else 0
        return {"cut": each.place, "beside": beside, "crossing": crossing, "late": sorted(late.tolist())}

    def row_of(self, line: Line) -> tuple[csr_array, float] | None:
        """A cut as a row of the program and its upper side, once the checker has taken it."""
        try:
            self.checker.add_cut(line)
        except Refused:
            return None
        cut: Cut = self.checker.cuts.pop()
        total = self.outputs[line["cut"]]
        if cut.entry >= 0:
            source = self.checker.nodes[cut.key[0]].inputs[0]
            total = total - self.values[source].taken(np.array([cut.entry]))
        for source, terms in cut.terms.items():
            units = np.array([j for j, _ in terms])
            factors = np.array([[float(Fraction(c, 1 << cut.exponent)) for _, c in terms]])
            total = total - self.values[source].taken(units).mapped(factors)
        return total.matrix, float(cut.constant) - float(total.constant[0])


def float_of(value: int, exponent: int) -> float:
    return float(Fraction(value, 1 << exponent))
