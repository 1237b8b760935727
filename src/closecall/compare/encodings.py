"""Whose MILP is the more suitable: a DNN's or a CNN's, at matched accuracy and at matched size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from closecall.ask.nearest import nearest
from closecall.attacks.gradient import find_witness
from closecall.bounds import linear_bounds
from closecall.compare.comparison import FIRST_SEED, Comparison
from closecall.compare.contenders import Contender
from closecall.compare.presets import cnn_config, is_small
from closecall.compare.results import EncodingRow, MilpAnswer
from closecall.compare.subjects import Subject, trained_subject
from closecall.encoding.encode import encode
from closecall.models import count_parameters, count_units
from closecall.question.names import SolverName
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.search.presolve import presolve

FAMILIES = ("dnn", "cnn")
LADDER_HIDDEN = 10  # units of the dense layer of a ladder's CNN
SOLVER: SolverName = "highs"


@dataclass(frozen=True, eq=False)
class Rung:
    """A network of the ladder, and what it came to on the images that were held out of its training."""

    subject: Subject
    family: str
    validation_accuracy: float | None

    @property
    def units(self) -> int:
        return count_units(self.subject.module)  # type: ignore[arg-type]


def measure_encodings(comparison: Comparison, subjects: Sequence[Subject]) -> list[EncodingRow]:
    """Rows in pairs, a DNN's and a CNN's: at matched accuracy, at matched size, and as compared."""
    compared = [rung for family in FAMILIES for rung in first_of(subjects, family)]
    missing = [family for family in FAMILIES if family not in {rung.family for rung in compared}]
    if missing:
        comparison.narrow(
            f"No MILPs: they are compared between a DNN and a CNN, and there is no {missing[0].upper()}."
        )
        return []
    comparison.progress.heading("the MILPs of a DNN and of a CNN")
    dnn, cnn = matched_accuracy(dnn_ladder(comparison), cnn_ladder(comparison))
    twin = dnn_of_size(comparison, cnn.units)
    asked = [
        (dnn, "accuracy", "validation accuracy"),
        (cnn, "accuracy", "validation accuracy"),
        (twin, "size", "ReLU and pooling units"),
        (cnn, "size", "ReLU and pooling units"),
        *((rung, "as trained", "") for rung in compared),
    ]
    images = solvable_images(comparison, [rung.subject for rung, _, _ in asked])
    if not images:
        comparison.narrow("No MILPs: no test image is classified right by all of the networks they are for.")
        return []
    return [measure_rung(comparison, rung, images, pairing, by) for rung, pairing, by in asked]


def first_of(subjects: Sequence[Subject], family: str) -> list[Rung]:
    """The first compared network of a family whose MILP can be made, if there is one."""
    fitting = [s for s in subjects if s.kind == family and s.module and s.classifier]
    return [Rung(subject, family, subject.described.get("validation_accuracy")) for subject in fitting[:1]]


def dnn_ladder(comparison: Comparison) -> list[Rung]:
    """Small DNNs of growing width, trained as the compared one is, that a solver can cope with."""
    return [
        trained_rung(comparison, "dnn", f"dnn-{width}-{width}", {"sizes": [width, width]})
        for width in comparison.preset.dnn_ladder
    ]


def cnn_ladder(comparison: Comparison) -> list[Rung]:
    """Small CNNs of ever more kernels, trained as the compared one is."""
    small = is_small(comparison.train.input_shape)
    return [
        trained_rung(
            comparison, "cnn", f"cnn-{kernels}-kernels", cnn_config(kernels, LADDER_HIDDEN, small=small)
        )
        for kernels in comparison.preset.cnn_ladder
    ]


def trained_rung(comparison: Comparison, family: str, name: str, config: dict[str, Any]) -> Rung:
    epochs = comparison.preset.epochs[family]
    subject = trained_subject(
        comparison, Contender(name, family, config), comparison.train, FIRST_SEED, epochs
    )
    return Rung(subject, family, subject.described["validation_accuracy"])


def matched_accuracy(dnns: Sequence[Rung], cnns: Sequence[Rung]) -> tuple[Rung, Rung]:
    """The pair whose held-out accuracies differ least; among equals the more accurate, then the smaller."""

    def unlike(pair: tuple[Rung, Rung]) -> tuple[float, float, int]:
        one, other = (rung.validation_accuracy or 0.0 for rung in pair)
        return round(abs(one - other), 6), -(one + other), pair[0].units + pair[1].units

    return min(((dnn, cnn) for dnn in dnns for cnn in cnns), key=unlike)


def dnn_of_size(comparison: Comparison, units: int) -> Rung:
    """A DNN of two layers with exactly so many units."""
    sizes = [units - units // 2, units // 2]
    return trained_rung(comparison, "dnn", f"dnn-{sizes[0]}-{sizes[1]}", {"sizes": sizes})


def solvable_images(comparison: Comparison, subjects: Sequence[Subject]) -> list[int]:
    """The first test images, one of each class in turn, that every one of the networks gets right."""
    test = comparison.test
    right = np.ones(len(test), dtype=bool)
    for subject in {subject.weights: subject for subject in subjects}.values():
        right &= subject.predict(test.images) == test.labels
    chosen: list[int] = []
    for label in range(test.classes):
        found = np.flatnonzero(right & (test.labels == label))
        chosen += [int(found[0])] if found.size else []
    return chosen[: comparison.preset.milp_images]


def measure_rung(
    comparison: Comparison, rung: Rung, images: Sequence[int], pairing: str, matched_by: str
) -> EncodingRow:
    subject = rung.subject
    if subject.module is None:
        raise ValueError("the MILP of a network needs the network")
    answers = [measure_milp(comparison, subject, index) for index in images]
    key = comparison.key("accuracy", model=subject.name, weights=subject.weights)
    accuracy = comparison.record.measured(key, lambda: {"share": subject.accuracy(comparison.test)})["share"]
    limit = comparison.preset.milp_time_limit
    return EncodingRow(
        model=subject.name,
        family=rung.family,
        description=subject.contender.summary(subject.described["config"]),
        pairing=pairing,
        matched_by=matched_by,
        accuracy=accuracy,
        validation_accuracy=rung.validation_accuracy,
        parameters=count_parameters(subject.module),
        units=rung.units,
        variables=middle([answer.variables for answer in answers]),
        binaries=middle([answer.binaries for answer in answers]),
        rows=middle([answer.rows for answer in answers]),
        undecided=middle([answer.undecided for answer in answers]),
        nodes=middle([answer.nodes for answer in answers]),
        seconds=middle([answer.seconds if answer.solved else limit for answer in answers]),
        solved_share=sum(answer.solved for answer in answers) / max(1, len(answers)),
        answers=answers,
    )


def measure_milp(comparison: Comparison, subject: Subject, index: int) -> MilpAnswer:
    """The kept answer, or a new one with a line on the console."""
    key = comparison.key(
        "milp",
        model=subject.name,
        weights=subject.weights,
        index=index,
        norm=comparison.norm,
        limit=comparison.preset.milp_time_limit,
        solver=SOLVER,
    )
    known = comparison.record.has(key)
    answer = comparison.row(MilpAnswer, key, lambda: solve_milp(comparison, subject, index))
    if not known:
        outcome = "solved" if answer.solved else "not solved"
        comparison.progress.say(
            f"{subject.name}, test image {index}: {answer.binaries} binaries, {answer.nodes} nodes, "
            f"{outcome} in {answer.seconds:.1f} s"
        )
    return answer


def solve_milp(comparison: Comparison, subject: Subject, index: int) -> MilpAnswer:
    """Count the columns and rows, then have the solver find the nearest image."""
    classifier = subject.classifier
    if classifier is None:
        raise ValueError(f"{subject.name} has no MILP")
    image, label = comparison.test.image(index), int(comparison.test.labels[index])
    radius, sizes = milp_sizes(classifier, Question(
        image.astype(np.float64).ravel(), label, classifier.network.classes, norm=comparison.norm
    ))  # fmt: skip
    with comparison.progress.show_interval() as report:
        verdict = nearest(
            classifier, image, label, norm=comparison.norm, method="milp", solver=SOLVER,
            time_limit=comparison.preset.milp_time_limit, threads=comparison.threads, on_progress=report,
        )  # fmt: skip
    upper, lower = verdict.distance, verdict.lower_bound
    solved = verdict.outcome in ("nearest", "robust")
    return MilpAnswer(
        index=index,
        radius=radius,
        **sizes,
        nodes=verdict.nodes,
        seconds=round(verdict.seconds, 3),
        lower=lower if math.isfinite(lower) else 0.0,
        upper=upper,
        gap=0.0 if solved else None if not upper else max(0.0, (upper - lower) / upper),
        solved=solved,
    )


def milp_sizes(classifier: Classifier, question: Question) -> tuple[float | None, dict[str, int]]:
    """The radius that an attack leaves, and the size of the tight form within it, as the solver gets it."""
    domain, goal = question.domain(), question.goal()
    witness = find_witness(classifier.network, domain, goal)
    radius = None if witness is None else domain.distance(witness)
    domain = domain if radius is None else domain.within(radius)
    network = classifier.network.simplified()
    local = presolve(network, domain, goal, linear_bounds(network, domain))
    milp = encode(local.network, domain, local.goal, local.bounds, "tight").milp
    sizes = {"variables": milp.columns, "binaries": milp.binaries, "rows": milp.rows}
    return radius, {**sizes, "undecided": local.open_units}


def middle(values: Sequence[float]) -> float:
    return float(statistics.median(values)) if values else 0.0
