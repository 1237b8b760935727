"""nearest() and certify(): from a model and an image to a verdict, top to bottom."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from closecall.ask.capsules import check_suits_capsules
from closecall.ask.deciding import decide, scores_of
from closecall.ask.posing import network_asked, pose
from closecall.ask.proof import MoreAndProof, Proof
from closecall.bounds.balance import balanced
from closecall.clock import Clock, holding_interrupts_back, usable_threads
from closecall.encoding.encode import Costs, check_costs
from closecall.errors import QueryError
from closecall.milp import OnProgress
from closecall.question.effort import Effort
from closecall.question.names import MethodName, NormName, Outputs, SolverName, Target
from closecall.question.question import DEFAULT_MARGIN, Question
from closecall.question.where import windows
from closecall.readers import Classifier
from closecall.search.auto import CHANGE
from closecall.search.confident import search_confidently
from closecall.search.incumbent import OnWitness
from closecall.search.levels import settle_levels
from closecall.search.methods import METHODS, search_by
from closecall.search.patches import search_patches
from closecall.search.problem import Finding, Problem
from closecall.verdict.replay import Replay, Wanted, replay
from closecall.verdict.verdict import Verdict

log = logging.getLogger(__name__)

# The search aims at a little less than the gap, which leaves room for rounding the witness to float32.
SAFETY = 0.9


def nearest(
    model: object,
    image: ArrayLike | Path,
    label: int | None = None,
    *,
    target: Target = "any",
    norm: NormName | float = "l1",
    cap: float | None = None,
    margin: float = DEFAULT_MARGIN,
    ratio: float | None = None,
    radius: float | None = None,
    outputs: Outputs = "logits",
    pixel_range: tuple[float, float] = (0.0, 1.0),
    costs: Costs | None = None,
    solver: SolverName = "highs",
    method: MethodName = "auto",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    gap: float = Effort.gap,
    input_shape: tuple[int, ...] | None = None,
    on_progress: OnProgress | None = None,
    **more: Unpack[MoreAndProof],
) -> Verdict:
    """Find the nearest image that the model classifies otherwise, and prove that none is nearer.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        image: An array or tensor (channels, height, width), or the path of a picture.
        label: The true class; by default what the model says.
        target: "any" other class, the number of the one to reach, several of which any will do, or "paper"
            for (label + 5) mod 10.
        norm: How distance is measured: "l1", "l2", "linf" or "l0"; L1, L∞, inf or 2 will do, too.
        cap: The most that any one pixel may change.
        margin: By how much the new class's score must lead.
        ratio: Instead of a margin: how many times as likely the new class must be.
        radius: Look only within this distance; `robust` if nothing is there.
        outputs: "logits", or "relu" for a ReLU on the class scores, as the paper has it.
        pixel_range: The least and the largest value of a pixel.
        costs: The paper's extra costs; the answer is then optimal for them, not nearest.
        solver: "highs", "scip", "gurobi" or "cplex", for what is left to a MILP solver.
        method: "auto" (our own search), "milp" (a solver, tight model), "milp-improved" or "milp-basic" (the
            paper's models).
        time_limit: Seconds for everything; an interval is given when they are over.
        threads: Threads of the search.
        gap: The relative gap between distance and lower bound to stop at.
        input_shape: The shape of one image, for a model that leaves it open.
        on_progress: Called with (lower bound, distance, nodes, seconds) as the interval shrinks.
        more: confidence, out_of_top, mask, also, patch, change and pixels, as docs/questions.md says; proof
            and deployed, as docs/proofs.md says.
    """
    effort, clock = Effort(method, solver, time_limit, threads, gap), Clock(time_limit)
    proof, asked = Proof.taken(more)
    check_costs(costs)
    classifier, question = pose(
        clock, model, image, label, input_shape, target=target, norm=norm, cap=cap, margin=margin,
        ratio=ratio, radius=radius, outputs=outputs, pixel_range=pixel_range, **asked,
    )  # fmt: skip
    proof.check(question)
    verdict = answer(classifier, question, effort, clock, nearest=True, costs=costs, on_progress=on_progress)
    return proof.of(verdict, classifier)


def certify(
    model: object,
    image: ArrayLike | Path,
    label: int | None = None,
    *,
    radius: float,
    norm: NormName | float = "linf",
    target: Target = "any",
    cap: float | None = None,
    margin: float = DEFAULT_MARGIN,
    ratio: float | None = None,
    outputs: Outputs = "logits",
    pixel_range: tuple[float, float] = (0.0, 1.0),
    solver: SolverName = "highs",
    method: MethodName = "auto",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    input_shape: tuple[int, ...] | None = None,
    on_progress: OnProgress | None = None,
    **more: Unpack[MoreAndProof],
) -> Verdict:
    """Is there any adversarial image within the radius? `adversarial`, `robust` or `unresolved`.

    Args:
        model: An nn.Module in eval mode, a path to .onnx, a folder from `closecall train`, or "zoo:NAME".
        image: An array or tensor (channels, height, width), or the path of a picture.
        label: The true class; by default what the model says.
        radius: How far the image may move, such as 8 / 255.
        norm: How distance is measured: "l1", "l2", "linf" or "l0"; L1, L∞, inf or 2 will do, too.
        target: "any" other class, the number of the one to reach, several of which any will do, or "paper"
            for (label + 5) mod 10.
        cap: The most that any one pixel may change.
        margin: By how much the new class's score must lead.
        ratio: Instead of a margin: how many times as likely the new class must be.
        outputs: "logits", or "relu" for a ReLU on the class scores, as the paper has it.
        pixel_range: The least and the largest value of a pixel.
        solver: "highs", "scip", "gurobi" or "cplex", for what is left to a MILP solver.
        method: "auto" (our own search), "milp" (a solver, tight model), "milp-improved" or "milp-basic" (the
            paper's models).
        time_limit: Seconds for everything.
        threads: Threads of the search.
        input_shape: The shape of one image, for a model that leaves it open.
        on_progress: Called with (lower bound, distance, nodes, seconds) as the interval shrinks.
        more: confidence, out_of_top, mask, also, patch, change and pixels, as docs/questions.md says; proof
            and deployed, as docs/proofs.md says.
    """
    effort, clock = Effort(method, solver, time_limit, threads), Clock(time_limit)
    proof, asked = Proof.taken(more)
    classifier, question = pose(
        clock, model, image, label, input_shape, target=target, norm=norm, cap=cap, margin=margin,
        ratio=ratio, radius=radius, outputs=outputs, pixel_range=pixel_range, **asked,
    )  # fmt: skip
    proof.check(question)
    verdict = answer(classifier, question, effort, clock, nearest=False, on_progress=on_progress)
    return proof.of(verdict, classifier)


def answer(
    classifier: Classifier,
    question: Question,
    effort: Effort,
    clock: Clock,
    *,
    nearest: bool,
    costs: Costs | None = None,
    on_progress: OnProgress | None = None,
    on_witness: OnWitness | None = None,
) -> Verdict:
    """Search, replay, decide; `on_witness` is shown each nearer image as it is found, before any replay."""
    if costs is not None and (question.patch is not None or question.change is not None):
        named = "a change is measured" if question.patch is None else "a patch is compared"
        raise QueryError(f"the paper's costs are no distance, which {named} by: leave one out.")
    if costs is not None and question.pixels is not None:
        raise QueryError("the paper's costs are for pixels between the 8-bit ones, too: leave one out.")
    check_suits_capsules(classifier.network, question, effort.method, costs=costs is not None)
    log.info("asked for %s: %r, %r", "the nearest image" if nearest else "any image", question, effort)
    scores, wanted = classifier.scores(question.image), Wanted.by(question)
    predicted = int(scores.argmax())
    replayed: Replay | None
    held = wanted.held_at_first(scores) and wanted.is_confident(scores_of(classifier, question.image))
    if held and question.has_levels(question.image):
        pixels = question.image.astype(np.float32).reshape(classifier.network.input_shape)
        finding, replayed = (
            Finding(question.image, 0.0, engine="the model itself"),
            Replay(pixels, 0.0, predicted, (), question.domain().centre),
        )
    else:
        with clock.stage("read"):
            classifier.prepare()
        problem = problem_of(classifier, question, effort, clock, nearest, costs)
        problem = replace(problem, on_progress=on_progress, on_witness=on_witness)
        finding = search_for(question, problem, effort.method)
        log.info(
            "%s: %s, nothing nearer than %.6g", finding.engine, found_by(finding, problem), finding.lower
        )
        with clock.stage("replay"), holding_interrupts_back():
            replayed = replay_found(classifier, question, finding)
    with holding_interrupts_back():
        verdict = decide(
            classifier, question, effort, finding, replayed, predicted=predicted, clock=clock, costs=costs
        )
    if not nearest and verdict.outcome == "nearest":
        # Who asks whether there is any within the radius is not told which is the nearest.
        verdict = replace(verdict, outcome="adversarial")
    log.info("verdict: %s", verdict)
    return verdict


def search_for(question: Question, problem: Problem, method: str) -> Finding:
    """Search in the way that the question needs."""

    by_boxes = question.change is not None and method == "auto" and problem.network.capsules is None
    table = CHANGE if by_boxes else METHODS[method]

    def search_all(part: Problem) -> Finding:
        return search_by(part, table, then=settle_levels)

    def search_one(part: Problem) -> Finding:
        if question.confidence is None:
            return search_all(part)
        return search_confidently(part, question.confidence, search_all)

    if question.patch is None:
        return search_one(problem)
    squares = [*windows(question.patch, problem.network.input_shape)]
    return search_patches(problem, squares, search_one)


def problem_of(
    classifier: Classifier,
    question: Question,
    effort: Effort,
    clock: Clock,
    nearest: bool,
    costs: Costs | None,
) -> Problem:
    """The question and the effort as a method takes them."""
    network, domain = network_asked(classifier, question), question.domain()
    return Problem(
        # The paper's costs are on the units as they are, whatever their scale.
        network=balanced(network, domain) if costs is None else network,
        domain=domain,
        goal=question.goal(),
        clock=clock,
        # With images of levels, engines that know of none look for the nearest until one of levels is found.
        nearest=nearest or domain.levels is not None,
        first_of_levels=not nearest,
        gap=SAFETY * effort.gap,
        solver=effort.solver,
        threads=usable_threads(effort.threads),
        costs=costs,
    )


def found_by(finding: Finding, problem: Problem) -> str:
    """What a search has found, for the log."""
    if finding.witness is None:
        return "no witness"
    return f"a witness at {problem.domain.distance(finding.witness):.6g}"


def replay_found(classifier: Classifier, question: Question, finding: Finding) -> Replay | None:
    """The witness as the original engines see it, if there is one and it holds."""
    if finding.witness is None:
        return None
    network, wanted = network_asked(classifier, question), Wanted.by(question)
    domain = finding.domain or question.domain()
    held = replay(
        classifier, network, domain, question.goal(), finding.witness,
        wanted.won, wanted.is_confident, question.changed(),
    )  # fmt: skip
    log.debug("replayed in float32: %s", "does not hold" if held is None else f"holds at {held.distance:.6g}")
    return held
