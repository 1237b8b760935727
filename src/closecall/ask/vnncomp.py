"""Decide a VNN-LIB property: `sat` with a replayed counterexample, `unsat`, `unknown` or `timeout`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from closecall.bounds import interval_bounds
from closecall.bounds.balance import balanced
from closecall.clock import Clock
from closecall.errors import QueryError, SolverError
from closecall.network import Network
from closecall.question.domain import Domain, in_float32
from closecall.question.goal import Case, Goal
from closecall.question.norms import norm_named
from closecall.readers import Classifier
from closecall.readers.vnnlib import Property, PropertyCase
from closecall.search.methods import search
from closecall.search.problem import Problem
from closecall.settings import DEFAULT, Settings
from closecall.verdict.replay import Replay, replay

Answer = Literal["sat", "unsat", "unknown", "timeout"]

LARGEST_VALUE = 1e36  # sums and products of bounds on it still fit into float32


@dataclass(frozen=True, eq=False)
class Decision:
    """The answer and, for `sat`, the input and the outputs that the original model gives for it."""

    answer: Answer
    inputs: NDArray[np.float32] | None = None
    outputs: NDArray[np.float32] | None = None

    def text(self) -> str:
        """The result file of the competition: the answer, then the counterexample."""
        if self.inputs is None or self.outputs is None:
            return f"{self.answer}\n"
        named = [("X", self.inputs), ("Y", self.outputs)]
        lines = [
            f"({name}_{i} {value:.9g})" for name, values in named for i, value in enumerate(values.ravel())
        ]
        return f"{self.answer}\n(" + "\n".join(lines) + ")\n"


def decide(
    classifier: Classifier,
    question: Property,
    *,
    seconds: float,
    threads: int = 1,
    settings: Settings = DEFAULT,
) -> Decision:
    """Search every box of the property in turn; `unsat` only when all are proven empty."""
    try:
        return search_cases(classifier, question, time.perf_counter() + seconds, threads, settings)
    except KeyboardInterrupt:
        return Decision("unknown")


def search_cases(
    classifier: Classifier, question: Property, deadline: float, threads: int, settings: Settings
) -> Decision:
    cases, left = question.cases(), question.count
    doubt: Answer | None = None
    while True:
        taken, seen, more = take(cases, deadline, settings)
        boxes = grouped(taken)
        for index, (domain, goal) in enumerate(boxes):
            # A part of the time that is left, as large as that of the cases.
            part = min(1.0, seen / max(left, 1.0)) / (len(boxes) - index)
            time_left = deadline - time.perf_counter()
            if time_left <= 0:
                return Decision("timeout")
            share = min(max(part * time_left, settings.properties.least_seconds), time_left)
            answer = search_box(classifier, domain, goal, share, threads, settings)
            if answer.answer == "sat":
                return answer
            doubt = doubt if answer.answer == "unsat" else answer.answer
        left -= seen
        if not more:
            return Decision("unsat" if doubt is None else doubt)
        if time.perf_counter() >= deadline:
            return Decision("timeout")


def take(
    cases: Iterator[PropertyCase | None], deadline: float, settings: Settings
) -> tuple[list[PropertyCase], int, bool]:
    """The next cases, not too many; how many were looked at for them, and whether there may be more."""
    taken: list[PropertyCase] = []
    seen = entries = 0
    most, most_entries = settings.properties.most_together, settings.sizes.most_entries
    while len(taken) < most and entries < most_entries and time.perf_counter() < deadline:
        try:
            case = next(cases)
        except StopIteration:
            return taken, seen, False
        seen += 1
        if case is not None:
            taken.append(case)
            entries += 2 * len(case.lower) + case.matrix.size
    return taken, seen, True


def search_box(
    classifier: Classifier, domain: Domain, goal: Goal, seconds: float, threads: int, settings: Settings
) -> Decision:
    """Search one box for an input that meets one of the cases."""
    check_values(classifier.network, domain)
    if any(len(case.matrix) == 0 for case in goal.cases):
        inputs = in_float32(domain.centre, domain.lower, domain.upper).reshape(classifier.network.input_shape)
        return Decision("sat", inputs, first_scores(classifier, inputs))
    network = balanced(classifier.network, domain, settings.linear_bounds)
    problem = Problem(
        network, domain, goal, Clock(seconds), nearest=False, threads=threads, settings=settings
    )
    try:
        found = search(problem, "auto")
    except SolverError:  # numbers too large or too small for its linear programs
        return Decision("unknown")
    if found.interrupted and found.witness is None:
        raise KeyboardInterrupt
    if found.witness is None:
        return Decision("unsat" if math.isinf(found.lower) else "timeout")
    seen = replayed(classifier, domain, goal, found.witness)
    if seen is None:
        return Decision("unknown")
    return Decision("sat", seen.image, first_scores(classifier, seen.image))


def check_values(network: Network, domain: Domain) -> None:
    """Refuse a box over which the network's values may leave float32, where no answer could be trusted."""
    with np.errstate(all="ignore"):
        bounds = interval_bounds(network, domain)
        sizes = [float(np.abs(side).max(initial=0.0)) for side in (*bounds.lower, *bounds.upper)]
    if not max(sizes) <= LARGEST_VALUE or any(math.isnan(size) for size in sizes):
        raise QueryError(
            f"VNN-LIB: within the bounds of the inputs, values of the network may reach {max(sizes):.3g}, "
            f"but answers in float32 can be trusted up to {LARGEST_VALUE:g} only: give smaller bounds."
        )


def grouped(cases: Sequence[PropertyCase]) -> list[tuple[Domain, Goal]]:
    """One domain and goal for each box, with all the cases that share it."""
    boxes: dict[bytes, tuple[Domain, list[Case]]] = {}
    for case in cases:
        key = case.lower.tobytes() + case.upper.tobytes()
        middle = np.clip(case.lower / 2 + case.upper / 2, case.lower, case.upper)
        domain = Domain(middle, case.lower, case.upper, norm_named("linf"))
        boxes.setdefault(key, (domain, []))[1].append(Case(-case.matrix, -case.bound))
    return [(domain, Goal(tuple(cases))) for domain, cases in boxes.values()]


def replayed(
    classifier: Classifier, domain: Domain, goal: Goal, witness: NDArray[np.float64]
) -> Replay | None:
    """The counterexample in float32, if the original model's own outputs meet a case of the property."""

    def accepts(scores: NDArray[np.float32]) -> bool:
        return bool(goal.slack(scores.astype(np.float64)[None])[0] >= 0)

    return replay(classifier, classifier.network, domain, goal, witness, accepts)


def first_scores(classifier: Classifier, image: NDArray[np.float32]) -> NDArray[np.float32]:
    engine = next(iter(classifier.engines.values()))
    return np.asarray(engine(image[None])[0])
