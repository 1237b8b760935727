"""The product's main job on the embedded digits, in about a minute: train, ask, prove, show."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from closecall import data
from closecall.ask.nearest import nearest
from closecall.data import Dataset
from closecall.demo.page import Shown, Trained, demo_page
from closecall.files import prepare_folder, write_whole
from closecall.milp import OnProgress
from closecall.models import describe
from closecall.question.names import NormName
from closecall.readers import Classifier, read
from closecall.report.numbers import percent
from closecall.train import TrainingPlan, train_into
from closecall.verdict.saved import save_verdict
from closecall.verdict.verdict import Verdict

ShowInterval = Callable[[], AbstractContextManager[OnProgress]]
Wait = Callable[[str], AbstractContextManager[object]]

PAGE = "report.html"
DATASET = "digits"
NORM: NormName = "l1"
IMAGES = 6
SECONDS_PER_IMAGE = 10.0
PLAN = TrainingPlan(epochs=50, batch=64, learning_rate=1e-2, schedule="cosine", weight_decay=0.01, seed=1)


@dataclass(frozen=True)
class Contender:
    """One of the networks of the demo; `name` is its folder, `called` its name in a sentence."""

    name: str
    called: str
    title: str
    kind: str
    config: dict[str, Any]


CONTENDERS = (
    Contender("dnn", "DNN", "DNN, two layers of 16 units", "dnn", {"sizes": [16, 16]}),
    Contender(
        "cnn", "CNN", "CNN, 6 kernels 4×4 and max pooling", "cnn", {"blocks": ["6x4s2p1"], "hidden": [10]}
    ),
)


def run_demo(
    folder: str | Path,
    console: Console,
    show_interval: ShowInterval,
    wait: Wait = nullcontext,
    *,
    images: int = IMAGES,
    plan: TrainingPlan = PLAN,
) -> Path:
    """Train both networks, find the nearest adversarials of a few test digits, and write the page."""
    folder = Path(folder)
    prepare_folder(folder)
    described = [train_one(folder, contender, plan, console, wait) for contender in CONTENDERS]
    classifiers = [read(folder / contender.name) for contender in CONTENDERS]
    test = data.load_dataset(DATASET, "test")
    chosen = choose_images(test, classifiers, images)
    shown = []
    for contender, trained, classifier in zip(CONTENDERS, described, classifiers, strict=True):
        verdicts = []
        for index in chosen:
            with show_interval() as report:
                verdict = ask(classifier, test, index, report)
            keep(verdict, folder, contender.name, test, index)
            console.print(f"{contender.called}, test image {index}: {verdict.summary()}")
            verdicts.append(verdict)
        shown.append(Shown(trained, verdicts))
    page = folder / PAGE
    write_whole(page, demo_page(shown).html().encode())
    return page


def train_one(
    folder: Path, contender: Contender, plan: TrainingPlan, console: Console, wait: Wait
) -> Trained:
    """Train a network into a folder of its own."""
    home = folder / contender.name
    with wait(f"training a {contender.title}"):
        train_into(home, contender.kind, contender.config, DATASET, plan, overwrite=True)
    described = describe(home)
    console.print(
        f"{contender.called}: {percent(described['accuracy'])} of the test digits are read correctly "
        f"after {described['seconds']:.1f} s of training; saved in {home}"
    )
    with (home / "curves.csv").open(newline="") as file:
        curves = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return Trained(contender.called, contender.title, described, curves)


def choose_images(test: Dataset, classifiers: Sequence[Classifier], count: int) -> list[int]:
    """The first test image of each class that every network gets right, for the first classes."""
    chosen: list[int] = []
    for label in range(test.classes):
        for index in np.flatnonzero(test.labels == label):
            if all(classifier.predict(test.image(int(index))) == label for classifier in classifiers):
                chosen.append(int(index))
                break
        if len(chosen) == count:
            break
    return chosen


def ask(classifier: Classifier, test: Dataset, index: int, report: OnProgress) -> Verdict:
    """The nearest adversarial of one test image."""
    image, label = test.image(index), int(test.labels[index])
    return nearest(classifier, image, label, norm=NORM, time_limit=SECONDS_PER_IMAGE, on_progress=report)


def keep(verdict: Verdict, folder: Path, name: str, test: Dataset, index: int) -> None:
    """Save a verdict so that it can be replayed."""
    home = folder / "verdicts" / f"{name}-{index}"
    origin = {"dataset": DATASET, "split": "test", "index": index}
    save_verdict(verdict, home, model=str(folder / name), class_names=test.class_names, origin=origin)
