"""Network + domain + goal + bounds → MILP, in the paper's form or the tight one.

Columns: the shifts of the pixels, then for each ReLU unit its value and a binary, for each pooling
window its value and a binary for each entry that may win. Rows: see each layer's docstring; at the
end one of the goal's cases, chosen by a binary when there are several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from closecall.arrays import Vector
from closecall.bounds import Bounds, maximise
from closecall.errors import QueryError
from closecall.milp import Milp
from closecall.milp.builder import Expression, ProgramBuilder, coefficients
from closecall.network import Network
from closecall.question.checks import check_number
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal
from closecall.question.levels import places
from closecall.question.norms import Movement, Norm

Form = Literal["paper", "tight"]

NEARLY_WHOLE = 1e-3  # of a step: what the rounding of a radius may take from the last place within it


@dataclass(frozen=True)
class Costs:
    """The paper's extra costs, for `nearest` and `ideal`.

    `unit` is paid for the value of each unit, `inactive` for each unit that is off, and `wanted_class` is the
    reward for the wanted class's score.
    """

    unit: float = 0.0
    inactive: float = 0.0
    wanted_class: float = 0.0

    def __post_init__(self) -> None:
        for name in ("unit", "inactive", "wanted_class"):
            check_number(f"cost {name}", getattr(self, name))
        if not np.isfinite([self.unit, self.inactive, self.wanted_class]).all():
            raise QueryError("the costs must be finite numbers: leave out the one that is not.")

    @property
    def any(self) -> bool:
        return any((self.unit, self.inactive, self.wanted_class))


def check_costs(costs: object) -> None:
    """Refuse costs that are given in another way."""
    if costs is not None and not isinstance(costs, Costs):
        raise QueryError(
            f"give costs as closecall.Costs(unit=…, inactive=…, wanted_class=…), not as {costs!r}."
        )


@dataclass(frozen=True, eq=False)
class Encoding:
    """A MILP and the way back from its columns to pixels and distances."""

    milp: Milp
    pixels: Expression
    scores: Expression
    squared: bool  # the objective is the square of the distance

    def distance(self, objective: float) -> float:
        return float(np.sqrt(max(objective, 0.0))) if self.squared else objective


@dataclass(eq=False)
class NetworkRows:
    """A builder that holds the domain and the network, ready for a goal or an objective."""

    builder: ProgramBuilder
    movement: Movement
    pixels: Expression
    values: list[Expression]

    @property
    def scores(self) -> Expression:
        return self.values[-1]


def encode_network(
    network: Network, domain: Domain, bounds: Bounds, form: Form = "tight", last: int | None = None
) -> NetworkRows:
    """The pixels, the ball and the network's nodes up to `last`."""
    builder = ProgramBuilder()
    movement = domain.norm.encode(builder, domain.down, domain.up)
    if movement.distance is not None and np.isfinite(domain.radius):
        builder.add_rows(movement.distance, -np.inf, domain.radius)
    if domain.budget is not None:
        add_budget(builder, movement.shifts, domain, *domain.budget)
    pixels = movement.shifts + Expression.constants(domain.centre)
    add_levels(builder, pixels, domain)
    return NetworkRows(builder, movement, pixels, encode_nodes(builder, pixels, network, bounds, form, last))


def add_budget(
    builder: ProgramBuilder, shifts: Expression, domain: Domain, norm: Norm, amount: float
) -> None:
    """The same shifts once more in a second norm, of which no more than an amount is spent."""
    second = norm.encode(builder, domain.down, domain.up)
    builder.add_rows(shifts - second.shifts, 0.0, 0.0)
    if second.distance is None:
        raise ValueError(f"{norm.name} has no linear distance")
    builder.add_rows(second.distance, -np.inf, amount)


def add_levels(builder: ProgramBuilder, pixels: Expression, domain: Domain) -> None:
    """For each pixel an integer: the place of its level, which is so many steps up to its rounding."""
    if domain.levels is None:
        return
    levels, step, uneven = domain.levels, domain.distances.step, domain.distances.uneven
    moving = np.flatnonzero(domain.upper > domain.lower)
    low, high = (places(end[moving], levels) for end in domain.box())
    low, high = np.ceil(low - NEARLY_WHOLE), np.floor(high + NEARLY_WHOLE)
    place = builder.add_columns("place", np.minimum(low, high), high, integer=True)
    level = place.scaled(np.full(len(moving), step)) + Expression.constants(np.full(len(moving), levels[0]))
    builder.add_rows(pixels.taken(moving) - level, -uneven, uneven)


