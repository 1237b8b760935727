"""The linear relaxation that our own branch and bound works on: no binaries, only gaps to be closed.

Every ReLU and every pooling window is a choice y = max(entries) with a gap column y − entry ≥ 0 for each
entry. A choice is made by fixing one gap to 0: only column bounds change from node to node, so that the dual
simplex goes on from the last basis.

`by distance` (L1): minimise the distance over the images that reach the case.
`by slack` (L∞): minimise −slack of the case within the ball; nothing reaches the case when it stays above 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from closecall.bounds import Bounds
from closecall.domain import Domain
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
    by_distance: bool
    limit_row: int  # the row distance ≤ radius, or −1
    slack_column: int  # the column of the slack, or −1
    shift_columns: Indices  # the pixels' columns when the ball is kept by their bounds

    def members(self, choice: int) -> Indices:
        return np.flatnonzero(self.entries.choice == choice)


def relax(network: Network, domain: Domain, case: Case, bounds: Bounds) -> Relaxation:
    """The network over the domain, with the case to be reached."""
    builder = ProgramBuilder()
    by_distance = domain.norm.name == "l1"
    limit_row, slack_column, shift_columns = -1, -1, np.zeros(0, dtype=np.int64)
    if by_distance:
        movement = domain.norm.encode(builder, domain.down, domain.up)
        shifts = movement.shifts
        distance = movement.distance
        if distance is None:
            raise ValueError(f"{domain.norm.name} has no linear distance")
        builder.add_rows(distance, -np.inf, domain.radius)
        limit_row = 0
    else:
        shifts = builder.add_columns("shift", -domain.down, domain.up)
        shift_columns = shifts.matrix.indices.astype(np.int64)
    pixels = shifts + Expression.constants(domain.centre)
    values, node_of = [pixels], []
    for node in network.nodes:
        before = len(builder.choices)
        inputs = [values[source] for source in node.inputs]
        values.append(node.layer.encode_choices(builder, inputs, *bounds.of(node.inputs)))
        node_of += [node.inputs[0]] * (len(builder.choices) - before)
    reached = values[-1].mapped(case.matrix)
    if by_distance:
        builder.add_rows(reached, case.threshold, np.inf)
        objective = np.zeros(builder.width)
        objective[distance.matrix.indices] = distance.matrix.data
    else:
        slack = builder.add_columns("slack", np.array([-SLACK_RANGE]), np.array([SLACK_RANGE]))
        builder.add_rows(
            reached - slack.taken(np.zeros(len(reached), dtype=np.int64)), case.threshold, np.inf
        )
        slack_column = builder.width - 1
        objective = np.zeros(builder.width)
        objective[slack_column] = -1.0
    entries, nodes, count = joined(builder.choices, node_of)
    return Relaxation(
        builder.build(objective),
        pixels,
        entries,
        nodes,
        count,
        by_distance,
        limit_row,
        slack_column,
        shift_columns,
    )


# Far above any difference of scores that bounds leave open; a finite box keeps dual bounds finite.
SLACK_RANGE = 1e6


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
    )
    return together, np.concatenate([*node, empty]), offset
