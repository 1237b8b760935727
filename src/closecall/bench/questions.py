"""From a yardstick to its questions: models read once, images picked, properties parsed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closecall import data
from closecall.ask.nearest import certify, nearest
from closecall.ask.vnncomp import decide
from closecall.bench.yardsticks import Contender, Family, Folders, Instance, Run, Yardstick, instances_in
from closecall.bounds import linear_bounds
from closecall.data import Dataset
from closecall.models.zoo import ZOO_PREFIX, zoo_names
from closecall.question.question import Question
from closecall.readers import Classifier, read
from closecall.readers.vnnlib import Property, read_property


@dataclass(frozen=True, eq=False)
class ImageQuestion:
    """Which image near this one is classified otherwise?"""

    network: str
    classifier: Classifier
    family: Family
    image: int
    pixels: NDArray[np.float32]
    label: int

    def identity(self) -> dict[str, Any]:
        family = self.family
        return {
            "network": self.network,
            "image": self.image,
            "norm": family.norm,
            "target": family.target,
            "cap": family.cap,
            "radius": family.radius,
        }

    def answer(self, contender: Contender, limit: float, threads: int) -> dict[str, Any]:
        """Search; the seconds are those of the search alone, without reading the model."""
        family = self.family
        asked: dict[str, Any] = {"norm": family.norm, "target": family.target, "cap": family.cap}
        asked["pixels"] = contender.pixels
        how: dict[str, Any] = {"method": contender.method, "solver": contender.solver, "threads": threads}
        if family.radius is None:
            verdict = nearest(self.classifier, self.pixels, self.label, **asked, **how, time_limit=limit)
        else:
            verdict = certify(
                self.classifier, self.pixels, self.label, radius=family.radius, **asked, **how,
                time_limit=limit,
            )  # fmt: skip
        return {
            "outcome": verdict.outcome,
            "seconds": verdict.seconds - verdict.seconds_by_stage.get("read", 0.0),
            "lower": None if math.isinf(verdict.lower_bound) else verdict.lower_bound,
            "distance": verdict.distance,
            "nodes": verdict.nodes,
            "note": "; ".join(verdict.notes),
        }

    def undecided(self, distance: float | None) -> int | None:
        """How many units linear bounds leave open within the radius, or within the distance found."""
        radius = self.family.radius if self.family.radius is not None else distance
        if radius is None or radius == 0:
            return None
        question = Question(
            self.pixels.ravel().astype(np.float64), self.label, self.classifier.network.classes,
            norm=self.family.norm, cap=self.family.cap, radius=radius,
        )  # fmt: skip
        network = self.classifier.network.simplified()
        return linear_bounds(network, question.domain()).undecided(network)


@dataclass(frozen=True, eq=False)
class InstanceQuestion:
    """Is there an input that violates this VNN-LIB property?"""

    classifier: Classifier
    instance: Instance
    question: Property

    def identity(self) -> dict[str, Any]:
        return {
            "network": self.instance.network,
            "image": self.instance.property_name,
            "norm": "box",
            "target": "vnnlib",
            "cap": None,
            "radius": None,
            "expected": self.instance.expected,
        }

    def answer(self, contender: Contender, limit: float, threads: int) -> dict[str, Any]:
        return {"outcome": decide(self.classifier, self.question, seconds=limit, threads=threads).answer}

    def undecided(self, distance: float | None) -> int | None:
        return None


BenchQuestion = ImageQuestion | InstanceQuestion


@dataclass(frozen=True)
class Plan:
    """The questions of a yardstick, and a sentence for each thing that had to be left out."""

    questions: list[BenchQuestion]
    left_out: list[str]


def plan(yardstick: Yardstick, run: Run, folders: Folders) -> Plan:
    """Read the models and the images or properties of a yardstick."""
    name = yardstick.folder
    if name is None:
        return plan_images(yardstick, run)
    folder = folders.get(name)
    if folder is None:
        why = f"no folder of instances was given by --{name} or CLOSECALL_{name.upper()}"
        return Plan([], [f"{yardstick.name}: left out, since {why}."])
    every = 1 if run == "full" else yardstick.quick_every
    return Plan([*read_instances(folder, every)], [])


def plan_images(yardstick: Yardstick, run: Run) -> Plan:
    planned = Plan([], [])
    for family in yardstick.families:
        count = (family.images or yardstick.images) if run == "full" else yardstick.quick_images
        dataset = load_test_images(family.dataset)
        for network in family.networks:
            if network.startswith(ZOO_PREFIX) and network.removeprefix(ZOO_PREFIX) not in zoo_names():
                sentence = f"{yardstick.name}: {network} is not in this version's zoo, so it is left out."
                if sentence not in planned.left_out:
                    planned.left_out.append(sentence)
                continue
            classifier = read_once(network)
            for image in first_correct(classifier, dataset, count):
                pixels, label = dataset.image(image), int(dataset.labels[image])
                planned.questions.append(
                    ImageQuestion(network, classifier, family, image, pixels, label)
                )  # fmt: skip
    return planned


def first_correct(classifier: Classifier, dataset: Dataset, count: int) -> list[int]:
    """The first test images that the model classifies correctly."""
    found: list[int] = []
    for index in range(len(dataset)):
        if len(found) == count:
            break
        if classifier.predict(dataset.image(index)) == dataset.labels[index]:
            found.append(index)
    return found


def read_instances(folder: Path, every: int) -> list[InstanceQuestion]:
    questions = []
    for instance in instances_in(folder)[::every]:
        classifier = read_once(str(folder / instance.network))
        network = classifier.network
        question = read_property(folder / instance.property_name, network.input_size, network.classes)
        questions.append(InstanceQuestion(classifier, instance, question))
    return questions


@cache
def read_once(model: str) -> Classifier:
    return read(model)


@cache
def load_test_images(name: str) -> Dataset:
    return data.load_dataset(name, "test")
