"""What a training was started with, kept in its checkpoint so that it can go on without being told again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from closecall.errors import InputError
from closecall.models.blocks import Block
from closecall.train.checkpoint import broken_checkpoint, load_progress
from closecall.train.plan import TrainingPlan


@dataclass(frozen=True)
class Started:
    """A model's kind and whole architecture, the data set and the plan."""

    kind: str
    config: dict[str, Any]
    dataset: str
    plan: TrainingPlan

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def option(self, name: str) -> Any:
        """What an option of the command line was, None if it was left out or the model has none such."""
        named = {"model": self.kind, "dataset": self.dataset, "learning_rate": self.plan.base_learning_rate}
        return {**self.config, **asdict(self.plan), **named}.get(name)

    def free_options(self) -> tuple[str, ...]:
        """Those that may change on the way without changing what the epochs so far would have been."""
        return ("threads",) if self.plan.epochs_matter else ("threads", "epochs")


def read_started(checkpoint: Path) -> Started:
    """What the training of a checkpoint was started with."""
    try:
        about = load_progress(checkpoint)["about"]
        plan = TrainingPlan(**about["plan"])
        return Started(str(about["kind"]), dict(about["config"]), str(about["dataset"]), plan)
    except (KeyError, TypeError, ValueError) as error:
        reason = ValueError("it does not say what it was started with")
        raise broken_checkpoint(checkpoint, reason) from error


def go_on(checkpoint: Path, given: Mapping[str, Any]) -> Started:
    """The training of a checkpoint; options that are given again must be those it was started with.

    More epochs (at a constant learning rate) and another number of threads are allowed, and so is another
    path to the data, which must then hold the same images.
    """
    started = read_started(checkpoint)
    free = started.free_options()
    for name, value in given.items():
        was, now = started.option(name), _recorded(name, value)
        moved = name == "dataset" and Path(value).exists()
        if name not in free and not moved and was != now:
            raise InputError(
                f"{checkpoint.parent} was started {_said(name, was)}, not {_said(name, now)}: "
                "leave that option out to go on, or start again with --overwrite."
            )
    plan = replace(started.plan, **{name: given[name] for name in free if name in given})
    return replace(started, plan=plan, dataset=given.get("dataset", started.dataset))


def _recorded(name: str, value: Any) -> Any:
    """An option as a model's description has it."""
    return [Block.parse(text).as_dict() for text in value] if name == "blocks" else value


def _said(name: str, value: Any) -> str:
    """An option and its value as they are typed."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return f"with --{'' if value else 'no-'}{option}"
    if value is None:
        return f"without --{option}"
    if isinstance(value, list):
        value = ",".join(str(Block(**item)) if isinstance(item, dict) else str(item) for item in value)
    return f"with --{option} {'full' if name == 'batch' and value == 0 else value}"
