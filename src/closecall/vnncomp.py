"""Decide a VNN-LIB property: `sat` with a replayed counterexample, `unsat`, `unknown` or `timeout`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from closecall.balance import balanced
from closecall.batched import TooLargeError, refute
from closecall.bounds import dense_entries
from closecall.coarse import SECONDS_TO_LAY_OUT, refute_coarsely
from closecall.domain import Domain
from closecall.network import Network
from closecall.norms import norm_named
from closecall.query import Case, Goal
from closecall.readers import Classifier
from closecall.readers.vnnlib import Property
from closecall.verdict import Replay, replay

Answer = Literal["sat", "unsat", "unknown", "timeout"]


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


def decide(classifier: Classifier, question: Property, *, seconds: float, threads: int = 1) -> Decision:
    """Search every box of the property in turn; `unsat` only when all are proven empty."""
    deadline = time.perf_counter() + seconds
    boxes = grouped(question)
    doubt: Answer | None = None
    for index, (domain, goal) in enumerate(boxes):
        share = (deadline - time.perf_counter()) / (len(boxes) - index)
        if share <= 0:
            return Decision("timeout")
        network = balanced(classifier.network, domain).simplified()
        try:
            proven, witness = refuted(network, domain, goal, share, threads)
        except KeyboardInterrupt:
            return Decision("unknown")
        if witness is not None:
            found = replayed(classifier, domain, goal, witness)
            if found is not None:
                return Decision("sat", found.image, first_scores(classifier, found.image))
            doubt = "unknown"
        elif not proven:
            doubt = "timeout"
    return Decision("unsat" if doubt is None else doubt)


def refuted(
    network: Network, domain: Domain, goal: Goal, seconds: float, threads: int
) -> tuple[bool, NDArray[np.float64] | None]:
    """Whether it is proven that no input of the box meets a case, and one that does."""
    until = time.perf_counter() + seconds
    if seconds < SECONDS_TO_LAY_OUT * dense_entries(network):
        return refute_coarsely(network, domain, goal, until)
    try:
        outcome = refute(network, domain, goal, seconds=seconds, threads=threads)
    except TooLargeError:
        return refute_coarsely(network, domain, goal, until)
    if outcome.status == "interrupted" and outcome.witness is None:
        raise KeyboardInterrupt
    return outcome.status == "proven", outcome.witness


def grouped(question: Property) -> list[tuple[Domain, Goal]]:
    """One domain and goal for each box, with all the cases that share it."""
    boxes: dict[bytes, tuple[Domain, list[Case]]] = {}
    for case in question.cases:
        key = case.lower.tobytes() + case.upper.tobytes()
        middle = np.clip((case.lower + case.upper) / 2, case.lower, case.upper)
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
