"""How a comparison was made, and what it leaves out."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Iterable

from closecall._version import __version__
from closecall.bench.measure import PACKAGES, processor
from closecall.compare.comparison import FIRST_SEED, Comparison
from closecall.compare.contenders import Contender
from closecall.compare.encodings import SOLVER
from closecall.compare.page.names import title_of
from closecall.compare.presets import BASELINE_HIDDEN, BASELINE_KERNELS
from closecall.compare.record import Measurement
from closecall.compare.results import HowMade, ModelRow
from closecall.compare.subjects import MOST_UNITS
from closecall.question.effort import Effort
from closecall.question.question import DEFAULT_MARGIN
from closecall.train import TrainingPlan

SEEDS_FOR_A_SPREAD = 3


def describe_how(comparison: Comparison, models: list[ModelRow], all_train_images: int) -> HowMade:
    """Versions, machine, command, limits; times are those of the measurements in use, kept ones included."""
    used = comparison.record.used
    dates = sorted(measurement.date for measurement in used)
    return HowMade(
        version=__version__,
        python=platform.python_version(),
        packages=installed_versions(),
        machine=f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        command=shlex.join(["closecall", *sys.argv[1:]]),
        started=dates[0] if dates else "",
        finished=dates[-1] if dates else "",
        measured_seconds=round(sum(seconds_of(measurement) for measurement in used), 1),
        threads=comparison.threads,
        solver=SOLVER,
        time_limit=comparison.preset.time_limit,
        milp_time_limit=comparison.preset.milp_time_limit,
        gap=Effort.gap,
        margin=DEFAULT_MARGIN,
        training={
            contender.name: training_sentence(comparison, contender) for contender in comparison.contenders
        },
        narrowed=[
            *narrowed_models(comparison, all_train_images),
            *narrowed_questions(comparison, models),
            *comparison.narrowed,
        ],
    )


def seconds_of(measurement: Measurement) -> float:
    """How long it took; a training counts its epochs, which may have been spread over several runs."""
    trained = measurement.key["what"] == "training"
    return float(measurement.value["seconds"]) if trained else measurement.seconds


def installed_versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def training_sentence(comparison: Comparison, contender: Contender) -> str:
    """How one model was trained."""
    if contender.source:
        return f"not trained here: {contender.source}"
    plan = comparison.recipes.plan(
        contender.kind, comparison.preset.epochs[contender.kind], FIRST_SEED, comparison.threads
    )
    loss = "its own loss" if contender.kind == "capsnet" else "cross-entropy"
    return (
        f"{plan.epochs} epochs of {len(comparison.train):,} images, one in twelve of them held out to choose "
        f"the epoch, batches of {plan.batch}, Adam with a learning rate of {plan.learning_rate:g} falling as "
        f"a cosine, weight decay {plan.weight_decay:g}, {loss}, no image moved or changed"
    )


def narrowed_models(comparison: Comparison, all_train_images: int) -> list[str]:
    """What a longer run would train more of."""
    preset, sentences = comparison.preset, []
    trained = {contender.kind for contender in comparison.contenders if not contender.source}
    if len(comparison.train) < all_train_images:
        sentences.append(f"Training used {len(comparison.train):,} of {all_train_images:,} images.")
    if "cnn-baseline" in trained and preset.narrow_baseline:
        config = preset.sizes["cnn-baseline"]
        sentences.append(
            f"cnn-baseline has {hyphened(config['kernels'])} kernels and {hyphened(config['hidden'])} dense "
            f"units instead of the paper's {hyphened(BASELINE_KERNELS)} and {hyphened(BASELINE_HIDDEN)}: "
            "train that with `closecall train --model cnn-baseline` and bring it with "
            "`--model cnn-baseline=PATH`."
        )
    if "capsnet" in trained:
        sentences.append("capsnet is the preset small, made for a CPU, not the paper's 8.2 M parameters.")
    if len(comparison.seeds) < SEEDS_FOR_A_SPREAD:
        seeds = "is one seed" if len(comparison.seeds) == 1 else f"are {len(comparison.seeds)} seeds"
        sentences.append(f"There {seeds}, too few to tell how much results spread.")
    return sentences


def narrowed_questions(comparison: Comparison, models: list[ModelRow]) -> list[str]:
    """What a longer run would ask more of."""
    preset = comparison.preset
    kinds = {contender.kind for contender in comparison.contenders}
    sentences = [
        f"Distances were asked for {preset.images} test images (those of each class in turn, right or wrong) "
        f"of the networks with seed {FIRST_SEED}, with {preset.time_limit:g} s for each; an interval that is "
        "not closed by then stays open."
    ]
    if any(model.units is not None and not model.provable for model in models):
        sentences.append(
            f"Networks of more than {MOST_UNITS:,} units are attacked only; nothing is proven there."
        )
    if len(comparison.moved_test) < len(comparison.test):
        sentences.append(
            f"Moved images and training on few images are tested on {len(comparison.moved_test):,} of "
            f"{len(comparison.test):,} test images."
        )
    if steps := ", ".join(
        f"{title_of(kind)} {count}" for kind, count in preset.few_steps.items() if kind in kinds
    ):
        sentences.append(f"Training on few images takes a fixed number of steps for each model ({steps}).")
    if {"dnn", "cnn"} <= kinds:
        held_out = TrainingPlan().held_out(len(comparison.train))
        sentences.append(
            f"MILPs were solved for {preset.milp_images} images at most, with {preset.milp_time_limit:g} s "
            f"for each; those of equal accuracy are matched on {held_out:,} held-out images, so that their "
            "test accuracies may differ."
        )
    return sentences


def hyphened(numbers: Iterable[int]) -> str:
    return "-".join(str(number) for number in numbers)
