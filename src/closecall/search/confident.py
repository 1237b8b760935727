"""The nearest image that some class has a softmax probability of at least p in.

p_t ≥ p says log Σ_j exp(y_j − y_t) ≤ ln((1 − p) / p) over the rivals j ≠ t, which is a convex set of scores:
it is all that lies within its tangents. For any weights w ≥ 0 with Σ w = 1,

    log Σ_j exp(z_j) ≥ Σ_j w_j z_j + H(w),    H(w) = −Σ_j w_j ln w_j,    equal for w = softmax(z),

so Σ_j w_j (y_t − y_j) ≥ ln(p / (1 − p)) + H(w) is necessary. The search begins with the tangents of one rival
each (w_j = 1). Where the nearest image within them is not confident yet, it gives the next tangent, and, gone
further the same way, a witness. What is proven for images within tangents holds for all that are confident.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from closecall.arrays import Vector
from closecall.network import Network
from closecall.question.goal import Case, Goal
from closecall.question.levels import nearest_levels
from closecall.search.auto import ATTACK
from closecall.search.incumbent import is_closed
from closecall.search.methods import search_by
from closecall.search.parts import Searcher, part_of
from closecall.search.problem import Finding, Problem

ROUNDING = 1e-12  # by which a tangent's threshold is lowered: more than its logarithms are rounded by


@dataclass
class Best:
    """The nearest confident image so far, and what is proven of all of them."""

    witness: Vector | None = None
    distance: float = math.inf
    lower: float = 0.0
    nodes: int = 0


def search_confidently(problem: Problem, confidence: float, search: Searcher) -> Finding:
    """Search within tangents, and add one wherever they are still too wide."""
    best, last, interrupted = Best(), Finding(None, 0.0), False
    with problem.clock.noting_interrupts():
        try:
            for last in rounds(problem, confidence, best, search):
                if last.interrupted:
                    interrupted = True
                    break
        except KeyboardInterrupt:
            interrupted = True
    return replace(
        last, witness=best.witness, lower=best.lower, nodes=best.nodes, interrupted=interrupted,
        notes=tuple(dict.fromkeys(problem.notes)), why=tuple(dict.fromkeys(problem.why)),
    )  # fmt: skip


def rounds(problem: Problem, confidence: float, best: Best, search: Searcher) -> Iterator[Finding]:
    """What each search within tangents has found, until the gap is closed or the time is over."""
    settings = problem.settings.confident
    begin_by_attack(problem, confidence, best)
    goal = problem.goal
    for _ in range(settings.most_tangents):
        domain = problem.domain.within(best.distance)
        found = search(part_of(problem, settings.share_of_time, goal=goal, domain=domain))
        best.nodes += found.nodes
        best.lower = max(best.lower, min(found.lower, best.distance))
        if found.witness is not None:
            keep_if_confident(problem, found.witness, confidence, best)
        if problem.on_progress is not None:
            lower = min(best.lower, best.distance)
            problem.on_progress(lower, best.distance, best.nodes, problem.clock.seconds)
        yield found
        settled = best.witness is not None and (
            problem.any_will_do or is_closed(best.lower, best.distance, problem.gap)
        )
        if found.witness is None or settled or problem.clock.left <= 0:
            return
        goal = with_tangent(problem.network, goal, found.witness, confidence)


def begin_by_attack(problem: Problem, confidence: float, best: Best) -> None:
    """A first witness: scores that lead each rival by ln((n − 1) p / (1 − p)) are confident."""
    rivals = problem.network.classes - 1
    more = math.log(rivals)
    cases = tuple(Case(case.matrix, case.threshold + more) for case in problem.goal.cases)
    share = problem.settings.auto.share_for_attack
    found = search_by(part_of(problem, share, goal=Goal(cases, problem.goal.tolerance)), ATTACK)
    if found.witness is not None:
        keep_if_confident(problem, found.witness, confidence, best)


def keep_if_confident(problem: Problem, point: Vector, confidence: float, best: Best) -> None:
    """Keep an image, gone as far beyond as it takes, if it is confident there and nearer than the best."""
    domain, settings = problem.domain, problem.settings.confident
    beyond = np.geomspace(settings.least_step, settings.largest_step, settings.steps)
    shares = 1.0 + np.concatenate([[0.0], beyond])
    trials = domain.clip(domain.centre + shares[:, None] * (point - domain.centre))
    if domain.levels is not None:
        trials = domain.clip(nearest_levels(trials, domain.levels))
    enough = confidences(problem.goal, problem.network.forward(trials)) >= confidence
    for trial in trials[enough]:
        distance = domain.distance(trial)
        if distance <= domain.radius:
            if distance < best.distance:
                best.witness, best.distance = trial, distance
                if problem.on_witness is not None:
                    problem.on_witness(trial, distance)
            return


def confidences(goal: Goal, scores: Vector) -> Vector:
    """The largest probability of a class that is asked for, for each row of scores."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    winners = [winner_of(case) for case in goal.cases]
    return np.asarray((shares / shares.sum(axis=1, keepdims=True))[:, winners].max(axis=1))


def winner_of(case: Case) -> int:
    """Every row of a case has 1 at the class that must win, and no more than 0 at others."""
    return int(case.matrix[0].argmax())


def with_tangent(network: Network, goal: Goal, point: Vector, confidence: float) -> Goal:
    """The goal with the tangent at an image's scores, for the class that is most probable there."""
    scores = network.forward(point[None])[0]
    most = max(range(len(goal.cases)), key=lambda index: scores[winner_of(goal.cases[index])])
    winner = winner_of(goal.cases[most])
    return replace(
        goal,
        cases=tuple(
            with_row(case, winner, scores, confidence) if index == most else case
            for index, case in enumerate(goal.cases)
        ),
    )


def with_row(case: Case, winner: int, scores: Vector, confidence: float) -> Case:
    """Σ_j w_j (y_t − y_j) ≥ ln(p / (1 − p)) + H(w) with w close to the softmax of the rivals' scores.

    Weights are cut to multiples of 2⁻⁴⁰, so that they add up without rounding, to s a little below 1: divided
    by s they are weights as above, which times s is s·(ln(p / (1 − p)) + ln s) + H(w) on the right.
    """
    rivals = scores.copy()
    rivals[winner] = -np.inf
    shares = np.exp(rivals - rivals.max())
    weights = np.floor(shares / shares.sum() * 2.0**40) / 2.0**40
    row, total = -weights, float(weights.sum())
    row[winner] = total
    some = weights[weights > 0]
    threshold = total * (math.log(confidence / (1.0 - confidence)) + math.log(total))
    threshold -= float((some * np.log(some)).sum()) + ROUNDING
    return Case(np.vstack([case.matrix, row]), np.append(case.threshold, threshold))
