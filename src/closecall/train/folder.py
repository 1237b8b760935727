"""A training from a data set's name to a folder with everything in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import nn

from closecall import data
from closecall.errors import InputError
from closecall.files import make_and_try, write_whole
from closecall.models import build, save_model
from closecall.models.registry import as_trainable
from closecall.models.store import PARTIAL
from closecall.train.curves import curves_csv, curves_png
from closecall.train.evaluation import check_plan, evaluate, evaluate_proven
from closecall.train.loop import train
from closecall.train.plan import TrainingPlan
from closecall.train.progress import showing_progress
from closecall.train.record import TrainingRun
from closecall.train.started import Started

CHECKPOINT = "checkpoint.safetensors"
# The options of a loss, by the one that asks for it.
OPTIONS_OF_LOSSES = {
    "stable": ("stable_radius", "l1"),
    "adversarial": ("adversarial_ramp",),
    "certified": ("certified_reach", "certified_weight", "certified_ramp"),
}
WRITTEN = (CHECKPOINT, "model.safetensors", "model.json", "model.onnx", "curves.csv", "curves.png")


def train_into(
    folder: str | Path,
    kind: str,
    config: Mapping[str, Any],
    dataset: str,
    plan: TrainingPlan,
    *,
    resume: bool = False,
    overwrite: bool = False,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train a model on a data set, measure it on the test images, write everything and give its description.

    The folder gets `model.safetensors`, `model.json`, `model.onnx`, `curves.csv`, `curves.png` and the
    checkpoint. Input shape and number of classes are the data set's unless `config` says otherwise. The test
    images are looked at once, after training.
    """
    folder, console = Path(folder), console or Console(quiet=True)
    train_set, test_set = data.load_dataset(dataset, "train"), data.load_dataset(dataset, "test")
    fitting = {"input_shape": train_set.input_shape, "classes": train_set.classes}
    model = build(kind, {**fitting, **config}, seed=plan.seed)
    check_plan(model, train_set, plan)
    prepare_folder(folder, resume=resume, overwrite=overwrite)
    about = Started(kind, as_trainable(model).config(), dataset, plan).to_json()
    learned = len(train_set) - plan.held_out(len(train_set))
    with showing_progress(console, plan.epochs, learned) as listener:
        checkpoint = folder / CHECKPOINT
        run = train(
            model, train_set, plan, checkpoint=checkpoint, resume=resume, listener=listener, about=about
        )
    _, accuracy = evaluate(model, test_set)
    described = {**_description(dataset, plan, run, accuracy), "class_names": list(train_set.class_names)}
    if plan.radius_to_prove is not None:
        described["proven"] = evaluate_proven(model, test_set, plan.radius_to_prove)
    _write(folder, model, run, described, f"{kind} on {dataset}, {accuracy:.2%} on the test images")
    return described


def prepare_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Make a folder ready to write into, or say why it is not."""
    if resume and overwrite:
        raise InputError("Choose --resume to continue a training or --overwrite to start it again, not both.")
    try:
        make_and_try(folder)
        present = [name for name in WRITTEN if (folder / name).exists()]
        if overwrite:
            for name in present:
                (folder / name).unlink()
        if overwrite or resume:
            for partial in folder.glob(PARTIAL):
                partial.unlink()
    except OSError as error:
        raise InputError(
            f"Cannot use the folder {folder}: {error.strerror}; choose another with --out."
        ) from error
    if present and not resume and not overwrite:
        raise InputError(
            f"{folder} already holds {present[0]}: add --resume to continue that training "
            "or --overwrite to start it again."
        )


def _description(dataset: str, plan: TrainingPlan, run: TrainingRun, accuracy: float) -> dict[str, Any]:
    recipe = {**asdict(plan), "threads": run.threads}
    for asking, options in OPTIONS_OF_LOSSES.items():
        if recipe[asking] is None:
            for name in (asking, *options):
                del recipe[name]
    described: dict[str, Any] = {
        "dataset": dataset,
        "accuracy": accuracy,
        "validation_accuracy": run.validation_accuracy,
        "best_epoch": run.best_epoch,
        "recipe": recipe,
        "seconds": round(run.seconds, 2),
    }
    if run.validation_proven is not None:
        described["validation_proven"] = run.validation_proven
    return described if run.pruning is None else {**described, "pruning": asdict(run.pruning)}


def _write(folder: Path, model: nn.Module, run: TrainingRun, described: dict[str, Any], title: str) -> None:
    save_model(model, folder, **described)
    try:
        write_whole(folder / "curves.csv", curves_csv(run.history))
        write_whole(folder / "curves.png", curves_png(run.history, run.best_epoch, title))
    except OSError as error:
        raise InputError(f"Cannot write the curves into {folder}: {error.strerror}.") from error
