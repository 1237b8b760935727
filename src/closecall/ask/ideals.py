"""ideals(): the best images of many classes, as several models see them, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from closecall._version import __version__
from closecall.ask.ideal import Ideal, ideal
from closecall.clock import Clock
from closecall.encoding.encode import Costs, check_costs
from closecall.errors import QueryError
from closecall.question.checks import check_class, check_classes, pixel_limits, whole_number
from closecall.question.effort import Effort
from closecall.question.names import SolverName
from closecall.question.variation import checked_smooth
from closecall.readers import Classifier, read

OnCell = Callable[[int, int, Ideal], object]  # the number of the model, that of the class, and its image


@dataclass(frozen=True, eq=False)
class Ideals:
    """One row of ideal images for each model, one column for each class; a row ends where time or Ctrl-C did.

    `images[m][k]` is the `Ideal` of model m and class `targets[k]`.
    """

    models: tuple[str, ...]
    targets: tuple[int, ...]
    images: tuple[tuple[Ideal, ...], ...]
    seconds: float
    notes: tuple[str, ...] = ()
    version: str = __version__

    @property
    def proven(self) -> int:
        """How many are proven to be the best."""
        return sum(found.outcome != "unresolved" for row in self.images for found in row)

    @property
    def nodes(self) -> int:
        return sum(found.nodes for row in self.images for found in row)

    @property
    def outcome(self) -> Literal["ideal", "unresolved"]:
        """`ideal` when every image is proven to be the best for what was asked."""
        return "ideal" if self.proven == len(self.models) * len(self.targets) else "unresolved"

    def summary(self) -> str:
        """The answer in one sentence."""
        asked = len(self.models) * len(self.targets)
        return (
            f"Ideal images: {sum(map(len, self.images))} of {asked} found, {self.proven} of them proven best."
        )

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, Any]:
        """All but the arrays, ready for JSON."""
        return {
            "outcome": self.outcome,
            "models": self.models,
            "targets": self.targets,
            "images": [[found.to_json() for found in row] for row in self.images],
            "seconds": self.seconds,
            "nodes": self.nodes,
            "notes": self.notes,
            "version": self.version,
        }


def ideals(
    models: object,
    targets: Sequence[int] | Literal["all"] = "all",
    *,
    smooth: float = 0.0,
    pixel_range: tuple[float, float] = (0.0, 1.0),
    costs: Costs | None = None,
    input_shape: tuple[int, ...] | None = None,
    solver: SolverName = "highs",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    gap: float = Effort.gap,
    on_cell: OnCell | None = None,
) -> Ideals:
    """Find the best images of many classes for one or several models: a sheet to compare what they look for.

    Each image gets an equal share of the time that is left, so that what is easy leaves more to the others.

    Args:
        models: One model or a list of them, each as `ideal` takes it; all must tell apart as many classes.
        targets: "all" classes, or a list of their numbers.
        smooth: What is taken off for each unit of total variation; see `ideal`.
        pixel_range: The least and the largest value of a pixel.
        costs: The paper's extra costs, to be minimised instead.
        input_shape: The shape of one image, for models that leave it open.
        solver: "highs", "scip", "gurobi" or "cplex", for the paper's costs.
        time_limit: Seconds for all images together.
        threads: Threads of the search.
        gap: The relative gap between lead and bound to stop at.
        on_cell: Called with (model, class, image) as each image is found.
    """
    effort, clock = Effort("milp", solver, time_limit, threads, gap), Clock(time_limit)
    check_costs(costs)
    checked_smooth(smooth)
    pixel_limits(pixel_range)
    listed = list(models) if isinstance(models, (list, tuple)) else [models]
    if not listed:
        raise QueryError("no model is given: give one, or a list of several.")
    classifiers = [m if isinstance(m, Classifier) else read(m, input_shape) for m in listed]
    wanted = wanted_targets(targets, classifiers)
    rows: list[list[Ideal]] = [[] for _ in classifiers]
    notes: tuple[str, ...] = ()
    places = [(row, target) for row in range(len(rows)) for target in wanted]
    with clock.noting_interrupts():
        try:
            for done, (row, target) in enumerate(places):
                seconds = max(clock.left / (len(places) - done), LEAST_SECONDS)
                found = ideal(
                    classifiers[row], target, smooth=smooth, pixel_range=pixel_range, costs=costs,
                    solver=effort.solver, time_limit=seconds, threads=threads, gap=gap,
                )  # fmt: skip
                rows[row].append(found)
                if on_cell is not None:
                    on_cell(row, target, found)
                clock.check()
        except KeyboardInterrupt:
            notes = ("interrupted: images that were not begun are left out",)
    return Ideals(
        tuple(name_of(model) for model in listed), wanted, tuple(map(tuple, rows)), clock.seconds, notes
    )


LEAST_SECONDS = 0.01  # when the time is over: a bound at least


def wanted_targets(targets: Sequence[int] | str, classifiers: Sequence[Classifier]) -> tuple[int, ...]:
    """The classes that all models tell apart, or those of them that are asked for."""
    sizes = sorted({classifier.network.classes for classifier in classifiers})
    for size in sizes:
        check_classes(size)
    if len(sizes) > 1:
        raise QueryError(
            f"the models tell apart {sizes[0]} and {sizes[-1]} classes: a sheet needs models of the same "
            "classes."
        )
    if isinstance(targets, str) and targets == "all":
        return tuple(range(sizes[0]))
    if isinstance(targets, str) or not hasattr(targets, "__iter__") or not len(targets):
        raise QueryError(f"the targets must be 'all' or a list of classes such as [3, 8], got {targets!r}.")
    wanted = tuple(dict.fromkeys(whole_number("target", target) for target in targets))
    for target in wanted:
        check_class("target", target, sizes[0])
    return wanted


def name_of(model: object) -> str:
    """What a sheet calls a model."""
    if isinstance(model, (str, Path)):
        text = str(model)
        return text if text.startswith("zoo:") else Path(text).stem
    return Path(model.source).stem if isinstance(model, Classifier) else type(model).__name__
