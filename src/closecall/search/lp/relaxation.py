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

from closecall.arrays import OUTWARD, Indices, Vector
from closecall.bounds import Bounds
from closecall.encoding.encode import hardest_row
from closecall.milp import Milp
from closecall.milp.builder import Entries, Expression, ProgramBuilder
from closecall.network import Network
from closecall.network.layers.planes import Lead
from closecall.question.domain import Domain
from closecall.question.goal import Case
from closecall.question.norms import total
from closecall.search.lp.branches import Branches, PixelBranches, PixelColumns
from closecall.search.lp.readings import Tangents
from closecall.solvers.incremental_lp import WarmProgram

NO_SHARE = 1e-9  # of a pixel's way, as LPs round it: none


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
    tangents: Tangents | None = None  # in L2: of the distance that the first columns take
    pixel_columns: PixelColumns | None = None  # in L0

    def image(self, values: Vector) -> Vector:
        """The image that a point stands for."""
        if self.pixel_columns is not None:
            return self.pixels.at(np.where(values > NO_SHARE, values, 0.0))
        if self.tangents is None:
            return self.pixels.at(values)
        return np.asarray(self.tangents.domain.centre + values[self.program.columns :])

    def warm(self) -> WarmProgram:
        """The program ready to be solved again and again, with all tangents placed so far."""
        program = WarmProgram(self.program, lazy=self.lazy)
        self.sharpen(program)
        return program

    def sharpen(self, program: WarmProgram) -> None:
        """Add the tangents that were placed since a program was made, or last sharpened."""
        first = program.rows - self.program.rows
        if self.tangents is not None and len(self.tangents.placed) > first:
            rows, heights = self.tangents.rows(first, program.columns)
            program.add_rows(rows, np.full(len(heights), -np.inf), heights)

    @cached_property
    def branches(self) -> Branches:
        if self.pixel_columns is None:
            return Branches(self.entries, self.choices)
        return PixelBranches(self.entries, self.choices, self.pixel_columns)


def relax_by_readings(case: Case, bounds: Bounds, tangents: Tangents) -> Relaxation:
    """The network over a domain of norm L2, with the case to be reached: its readings and the distance."""
    readings, domain = tangents.readings, tangents.domain
    builder = ProgramBuilder()
    known = readings.bounds(domain, bounds)
    start = readings.start
    pixels = builder.add_columns("reading", known.lower[0] - start, known.upper[0] - start)
    pixels = pixels + Expression.constants(start)
    farthest = float(np.linalg.norm(np.maximum(domain.down, domain.up))) * (1 + OUTWARD)
    builder.add_columns("distance", np.zeros(1), np.array([min(domain.radius, farthest)]))
    scores, readers = add_choices(builder, readings.network, pixels, known, {})
    builder.add_rows(scores.mapped(case.matrix), case.threshold, np.inf)
    objective = np.zeros(builder.width)
    objective[len(pixels)] = 1.0
    choices = joined(builder.choices, readings.network, readers)
    nothing_lazy = np.zeros(0, dtype=np.int64)
    return Relaxation(builder.build(objective), pixels, *choices, nothing_lazy, tangents)


def relax_counting(
    network: Network, domain: Domain, case: Case, bounds: Bounds, leads: dict[int, Lead]
) -> Relaxation:
    """The network over a domain of norm L0, with the case to be reached: each part of a way pays its share.

    A pixel that moves by a share z of its way counts z, up or down: no more than the 1 that it counts in L0.
    """
    builder = ProgramBuilder()
    can_rise, can_fall = np.flatnonzero(domain.up > 0), np.flatnonzero(domain.down > 0)
    ways = len(can_rise) + len(can_fall)
    paid = builder.add_columns("share", np.zeros(ways), np.ones(ways))
    free = builder.add_columns("free share", np.zeros(ways), np.zeros(ways))
    fixed = builder.add_columns("count", np.zeros(1), np.zeros(1))
    rooms = np.concatenate([domain.up[can_rise], -domain.down[can_fall]])
    pixel = np.concatenate([can_rise, can_fall])
    spread = csr_array((rooms, (pixel, np.arange(ways))), shape=(len(domain.up), ways))
    pixels = (paid + free).mapped(spread) + Expression.constants(domain.centre)
    count = total(paid) + fixed
    builder.add_rows(count, -np.inf, domain.radius)
    twice = {
        node: Lead(lead.leader, lead.offset, np.hstack([lead.rise, lead.rise]))
        for node, lead in leads.items()
    }
    scores, readers = add_choices(builder, network, pixels, bounds, twice)
    builder.add_rows(scores.mapped(case.matrix), case.threshold, np.inf)
    objective = np.zeros(builder.width)
    objective[:ways], objective[2 * ways] = 1.0, 1.0
    columns = PixelColumns(
        np.unique(pixel, return_inverse=True)[1], np.arange(ways), ways + np.arange(ways), 2 * ways
    )
    choices = joined(builder.choices, network, readers)
    return Relaxation(builder.build(objective), pixels, *choices, np.arange(2 * ways), pixel_columns=columns)


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