def encode_nodes(
    builder: ProgramBuilder,
    pixels: Expression,
    network: Network,
    bounds: Bounds,
    form: Form = "tight",
    last: int | None = None,
) -> list[Expression]:
    """The pixels and the values of the network's nodes up to `last`."""
    values = [pixels]
    for node in network.nodes[:last]:
        inputs = [values[source] for source in node.inputs]
        encode = node.layer.encode_tight if form == "tight" else node.layer.encode_paper
        values.append(encode(builder, inputs, *bounds.of(node.inputs)))
    return values


def encode_box(network: Network, domain: Domain, case: Case, bounds: Bounds) -> tuple[Encoding, float]:
    """How far an image of the box around a domain is from a case, at least; above the number it is too far.

    There is no distance in it, so no column above all shifts and no row for each of them: what makes L∞ slow.
    The objective is the hardest row of the case; the others must be reached.
    """
    builder = ProgramBuilder()
    pixels = builder.add_columns("shift", -domain.down, domain.up) + Expression.constants(domain.centre)
    add_levels(builder, pixels, domain)
    scores = encode_nodes(builder, pixels, network, bounds)[-1]
    hardest = hardest_row(network, domain, case)
    others = np.delete(np.arange(len(case.threshold)), hardest)
    rows = scores.mapped(case.matrix)
    builder.add_rows(rows.taken(others), case.threshold[others], np.inf)
    row = rows.taken(np.array([hardest]))
    objective = np.zeros(builder.width)
    objective[row.matrix.indices] = -row.matrix.data
    cutoff = float(row.constant[0] - case.threshold[hardest])
    return Encoding(builder.build(objective), pixels, scores, squared=False), cutoff


def hardest_row(network: Network, domain: Domain, case: Case) -> int:
    """The row of a case that the original is furthest from reaching."""
    return int((network.forward(domain.centre[None])[0] @ case.matrix.T - case.threshold).argmin())


def encode(
    network: Network,
    domain: Domain,
    goal: Goal,
    bounds: Bounds,
    form: Form = "tight",
    costs: Costs | None = None,
) -> Encoding:
    """Minimise the distance (plus the paper's costs, if any) over the images that reach the goal."""
    rows = encode_network(network, domain, bounds, form)
    add_goal(rows, network, domain, goal, bounds)
    objective = np.zeros(rows.builder.width)
    quadratic = None
    if rows.movement.distance is not None:
        distance = rows.movement.distance.matrix
        objective[distance.indices] += distance.data
    else:
        quadratic = np.zeros(rows.builder.width)
        quadratic[rows.movement.squared] = 1.0
    if costs is not None and costs.any:
        add_costs(rows.builder, rows.scores, objective, costs, goal)
    milp = rows.builder.build(objective, quadratic)
    return Encoding(milp, rows.pixels, rows.scores, squared=quadratic is not None)


def add_goal(rows: NetworkRows, network: Network, domain: Domain, goal: Goal, bounds: Bounds) -> None:
    """C·y ≥ d for the only case, or C·y ≥ d − M(1 − w) with Σ w = 1 over several."""
    if len(goal.cases) == 1:
        case = goal.cases[0]
        rows.builder.add_rows(rows.scores.mapped(case.matrix), case.threshold, np.inf)
        return
    chosen = rows.builder.add_columns(
        "case", np.zeros(len(goal.cases)), np.ones(len(goal.cases)), integer=True
    )
    rows.builder.add_rows(chosen.mapped(np.ones((1, len(goal.cases)))), 1.0, 1.0)
    for index, case in enumerate(goal.cases):
        lack = case.threshold + lowest_scores(network, domain, bounds, case)
        big = coefficients(lack)
        switch = chosen.taken(np.full(len(big), index))
        rows.builder.add_rows(
            rows.scores.mapped(case.matrix) - switch.scaled(big), case.threshold - big, np.inf
        )


def lowest_scores(network: Network, domain: Domain, bounds: Bounds, case: Case) -> Vector:
    """An upper bound on −C·y: how far below zero each row of the case can be."""
    return maximise(network, domain, bounds, len(network.nodes), -case.matrix)


def add_costs(
    builder: ProgramBuilder, scores: Expression, objective: Vector, costs: Costs, goal: Goal
) -> None:
    """The paper's objective: Σ unit·x + Σ inactive·[unit off] − wanted_class·(score of the wanted class)."""
    for units in builder.units:
        objective[units] += costs.unit
    for phases in builder.phases:
        objective[phases.columns] += costs.inactive if phases.active_when == 0 else -costs.inactive
    wanted = int(goal.cases[0].matrix[0].argmax())
    score = scores.taken(np.array([wanted])).matrix
    objective[score.indices] -= costs.wanted_class * score.data
