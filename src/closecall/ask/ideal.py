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
from closecall.ask.aims import Aim, AimName
from closecall.ask.capsules import check_piecewise_linear
from closecall.ask.ideal_tree import grow
from closecall.attacks.gradient import climb_freely
from closecall.attacks.smooth import climb_smoothly
from closecall.bounds import Bounds, linear_bounds
from closecall.bounds.balance import balanced
from closecall.clock import Clock, usable_threads
from closecall.encoding.encode import Costs, Form, check_costs, encode_network
from closecall.encoding.model_size import ModelSize
from closecall.encoding.precision import score_errors, weighs_little
from closecall.milp import Limits, OnProgress
from closecall.network import Network
from closecall.question.checks import check_class, check_classes, pixel_limits, whole_number
from closecall.question.domain import Domain
from closecall.question.effort import Effort
from closecall.question.names import SolverName
from closecall.question.norms import norm_named
from closecall.question.variation import checked_smooth
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

    What was maximised is `lead − smooth · variation`, or minimised the paper's costs + smooth · variation:
    `objective` is its value for the image, None where costs were asked for and the class does not lead, and
    `objective_bound` the proven most, or with costs the proven least, of all images. `lead_bound` is a proven
    most of the lead alone, None with costs.
    `outcome` is `ideal` when the gap is closed, `optimal for costs` when that of costs is, else `unresolved`.
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
    aim: AimName = "lead"
    smooth: float = 0.0
    variation: float | None = None
    objective: float | None = None
    objective_bound: float | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def summary(self, class_names: Sequence[str] | None = None) -> str:
        """The answer in one sentence; a class that has a name is given with it."""
        target, closed = class_named(self.target, class_names), self.outcome != "unresolved"
        rough = f" plus {self.smooth:g} × variation {self.variation:.6g}" if self.smooth else ""
        if self.aim in ("costs", "smooth costs"):
            begin = "Optimal for the given costs: an" if closed else "Best found for the given costs: an"
            cost = "" if self.objective is None else f"; costs{rough} come to {self.objective + 0.0:.6g}"
            proof = (
                f", proven that none has less than {self.objective_bound:.6g}"
                if self.objective_bound is not None and not closed
                else ""
            )
            return f"{begin} image of class {target}, lead {self.lead:.6g}{cost}{proof}."
        begin = "Ideal image" if closed else "Best image found"
        value = f"lead {self.lead:.6g}"
        if self.smooth:
            value += f" less {self.smooth:g} × variation {self.variation:.6g} is {self.objective:.6g}"
        if closed:
            return f"{begin} of class {target}: {value}, proven that none has more."
        if self.objective_bound is None:
            return f"{begin} of class {target}: {value}, with no proof."
        return (
            f"{begin} of class {target}: {value}, proven that none has more than {self.objective_bound:.6g}."
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
    smooth: float = 0.0,
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
    paper's objective is minimised with that class on top. For all classes or several models, ask `ideals`.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        target: The number of the class.
        smooth: What is taken off for each unit of total variation, the sum of |difference| between
            neighbouring pixels, so that the image looks like something; try 0.1.
        pixel_range: The least and the largest value of a pixel.
        costs: The paper's extra costs, to be minimised instead.
        input_shape: The shape of one image, for a model that leaves it open.
        solver: "highs", "scip", "gurobi" or "cplex", for the paper's costs.
        time_limit: Seconds for everything; the best lead and a proven bound are given when they are over.
        threads: Threads of the search.
        gap: The relative gap between lead and bound to stop at.
        on_progress: Called with (lead, bound, nodes, seconds) as the interval shrinks.
    """
    effort, clock = Effort("milp", solver, time_limit, threads, gap), Clock(time_limit)
    check_costs(costs)
    weight = checked_smooth(smooth)
    classifier = model if isinstance(model, Classifier) else read(model, input_shape)
    network = classifier.network
    check_piecewise_linear(network, "an ideal image")
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
    search = Search(scaled, domain, wanted, costs or Costs(), effort, weight)
    with clock.noting_interrupts(), suppress(KeyboardInterrupt):
        search.run(clock, on_progress)
    found = best_example(classifier, search, clock)
    log.info("found: %s", found)
    return found


class Search:
    """The best image so far, and the most that any image can reach: by linear bounds, then a solver.

    `most` bounds what is aimed at, `most_lead` the lead alone.
    """

    def __init__(
        self,
        network: Network,
        domain: Domain,
        target: int,
        costs: Costs,
        effort: Effort,
        smooth: float = 0.0,
    ) -> None:
        self.network, self.domain, self.target = network, domain, target
        self.costs, self.effort = costs, effort
        low, high = domain.box()
        spread = float(high.max() - low.min())
        self.aim = Aim(network, target, costs, smooth, spread)
        self.goal = self.aim.goal
        self.best = domain.centre
        self.most = self.most_lead = math.inf
        self.nodes = 0

    def run(self, clock: Clock, on_progress: OnProgress | None) -> None:
        network, domain, aim = self.network, self.domain, self.aim
        settings = DEFAULT.ideal
        self.best = climb_freely(
            network, domain, self.goal, until=clock.share(settings.share_for_first_climb)
        )
        bounds = linear_bounds(network, domain, clock.share(settings.share_for_bounds))
        self.most, self.most_lead = aim.most(domain, bounds), aim.most_lead(domain, bounds)
        if self.is_box and bounds.undecided(network) > settings.units_for_climbs:
            until = clock.share(settings.share_for_climbs)
            self.keep(
                climb_smoothly(
                    aim.value_and_slope, domain.box(), aim.differences, aim.smooth, self.best, until
                )
            )
        if self.costs.any or not self.is_box:
            self.ask_solver(bounds, clock)
        else:
            grow(self, bounds, clock, on_progress)

    @property
    def is_box(self) -> bool:
        return self.domain.norm.name == "linf" or math.isinf(self.domain.radius)

    def keep(self, image: Vector) -> None:
        """Keep the better image; of two that do not do what is asked for, the one of larger lead."""
        aim = self.aim
        if (aim.value(image), aim.lead(image)) > (aim.value(self.best), aim.lead(self.best)):
            self.best = image

    def ask_solver(self, bounds: Bounds, clock: Clock) -> None:
        """For costs in the paper's form, whose binaries bear the penalties, and for balls that are no box."""
        network, effort = self.network, self.effort
        form: Form = "paper" if self.costs.any else "tight"
        size = ModelSize.of(network, bounds, form)
        if size.gigabytes > DEFAULT.sizes.most_gigabytes or size.seconds > clock.left:
            return
        rows = encode_network(network, self.domain, bounds, form)
        objective, offset = self.aim.objective(rows.builder, rows.pixels, rows.scores, (-np.inf, np.inf))
        lead = max(1.0, abs(self.aim.lead(self.best)))
        trusted = weighs_little(self.goal.cases[0], score_errors(network, bounds), lead)
        seconds = max(0.0, clock.left - size.seconds_to_stop)
        limits = Limits(seconds, usable_threads(effort.threads), effort.gap / 2)
        solution = solve(rows.builder.build(objective), effort.solver, limits)
        solution = solution if trusted else without_claims(solution)
        self.nodes = solution.nodes
        self.most = min(self.most, -(solution.bound + offset))
        if solution.values is not None:
            self.keep(self.domain.pulled_inside(self.domain.clip(rows.pixels.at(solution.values))))


def best_example(classifier: Classifier, search: Search, clock: Clock) -> Ideal:
    """The best image of a search, in float32, and what is proven about it."""
    network, aim = search.network, search.aim
    image = search.best.astype(np.float32).reshape(network.input_shape)
    exact = image.astype(np.float64).ravel()
    lead, value = aim.lead(exact), aim.value(exact)
    bound, sign = max(value, search.most), -1.0 if aim.costs.any else 1.0
    closed = bound - value <= search.effort.gap * max(1.0, abs(value))
    known_lead = None if aim.costs.any else max(lead, bound if aim.name == "lead" else search.most_lead)
    predicted = classifier.predict(image)
    return Ideal(
        outcome=("optimal for costs" if aim.costs.any else "ideal") if closed else "unresolved",
        target=search.target,
        lead=lead,
        lead_bound=None if known_lead is None or math.isinf(known_lead) else known_lead,
        predicted=predicted,
        replayed=predicted == search.target,
        seconds=clock.seconds,
        nodes=search.nodes,
        solver=search.effort.solver,
        network_sha256=classifier.network.fingerprint,
        image=image,
        scores=network.forward(image.astype(np.float64).reshape(1, -1))[0],
        aim=aim.name,
        smooth=aim.smooth,
        variation=aim.variation(exact) if aim.smooth else None,
        objective=None if math.isinf(value) else sign * value,
        objective_bound=None if math.isinf(bound) else sign * bound,
        notes=classifier.notes,
    )
