"""ideal(): the image that a network finds the best example of a class, and a bound on how good one can be."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from closecall._version import __version__
from closecall.arrays import Vector
from closecall.attacks.gradient import climb_freely
from closecall.bounds import linear_bounds, maximise
from closecall.bounds.balance import balanced
from closecall.clock import Clock, usable_threads
from closecall.encoding.encode import Costs, Form, NetworkRows, add_costs, check_costs, encode_network
from closecall.encoding.model_size import ModelSize
from closecall.encoding.precision import score_errors, weighs_little
from closecall.milp import Limits, OnProgress
from closecall.network import Network
from closecall.question.checks import check_class, check_classes, pixel_limits, whole_number
from closecall.question.domain import Domain
from closecall.question.effort import Effort
from closecall.question.goal import Case, Goal
from closecall.question.names import SolverName
from closecall.question.norms import norm_named
from closecall.question.question import DEFAULT_MARGIN
from closecall.readers import Classifier, read
from closecall.settings import DEFAULT
from closecall.solvers import solve, without_claims
from closecall.verdict.naming import class_named
from closecall.verdict.notebook import image_html

log = logging.getLogger(__name__)

IdealOutcome = Literal["ideal", "optimal for costs", "unresolved"]


@dataclass(frozen=True, eq=False)
class Ideal:
    """The best image found for a class: its lead y_t − max y_j, and the proven most that any image can reach.

    `outcome` is `ideal` when the gap is closed, else `unresolved`; with the paper's costs it is `optimal for
    costs`, and the lead is not what was maximised.
    """

    outcome: IdealOutcome
    target: int
    lead: float
    lead_bound: float | None
    predicted: int
    replayed: bool
    seconds: float
    nodes: int
    solver: SolverName
    network_sha256: str
    image: NDArray[np.float32] = field(repr=False)
    scores: Vector = field(repr=False)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def summary(self, class_names: Sequence[str] | None = None) -> str:
        """The answer in one sentence; a class that has a name is given with it."""
        target = class_named(self.target, class_names)
        if self.outcome == "optimal for costs":
            return f"Optimal for the given costs: an image of class {target}, lead {self.lead:.6g}."
        if self.outcome == "ideal":
            return f"Ideal image of class {target}: lead {self.lead:.6g}, proven that none has more."
        if self.lead_bound is None:
            return f"Best image found of class {target}: lead {self.lead:.6g}, with no proof."
        return (
            f"Best image found of class {target}: lead {self.lead:.6g}, proven that none has more than "
            f"{self.lead_bound:.6g}."
        )

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return image_html(self.image, self.summary(), f"seen as {self.predicted}")

    def to_json(self) -> dict[str, Any]:
        """All but the arrays, ready for JSON."""
        return {key: value for key, value in vars(self).items() if key not in ("image", "scores")}


def ideal(
    model: object,
    target: int,
    *,
    pixel_range: tuple[float, float] = (0.0, 1.0),
    costs: Costs | None = None,
    input_shape: tuple[int, ...] | None = None,
    solver: SolverName = "highs",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    gap: float = Effort.gap,
    on_progress: OnProgress | None = None,
) -> Ideal:
    """Find the image that the model finds the best example of a class, and prove how good any can be.

    The lead of the class's score over the largest other is maximised over the pixel box; or, given costs, the
    paper's objective is minimised with that class on top.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        target: The number of the class.
        pixel_range: The least and the largest value of a pixel.
        costs: The paper's extra costs, to be minimised instead.
        input_shape: The shape of one image, for a model that leaves it open.
        solver: "highs", "scip", "gurobi" or "cplex".
        time_limit: Seconds for everything; the best lead and a proven bound are given when they are over.
        threads: Threads of the solver.
        gap: The relative gap between lead and bound to stop at.
        on_progress: Called with (lead, bound, nodes, seconds) as the interval shrinks.
    """
    effort, clock = Effort("milp", solver, time_limit, threads, gap), Clock(time_limit)
    check_costs(costs)
    classifier = model if isinstance(model, Classifier) else read(model, input_shape)
    network = classifier.network
    check_classes(network.classes)
    wanted = whole_number("target", target)
    check_class("target", wanted, network.classes)
    low, high = pixel_limits(pixel_range)
    middle = np.full(network.input_size, (low + high) / 2)
    domain = Domain(middle, np.full_like(middle, low), np.full_like(middle, high), norm_named("linf"))
    log.info("asked for the ideal image of class %d: %r", wanted, effort)
    with clock.stage("read"):
        classifier.prepare()
        scaled = network if costs is not None and costs.any else balanced(network, domain)
    search = Search(scaled, domain, wanted, costs or Costs(), effort)
    with clock.noting_interrupts(), suppress(KeyboardInterrupt):
        search.run(clock, on_progress)
    found = best_example(classifier, search, clock)
    log.info("found: %s", found)
    return found


class Search:
    """The best image so far, and the most that any image can lead by: by linear bounds, then a solver."""

    def __init__(self, network: Network, domain: Domain, target: int, costs: Costs, effort: Effort) -> None:
        self.network, self.domain, self.target = network, domain, target
        self.costs, self.effort = costs, effort
        self.goal = Goal((leads_over_all(target, network.classes),))
        self.best = domain.centre
        self.most = math.inf
        self.nodes = 0
        self.solved = False

    def run(self, clock: Clock, on_progress: OnProgress | None) -> None:
        network, domain = self.network, self.domain
        self.best = climb_freely(network, domain, self.goal, until=clock.share(DEFAULT.ideal.share_for_climb))
        bounds = linear_bounds(network, domain, clock.share(DEFAULT.ideal.share_for_bounds))
        rows = self.goal.cases[0].matrix
        self.most = float(maximise(network, domain, bounds, len(network.nodes), rows).min())
        form: Form = "paper" if self.costs.any else "tight"
        size = ModelSize.of(network, bounds, form)
        if size.gigabytes <= DEFAULT.sizes.most_gigabytes and size.seconds <= clock.left:
            encoded = encode_network(network, domain, bounds, form)
            lead = max(1.0, abs(lead_of(network, self.goal, self.best)))
            trusted = weighs_little(self.goal.cases[0], score_errors(network, bounds), lead)
            seconds = max(0.0, clock.left - size.seconds_to_stop)
            self.solve(encoded, seconds, on_progress, trusted=trusted)

    def solve(
        self, rows: NetworkRows, seconds: float, on_progress: OnProgress | None, *, trusted: bool
    ) -> None:
        network, goal, costs, effort = self.network, self.goal, self.costs, self.effort
        solution = solve(
            rows.builder.build(ideal_objective(rows, goal, costs)),
            effort.solver,
            Limits(seconds, usable_threads(effort.threads), effort.gap / 2),
            on_progress=None
            if costs.any or not trusted
            else lead_progress(on_progress, network, goal, self.best),
        )
        solution = solution if trusted else without_claims(solution)
        self.nodes, self.solved = solution.nodes, solution.status == "optimal"
        self.most = min(self.most, -solution.bound)
        if solution.values is not None:
            found = self.domain.clip(rows.pixels.at(solution.values))
            if costs.any or lead_of(network, goal, found) > lead_of(network, goal, self.best):
                self.best = found


def best_example(classifier: Classifier, search: Search, clock: Clock) -> Ideal:
    """The best image of a search, in float32, and what is proven about it."""
    network, costs = search.network, search.costs
    image = search.best.astype(np.float32).reshape(network.input_shape)
    lead = lead_of(network, search.goal, image.astype(np.float64).ravel())
    bound = max(lead, search.most) if not costs.any else None
    closed = search.solved if bound is None else bound - lead <= search.effort.gap * max(1.0, abs(lead))
    predicted = classifier.predict(image)
    return Ideal(
        outcome=("optimal for costs" if costs.any else "ideal") if closed else "unresolved",
        target=search.target,
        lead=lead,
        lead_bound=None if bound is None or math.isinf(bound) else bound,
        predicted=predicted,
        replayed=predicted == search.target,
        seconds=clock.seconds,
        nodes=search.nodes,
        solver=search.effort.solver,
        network_sha256=classifier.network.fingerprint,
        image=image,
        scores=network.forward(image.astype(np.float64).reshape(1, -1))[0],
        notes=classifier.notes,
    )


def leads_over_all(target: int, classes: int) -> Case:
    rivals = [j for j in range(classes) if j != target]
    rows = np.zeros((len(rivals), classes))
    rows[:, target] = 1.0
    rows[np.arange(len(rivals)), rivals] = -1.0
    return Case(rows, np.zeros(len(rivals)))


def ideal_objective(rows: NetworkRows, goal: Goal, costs: Costs) -> Vector:
    """Minimise −lead with y_t − y_j ≥ lead for all j; or the paper's costs with y_t ahead by the margin."""
    leads = rows.scores.mapped(goal.cases[0].matrix)
    if costs.any:
        rows.builder.add_rows(leads, DEFAULT_MARGIN, np.inf)
        objective = np.zeros(rows.builder.width)
        add_costs(rows, objective, costs, goal)
        return objective
    lead = rows.builder.add_columns("lead", np.array([-np.inf]), np.array([np.inf]))
    rows.builder.add_rows(leads - lead.taken(np.zeros(len(leads), dtype=np.int64)), 0.0, np.inf)
    objective = np.zeros(rows.builder.width)
    objective[-1] = -1.0
    return objective


def lead_of(network: Network, goal: Goal, point: Vector) -> float:
    return float(goal.slack(network.forward(point[None]))[0])


def lead_progress(report: OnProgress | None, network: Network, goal: Goal, best: Vector) -> OnProgress | None:
    """Turn the solver's −lead into the interval of the lead."""
    if report is None:
        return None
    known = lead_of(network, goal, best)

    def forward(lower: float, upper: float, nodes: int, seconds: float) -> None:
        report(max(known, -upper), -lower, nodes, seconds)

    return forward
