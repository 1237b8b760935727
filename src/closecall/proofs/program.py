"""The linear program whose multipliers make the leaves of a proof, from the planes that a checker derives.

Columns are rises and falls of the pixels, for each open unit its value y and a gap y − e ≥ 0 for each of its
entries, and t, by how much the case is reached. The program maximises t; where it stays below 0 nothing of
the domain reaches the case, and its multipliers, rounded to a few bits, say so to the checker, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closecall.arrays import Indices, Matrix, Vector
from closecall.milp import Milp
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.network import Network
from closecall.network.layers import Affine
from closecall.proofs.closecheck import SLOPE_BITS, Checker, Choice

Key = tuple[int, int]

# The dual simplex wants bounds on all columns, leaves have no multipliers for them: they lie far off.
ROOM = 2.0


@dataclass(frozen=True, eq=False)
class Laid:
    """A program over the whole domain, and where the rows and columns of each open unit are."""

    program: Milp
    lazy: Indices
    order: list[Key]
    first: Indices  # the first entry of each open unit, and one more for the end
    gaps: Indices  # a column for each entry
    equal: Indices  # the row y − e − gap = 0 of each entry
    plane: Indices  # the row of each unit's plane
    values: list[Expression]  # of every node
    lead: Indices  # and of its lead; −1 without one
    case: Indices


@dataclass(frozen=True, eq=False)
class Multipliers:
    """What a program says of a part of the domain, by entry and by open unit."""

    reached: float
    entries: Vector
    planes: Vector
    leads: Vector
    rows: Vector
    gaps: Vector  # at the point where t is largest
    cuts: Vector
    point: Vector | None


def lay_out(checker: Checker, network: Network, case: int) -> Laid:
    """The program of a case."""
    builder, domain = ProgramBuilder(), checker.domain
    unit = 2.0**-domain.exponent
    up, down, centre = (unit_vector(ends, unit) for ends in (domain.up, domain.down, domain.centre))
    pixels, lazy = add_pixels(builder, checker, up, down)
    values = [pixels + Expression.constants(centre)]
    blocks: list[dict[str, NDArray[np.int64]]] = []
    rows = 1 if len(lazy) else 0
    for index, node in enumerate(network.nodes, start=1):
        if isinstance(node.layer, Affine):
            total = Expression.constants(node.layer.bias)
            for weight, source in zip(node.layer.weights, node.inputs, strict=True):
                total = total + values[source].mapped(weight)
            values.append(total)
            continue
        block, value, rows = add_choices(builder, checker, index, values[node.inputs[0]], rows)
        values.append(value)
        blocks.append(block)
    matrix, least = case_matrix(checker, case)
    most = ROOM * (1.0 + float(np.abs(least).max() + (np.abs(matrix) @ largest_scores(checker)).max()))
    t = builder.add_columns("t", np.array([-most]), np.array([most]))
    each = t.taken(np.zeros(len(least), dtype=np.int64))
    builder.add_rows(values[-1].mapped(matrix) - each, least, np.inf)
    objective = np.zeros(builder.width)
    objective[-1] = -1.0
    joined = {
        name: np.concatenate([np.zeros(0, dtype=np.int64), *(block[name] for block in blocks)])
        for name in ("sizes", "gaps", "equal", "plane", "lead")
    }
    first = np.concatenate([[0], np.cumsum(joined["sizes"])]).astype(np.int64)
    case_rows = np.arange(rows, rows + len(least))
    return Laid(
        builder.build(objective), lazy, list(checker.order), first,
        joined["gaps"], joined["equal"], joined["plane"], values, joined["lead"], case_rows,
    )  # fmt: skip


def largest_scores(checker: Checker) -> Vector:
    ends = zip(checker.low[-1], checker.high[-1], strict=True)
    unit = Fraction(1, 1 << checker.exponents[-1])
    return np.array([float(max(-low, high) * unit) for low, high in ends])


def unit_vector(values: list[int], unit: float) -> Vector:
    return np.array([float(Fraction(value) * Fraction(unit)) for value in values])


def add_pixels(
    builder: ProgramBuilder, checker: Checker, up: Vector, down: Vector
) -> tuple[Expression, Indices]:
    """The shifts of the pixels; in L1 within a ball as rises and falls, most of which stay at 0."""
    if not checker.has_leads:
        return builder.add_columns("shift", -down, up), np.zeros(0, dtype=np.int64)
    rise = builder.add_columns("rise", np.zeros(len(up)), up)
    fall = builder.add_columns("fall", np.zeros(len(down)), down)
    both = np.arange(2 * len(up))
    total = Expression.of_columns(both).mapped(csr_array(np.ones((1, len(both)))))
    builder.add_rows(total, -np.inf, float(checker.domain.radius or 0))
    return rise - fall, both


def add_choices(
    builder: ProgramBuilder, checker: Checker, index: int, read: Expression, rows: int
) -> tuple[dict[str, NDArray[np.int64]], Expression, int]:
    """The units of a choosing node: decided ones are an entry, open ones columns and rows."""
    units = checker.units[index]
    decided = [(i, entry) for i, entry in enumerate(units) if isinstance(entry, int) and entry >= 0]
    places = np.array([i for i, _ in decided], dtype=np.int64)
    entries = np.array([entry for _, entry in decided], dtype=np.int64)
    blocks = [(places, read.taken(entries))] if decided else []
    choices = [(i, choice) for i, choice in enumerate(units) if isinstance(choice, Choice)]
    sizes = np.array([len(choice.entries) for _, choice in choices], dtype=np.int64)
    owner = np.repeat(np.arange(len(choices)), sizes)
    flat = np.array([entry for _, choice in choices for entry in choice.entries], dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    if not choices:
        empty = dict.fromkeys(("sizes", "gaps", "equal", "plane", "lead"), none)
        return empty, Expression.scattered(len(units), blocks), rows
    unit = Fraction(1, 1 << checker.exponents[checker.nodes[index].inputs[0]])
    low = np.array([float(max(choice.low) * unit) for _, choice in choices])
    high = np.array([float(max(choice.high) * unit) for _, choice in choices])
    deep = np.array([float(min(choice.low) * unit) for _, choice in choices])
    y = builder.add_columns("y", 2 * low - high, 2 * high - low)
    gap = builder.add_columns("gap", np.zeros(len(flat)), 2 * (high - deep)[owner])
    builder.add_rows(y.taken(owner) - entries_of(read, flat) - gap, 0.0, 0.0)
    tops = np.array([choice.top for _, choice in choices], dtype=np.int64)
    slopes = np.array([choice.slope / 2**SLOPE_BITS for _, choice in choices])
    scale = Fraction(1, 1 << SLOPE_BITS + checker.exponents[checker.nodes[index].inputs[0]])
    heights = np.array([float(choice.height * scale) for _, choice in choices])
    builder.add_rows(y - entries_of(read, tops).scaled(slopes), -np.inf, heights)
    block = {
        "sizes": sizes,
        "gaps": gap.matrix.indices.astype(np.int64),
        "equal": rows + np.arange(len(flat)),
        "plane": rows + len(flat) + np.arange(len(choices)),
        "lead": np.full(len(choices), -1),
    }
    rows += len(flat) + len(choices)
    if checker.has_leads:
        leaders = np.array([choice.entries[choice.leader] for _, choice in choices], dtype=np.int64)
        rises = Expression(
            rises_of([choice for _, choice in choices], checker.sizes[0]), np.zeros(len(choices))
        )
        builder.add_rows(y - entries_of(read, leaders) - rises, -np.inf, 0.0)
        block["lead"] = rows + np.arange(len(choices))
        rows += len(choices)
    blocks.append((np.array([i for i, _ in choices], dtype=np.int64), y))
    return block, Expression.scattered(len(units), blocks), rows


def entries_of(read: Expression, entries: Indices) -> Expression:
    """Entries of a node, with the constant 0 for −1."""
    real = np.flatnonzero(entries >= 0)
    return Expression.scattered(len(entries), [(real, read.taken(entries[real]))])


def rises_of(choices: list[Choice], pixels: int) -> csr_array:
    """Rises of the leads over the columns of rises, then of falls."""
    rows = [row for row, choice in enumerate(choices) for _ in choice.rises]
    ways = np.array([way for choice in choices for way, _ in choice.rises], dtype=np.int64)
    sizes = [
        float(Fraction(rise, 1 << choice.rise_exponent)) for choice in choices for _, rise in choice.rises
    ]
    columns = ways // 2 + pixels * (ways % 2)
    return csr_array((sizes, (rows, columns)), shape=(len(choices), 2 * pixels))


def case_matrix(checker: Checker, case: int) -> tuple[Matrix, Vector]:
    rows = checker.cases[case]
    matrix = np.zeros((len(rows), checker.sizes[-1]))
    for place, (row, _) in enumerate(rows):
        for score, factor in row.items():
            matrix[place, score] = float(factor)
    return matrix, np.array([float(least) for _, least in rows])
