"""The linear relaxation that our own branch and bound works on: no binaries, only gaps to be closed.

Every ReLU and every pooling window is a choice y = max(entries) with a gap column y − entry ≥ 0 for each
entry. A choice is made by fixing one gap to 0: only column bounds change from node to node, so that the dual
simplex goes on from the last basis.

The objective is the distance, L1 or L∞. In L1, each choice may be limited by the lead that the winner at the
original keeps (see `anchored`), and each pixel enters as an increase and a decrease, most of which
stay at 0 and need not be handed to HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.bounds import Bounds
from closecall.domain import Domain
from closecall.layers.planes import Lead
from closecall.milp import Milp
from closecall.network import Network
from closecall.program import Entries, Expression, Indices, ProgramBuilder
from closecall.query import Case

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A linear program, the choices that are open in it, and the way back to pixels.

    Entry e belongs to choice `choice[e]`; it is the value of unit `unit[e]` of node `node[e]`, or the
    constant 0 where `unit[e]` is −1.
    """

    program: Milp
    pixels: Expression
    entries: Entries
    node: Indices
    choices: int
    lazy: Indices  # columns that are 0 in most solutions

    @cached_property
    def members(self) -> tuple[Indices, ...]:
        """The entries of each choice."""
        order = np.argsort(self.entries.choice, kind="stable")
        starts = np.flatnonzero(np.diff(self.entries.choice[order], prepend=-1))
        return tuple(np.split(order, starts[1:])) if len(order) else ()


def relax(
    network: Network, domain: Domain, case: Case, bounds: Bounds, leads: dict[int, Lead] | None = None
) -> Relaxation:
    """The network over a domain of norm L1 or L∞, with the case to be reached; leads are for L1."""
    builder = ProgramBuilder()
    movement = domain.norm.encode(builder, domain.down, domain.up)
    if movement.distance is None:
        raise ValueError(f"{domain.norm.name} has no linear distance")
    lazy = np.arange(builder.width if domain.norm.name == "l1" else 0)
    builder.add_rows(movement.distance, -np.inf, domain.radius)
    pixels = movement.shifts + Expression.constants(domain.centre)
    values, node_of = [pixels], []
    for index, node in enumerate(network.nodes, start=1):
        before = len(builder.choices)
        inputs = [values[source] for source in node.inputs]
        values.append(node.layer.encode_choices(builder, inputs, *bounds.of(node.inputs)))
        node_of += [node.inputs[0]] * (len(builder.choices) - before)
        if leads and len(builder.choices) > before:
            limit_leads(builder, builder.choices[-1], leads[index])
    builder.add_rows(values[-1].mapped(case.matrix), case.threshold, np.inf)
    objective = np.zeros(builder.width)
    objective[movement.distance.matrix.indices] = movement.distance.matrix.data
    entries, nodes, count = joined(builder.choices, node_of)
    return Relaxation(builder.build(objective), pixels, entries, nodes, count, lazy)


def limit_leads(builder: ProgramBuilder, entries: Entries, lead: Lead) -> None:
    """y − leader ≤ offset + rise·d, where d are the first columns: rises, then falls."""
    leading = np.flatnonzero(entries.unit == lead.leader[entries.output])
    outputs = entries.output[leading]
    gap = Expression.of_columns(entries.gap[leading])
    rise = Expression(csr_array(lead.rise[outputs]), np.zeros(len(outputs)))
    builder.add_rows(gap - rise, -np.inf, lead.offset[outputs])


def joined(blocks: list[Entries], nodes: list[int]) -> tuple[Entries, Indices, int]:
    """All blocks of entries as one, choices counted through."""
    offset = 0
    choice, node = [], []
    for block, source in zip(blocks, nodes, strict=True):
        choice.append(block.choice + offset)
        node.append(np.full(len(block.choice), source))
        offset = int(choice[-1].max()) + 1
    empty = np.zeros(0, dtype=np.int64)
    together = Entries(
        choice=np.concatenate([*choice, empty]),
        gap=np.concatenate([*(block.gap for block in blocks), empty]),
        most=np.concatenate([*(block.most for block in blocks), np.zeros(0)]),
        whole=np.concatenate([*(block.whole for block in blocks), empty]),
        unit=np.concatenate([*(block.unit for block in blocks), empty]),
        output=np.concatenate([*(block.output for block in blocks), empty]),
    )
    return together, np.concatenate([*node, empty]), offset
