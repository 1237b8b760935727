"""The linear relaxation that our own branch and bound works on: no binaries, only gaps to be closed.

Every ReLU and every pooling window is a choice y = max(entries) with a gap column y − entry ≥ 0 for each
entry. A choice is made by fixing one gap to 0: only column bounds change from node to node, so that the dual
simplex goes on from the last basis.

Either the objective is the distance, L1 or L∞, or the pixels are confined to a box and the objective is how
far the case is from being reached. In L1, each choice may be limited by the lead that the winner at the
original keeps (see `l1_planes`), and each pixel enters as an increase and a decrease, most of which stay at 0
and need not be handed to HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Indices
from closecall.bounds import Bounds
from closecall.encoding.encode import hardest_row
from closecall.milp import Milp
from closecall.milp.builder import Entries, Expression, ProgramBuilder
from closecall.network import Network
from closecall.network.layers.planes import Lead
from closecall.question.domain import Domain
from closecall.question.goal import Case


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A linear program, the choices that are open in it, and the way back to pixels.

    Entry e belongs to choice `choice[e]`; it is the value of unit `unit[e]` of node `node[e]`, or the
    constant 0 where `unit[e]` is −1. Node `reader[e]` is the one that chooses.
    """

    program: Milp
    pixels: Expression
    entries: Entries
    node: Indices
    reader: Indices
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
    scores, readers = add_choices(builder, network, pixels, bounds, leads or {})
    builder.add_rows(scores.mapped(case.matrix), case.threshold, np.inf)
    objective = np.zeros(builder.width)
    objective[movement.distance.matrix.indices] = movement.distance.matrix.data
    return Relaxation(builder.build(objective), pixels, *joined(builder.choices, network, readers), lazy)


@dataclass(frozen=True, eq=False)
class LaidOut:
    """A network over a box, before it is said what is to be reached; the first columns are the shifts."""

    builder: ProgramBuilder
    pixels: Expression
    scores: Expression
    readers: list[int]


def lay_out(network: Network, domain: Domain, bounds: Bounds) -> LaidOut:
    """Pixels and choices, which take most of the time that a relaxation takes."""
    builder = ProgramBuilder()
    pixels = builder.add_columns("shift", -domain.down, domain.up) + Expression.constants(domain.centre)
    return LaidOut(builder, pixels, *add_choices(builder, network, pixels, bounds, {}))


def relax_box(network: Network, domain: Domain, case: Case, laid_out: LaidOut) -> tuple[Relaxation, float]:
    """The network over the box around a domain, and the objective above which the case is out of reach.

    The objective is how far the case's hardest row is from being reached.
    """
    builder, pixels = laid_out.builder.copied(), laid_out.pixels
    rows = laid_out.scores.mapped(case.matrix)
    builder.add_rows(rows, case.threshold, np.inf)
    entries, node, reader, choices = joined(builder.choices, network, laid_out.readers)
    hardest = hardest_row(network, domain, case)
    objective = np.zeros(builder.width)
    row = rows.taken(np.array([hardest]))
    objective[row.matrix.indices] = -row.matrix.data
    cutoff = float(row.constant[0] - case.threshold[hardest])
    nothing_lazy = np.zeros(0, dtype=np.int64)
    relaxation = Relaxation(builder.build(objective), pixels, entries, node, reader, choices, nothing_lazy)
    return relaxation, cutoff


def add_choices(
    builder: ProgramBuilder, network: Network, pixels: Expression, bounds: Bounds, leads: dict[int, Lead]
) -> tuple[Expression, list[int]]:
    """The scores as expressions, and the node of each block of choices."""
    values, readers = [pixels], []
    for index, node in enumerate(network.nodes, start=1):
        before = len(builder.choices)
        inputs = [values[source] for source in node.inputs]
        values.append(node.layer.encode_choices(builder, inputs, *bounds.of(node.inputs)))
        if len(builder.choices) > before:
            readers.append(index)
            if index in leads:
                limit_leads(builder, builder.choices[-1], leads[index])
    return values[-1], readers


def limit_leads(builder: ProgramBuilder, entries: Entries, lead: Lead) -> None:
    """y − leader ≤ offset + rise·d, where d are the first columns: rises, then falls."""
    leading = np.flatnonzero(entries.unit == lead.leader[entries.output])
    outputs = entries.output[leading]
    gap = Expression.of_columns(entries.gap[leading])
    rise = Expression(csr_array(lead.rise[outputs]), np.zeros(len(outputs)))
    builder.add_rows(gap - rise, -np.inf, lead.offset[outputs])


def joined(
    blocks: list[Entries], network: Network, readers: list[int]
) -> tuple[Entries, Indices, Indices, int]:
    """All blocks of entries as one, choices counted through, with the nodes they are of and read by."""
    offset = 0
    choice, node, reader = [], [], []
    for block, index in zip(blocks, readers, strict=True):
        choice.append(block.choice + offset)
        node.append(np.full(len(block.choice), network.nodes[index - 1].inputs[0]))
        reader.append(np.full(len(block.choice), index))
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
    return together, np.concatenate([*node, empty]), np.concatenate([*reader, empty]), offset
