"""The whole comparison, top to bottom: train, measure, write down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from closecall import data
from closecall.bench.measure import raising_every_interrupt
from closecall.compare.answers import measure_models
from closecall.compare.comparison import FIRST_SEED, Comparison, spread
from closecall.compare.contenders import contenders_from
from closecall.compare.distances import choose_images, measure_distances
from closecall.compare.encodings import measure_encodings
from closecall.compare.few import measure_few
from closecall.compare.how import describe_how
from closecall.compare.insides import look_inside
from closecall.compare.moved import measure_moved
from closecall.compare.overlapping import measure_overlapping
from closecall.compare.presets import KINDS, preset_named
from closecall.compare.progress import Progress
from closecall.compare.record import FILE as MEASUREMENTS
from closecall.compare.record import Record
from closecall.compare.results import FILE, Results
from closecall.compare.subjects import subjects_of
from closecall.compare.tables import write_tables
from closecall.errors import InputError
from closecall.files import held_alone, prepare_folder, write_whole
from closecall.question.norms import norm_named
from closecall.train.threads import using_threads

SETTINGS = "comparison.json"
LOCK = ".lock"


@dataclass(frozen=True)
class Wishes:
    """What the user asks for; None is what the preset says."""

    dataset: str
    models: Sequence[str] = KINDS
    given: Mapping[str, str] = field(default_factory=dict)
    preset: str = "quick"
    seeds: int | None = None
    norm: str = "linf"
    images: int | None = None
    time_limit: float | None = None
    threads: int = 1


def compare(wishes: Wishes, out: Path, progress: Progress) -> Results:
    """Measure what is not yet in the folder, and write results.json and the tables."""
    check_wishes(wishes)
    prepare_folder(out)
    with alone_in(out), using_threads(wishes.threads), raising_every_interrupt():
        comparison, all_train_images = prepare(wishes, out, progress)
        results = measure(comparison, all_train_images)
        write_whole(out / FILE, results.to_json().encode())
        write_tables(results, out)
    return results


def prepare(wishes: Wishes, out: Path, progress: Progress) -> tuple[Comparison, int]:
    """Load the images and the record, and check everything else before the first second is spent."""
    with progress.waiting(f"loading {wishes.dataset}"):
        train, test = data.load_dataset(wishes.dataset, "train"), data.load_dataset(wishes.dataset, "test")
    preset = preset_named(wishes.preset, train.input_shape)
    preset = replace(
        preset,
        seeds=preset.seeds if wishes.seeds is None else wishes.seeds,
        images=min(len(test), preset.images if wishes.images is None else wishes.images),
        time_limit=preset.time_limit if wishes.time_limit is None else wishes.time_limit,
    )
    contenders = contenders_from(wishes.models, wishes.given, preset, train.input_shape)
    claim_folder(out, wishes)
    fewer = train.subset(spread(len(train), preset.train_images or len(train)))
    record = Record(out / MEASUREMENTS)
    if kept := len(list(record)):
        progress.say(f"{kept} measurements are kept from before; what is missing is measured now")
    comparison = Comparison(
        dataset=wishes.dataset,
        train=fewer,
        test=test,
        preset=preset,
        contenders=contenders,
        seeds=[FIRST_SEED + number for number in range(preset.seeds)],
        norm=norm_named(wishes.norm).name,
        threads=wishes.threads,
        folder=out,
        record=record,
        progress=progress,
    )
    return comparison, len(train)


def check_wishes(wishes: Wishes) -> None:
    norm_named(wishes.norm)
    if wishes.dataset == "multimnist":
        raise InputError(
            "multimnist has two classes in each image: compare on mnist, which adds the overlapping digits."
        )
    for name, value in (
        ("--seeds", wishes.seeds),
        ("--images", wishes.images),
        ("--threads", wishes.threads),
    ):
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1, not {value}.")
    if wishes.time_limit is not None and not 0 < wishes.time_limit < float("inf"):
        raise InputError(f"--time-limit must be a positive number of seconds, not {wishes.time_limit:g}.")


def alone_in(out: Path) -> AbstractContextManager[None]:
    """Hold a folder for as long as this lasts: two runs would train the same networks over each other."""
    refusal = f"Another comparison is at work in {out}: wait for it, or choose another folder with --out."
    return held_alone(out / LOCK, refusal)


def claim_folder(out: Path, wishes: Wishes) -> None:
    """A folder belongs to one data set and one preset, so that no figure is taken for another's."""
    path = out / SETTINGS
    wanted = {"dataset": wishes.dataset, "preset": wishes.preset}
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else wanted
    except ValueError:
        found = {}
    if found != wanted:
        said = " with the preset ".join(str(found.get(name, "unknown")) for name in wanted)
        raise InputError(f"{out} holds the comparison of {said}: choose another folder with --out.")
    write_whole(path, (json.dumps(wanted) + "\n").encode())


def measure(comparison: Comparison, all_train_images: int) -> Results:
    """Section by section, as the page shows them."""
    comparison.progress.heading(f"training on {comparison.dataset}")
    subjects = {contender.name: subjects_of(comparison, contender) for contender in comparison.contenders}
    first = [networks[0] for networks in subjects.values()]
    models = measure_models(comparison, list(subjects.values()))
    distances = measure_distances(comparison, first)
    transformed = measure_moved(comparison, subjects)
    few = measure_few(comparison)
    overlapping = measure_overlapping(comparison)
    capsules = look_inside(comparison, first)
    encodings = measure_encodings(comparison, first)
    return Results(
        dataset=comparison.dataset,
        class_names=list(comparison.test.class_names),
        input_shape=list(comparison.test.input_shape),
        train_images=len(comparison.train),
        test_images=len(comparison.test),
        preset=comparison.preset.name,
        seeds=comparison.seeds,
        norm=comparison.norm,
        distance_images=choose_images(comparison),
        models=models,
        distances=distances,
        transformed=transformed,
        few=few,
        overlapping=overlapping,
        capsules=capsules,
        encodings=encodings,
        how=describe_how(comparison, models, all_train_images),
    )
