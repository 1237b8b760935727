"""What makes an image ideal: its lead, or the paper's costs, less a weight times its total variation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from closecall.arrays import Vector
from closecall.bounds import Bounds, maximise
from closecall.encoding.cost_values import cost_of, least_cost, with_linear_costs
from closecall.encoding.encode import Costs, add_costs
from closecall.milp.builder import Expression, ProgramBuilder
from closecall.network import Network
from closecall.network.gradient import input_gradient
from closecall.question.domain import Domain
from closecall.question.goal import Case, Goal, slack_and_gradient
from closecall.question.question import DEFAULT_MARGIN
from closecall.question.variation import neighbours, variation

AimName = Literal["lead", "smooth lead", "costs", "smooth costs"]


@dataclass(frozen=True, eq=False)
class Aim:
    """What is maximised: lead − smooth·variation, or −costs − smooth·variation with the class ahead.

    `spread` is the most that two pixels can differ by.
    """

    network: Network
    target: int
    costs: Costs
    smooth: float
    spread: float

    @property
    def name(self) -> AimName:
        if self.costs.any:
            return "smooth costs" if self.smooth else "costs"
        return "smooth lead" if self.smooth else "lead"

    @cached_property
    def goal(self) -> Goal:
        return Goal((leads_over_all(self.target, self.network.classes),))

    @cached_property
    def differences(self) -> csr_array:
        if self.smooth == 0:
            return csr_array((0, self.network.input_size))
        return neighbours(self.network.input_shape)

    def lead(self, point: Vector) -> float:
        return float(self.goal.slack(self.network.forward(point[None]))[0])

    def variation(self, point: Vector) -> float:
        return variation(self.differences, point)

    def value(self, point: Vector) -> float:
        """What is maximised; with costs −∞ where the class does not lead by the margin, or all but half."""
        gain = self.lead(point)
        if self.costs.any:
            ahead = gain >= DEFAULT_MARGIN / 2
            gain = -cost_of(self.network, self.costs, self.target, point) if ahead else -math.inf
        return gain - self.smooth * self.variation(point)

    def value_and_slope(self, point: Vector) -> tuple[float, Vector]:
        """Both without the variation; with costs the slope is the lead's where that is too small."""
        if not self.costs.any:
            slack, slopes = slack_and_gradient(self.network, self.goal, point[None])
            return float(slack[0]), slopes[0]
        network = self._with_costs
        values = network.values(point[None])
        scores, case = values[-1][:, :-1], self.goal.cases[0]
        excess = (scores @ case.matrix.T)[0]
        if excess.min() >= 2 * DEFAULT_MARGIN:
            row, value = np.zeros(network.classes), -cost_of(self.network, self.costs, self.target, point)
            row[-1] = -1.0
        else:
            row, value = np.append(case.matrix[excess.argmin()], 0.0), -math.inf
        return value, input_gradient(network, values, row[None])[0]

    @cached_property
    def _with_costs(self) -> Network:
        return with_linear_costs(self.network, self.costs, self.target)

    def most(self, domain: Domain, bounds: Bounds) -> float:
        """An upper bound on the value by linear bounds: there is no less variation than none."""
        if self.costs.any:
            return -least_cost(self.network, domain, bounds, self.costs, self.target)
        return self.most_lead(domain, bounds)

    def most_lead(self, domain: Domain, bounds: Bounds) -> float:
        rows = self.goal.cases[0].matrix
        return float(maximise(self.network, domain, bounds, len(self.network.nodes), rows).min())

    def objective(
        self, builder: ProgramBuilder, pixels: Expression, scores: Expression, lead: tuple[float, float]
    ) -> tuple[Vector, float]:
        """−value as the objective of a program, which it completes, and what must be added to it.

        `lead` are ends between which the lead of the best image lies.
        """
        if self.costs.any:
            objective, offset = self._cost_objective(builder, scores)
        else:
            objective, offset = self._lead_objective(builder, scores, lead), 0.0
        if self.smooth == 0:
            return objective, offset
        apart = pixels.mapped(self.differences)
        most = np.full(len(apart), self.spread)
        rise, fall = (builder.add_columns(name, np.zeros(len(most)), most) for name in ("rise", "fall"))
        builder.add_rows(apart - rise + fall, 0.0, 0.0)
        return np.concatenate([objective, np.full(2 * len(most), self.smooth)]), offset

    def _lead_objective(
        self, builder: ProgramBuilder, scores: Expression, ends: tuple[float, float]
    ) -> Vector:
        """Minimise −lead with y_t − y_j ≥ lead for all j."""
        leads = scores.mapped(self.goal.cases[0].matrix)
        lead = builder.add_columns("lead", np.array([ends[0]]), np.array([ends[1]]))
        builder.add_rows(leads - lead.taken(np.zeros(len(leads), dtype=np.int64)), 0.0, np.inf)
        objective = np.zeros(builder.width)
        objective[-1] = -1.0
        return objective

    def _cost_objective(self, builder: ProgramBuilder, scores: Expression) -> tuple[Vector, float]:
        builder.add_rows(scores.mapped(self.goal.cases[0].matrix), DEFAULT_MARGIN, np.inf)
        objective = np.zeros(builder.width)
        add_costs(builder, scores, objective, self.costs, self.goal)
        return objective, -self.costs.wanted_class * float(scores.constant[self.target])


def leads_over_all(target: int, classes: int) -> Case:
    rivals = [j for j in range(classes) if j != target]
    rows = np.zeros((len(rivals), classes))
    rows[:, target] = 1.0
    rows[np.arange(len(rivals)), rivals] = -1.0
    return Case(rows, np.zeros(len(rivals)))
