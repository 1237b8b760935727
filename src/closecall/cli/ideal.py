"""`closecall ideal`: the image that a model finds the best example of a class, or a sheet of many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import completion as c
from closecall.cli import options as o
from closecall.cli.answering import end_by, ending_early, save_and_show
from closecall.cli.application import app
from closecall.cli.asking import class_names_of, costs_of, effort_of, read_model, read_shape
from closecall.cli.grouping import grouped
from closecall.errors import InputError

if TYPE_CHECKING:
    from closecall.ask.ideal import Ideal
    from closecall.ask.ideals import Ideals
    from closecall.encoding.encode import Costs
    from closecall.question.effort import Effort
    from closecall.verdict.sheet import Cell


@app.command()
@grouped(without=("method", "verbose"))
def ideal(
    *,
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            help="An .onnx file, a folder that `closecall train` wrote, or zoo:NAME; given again for a sheet "
            "of several models side by side.",
            autocompletion=c.complete_model,
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            help="The class to find the best image of; all, or several such as 3,8, for a sheet.",
            rich_help_panel=o.QUESTION,
        ),
    ],
    smooth: Annotated[
        float,
        typer.Option(
            help="What is taken off for each unit of total variation, so that the image looks like "
            "something, such as 0.1.",
            rich_help_panel=o.QUESTION,
        ),
    ] = 0.0,
    input_shape: o.InputShape = None,
    costs: o.CostOptions,
    effort: o.EffortOptions,
    output: o.OutputOptions,
) -> None:
    """Find the image that the model finds the best example of a class.

    The lead of that class's score over all others is maximised over the pixel box; with costs, the paper's
    objective is minimised instead. Exit code 0: proven best; 3: the interval is still open.
    """
    from closecall.files import prepare_folder
    from closecall.question.variation import checked_smooth

    targets = read_targets(target)
    tried, shape = effort_of(effort), read_shape(input_shape)
    checked_smooth(smooth)
    if output.out is not None:
        prepare_folder(output.out)
    asked = Asked(shape, smooth, tried, costs_of(costs))
    if len(model) == 1 and isinstance(targets, list) and len(targets) == 1:
        tell_one(asked.best(model[0], targets[0]), model[0], output)
    else:
        tell_sheet(asked.sheet(model, targets), model, output)


def read_targets(text: str) -> str | list[int]:
    """`all`, the number of a class, or several such as 3,8."""
    if text == "all":
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--target takes the number of a class, several such as 3,8, or all, not {text!r}."
        ) from None


class Asked:
    """What is asked of every model and class."""

    def __init__(
        self, shape: tuple[int, ...] | None, smooth: float, effort: Effort, costs: Costs | None
    ) -> None:
        self.shape, self.effort, self.smooth, self.costs = shape, effort, smooth, costs

    def best(self, model: str, target: int) -> Ideal:
        from closecall.cli.progress import showing_interval, waiting

        effort = self.effort
        with ending_early():
            with waiting("reading the model"):
                from closecall.ask.ideal import ideal as find_ideal

                classifier = read_model(model, self.shape)
            with showing_interval("lead less variation" if self.smooth else "lead") as report:
                return find_ideal(
                    classifier, target, smooth=self.smooth, costs=self.costs, solver=effort.solver,
                    time_limit=effort.time_limit, threads=effort.threads, gap=effort.gap, on_progress=report,
                )  # fmt: skip

    def sheet(self, models: list[str], targets: str | list[int]) -> Ideals:
        from closecall.cli.progress import Wait, live, waiting

        effort = self.effort
        with ending_early():
            with waiting("reading the models"):
                from closecall.ask.ideals import ideals

                classifiers = [read_model(model, self.shape) for model in models]
            shown = Wait("looking for the first image")

            def on_cell(row: int, target: int, found: Ideal) -> None:
                shown.what = f"{models[row]}, class {target}: lead {found.lead:.4g}"

            with live(shown):
                return ideals(
                    classifiers, targets, smooth=self.smooth, costs=self.costs, solver=effort.solver,  # type: ignore[arg-type]
                    time_limit=effort.time_limit, threads=effort.threads, gap=effort.gap, on_cell=on_cell,
                )  # fmt: skip


def tell_one(found: Ideal, model: str, output: o.OutputOptions) -> None:
    """Print and save one image, and end with its exit code."""
    names = class_names_of(model, len(found.scores))
    record = {
        **found.to_json(),
        "image": found.image.tolist(),
        "scores": found.scores.tolist(),
        "class_names": list(names),
        "model": model,
    }

    def save(folder: Path) -> None:
        from closecall.verdict.saved import save_ideal

        save_ideal({**record, "image": None}, found.image, folder, title=f"the ideal {names[found.target]}")

    save_and_show(save, record, found.summary(names), output)
    end_by(found.outcome)


def tell_sheet(found: Ideals, models: list[str], output: o.OutputOptions) -> None:
    """Print and save a sheet, and end with the exit code of the whole."""
    classes = max((len(cell.scores) for row in found.images for cell in row), default=0)
    names = class_names_of(models[0], classes)
    record = {**found.to_json(), "models": models, "class_names": list(names)}

    def save(folder: Path) -> None:
        from closecall.verdict.saved import save_sheet
        from closecall.verdict.sheet import sheet_picture

        rows = [[cell_of(one) for one in row] for row in found.images]
        shown = [
            model.removeprefix("zoo:") if model.startswith("zoo:") else Path(model).stem for model in models
        ]
        columns = [names[target] if target < len(names) else str(target) for target in found.targets]
        images = [[one.image for one in row] for row in found.images]
        save_sheet(record, images, sheet_picture(rows, shown, columns), folder)

    save_and_show(save, record, found.summary(), output)
    end_by(found.outcome)


def cell_of(found: Ideal) -> Cell:
    from closecall.verdict.sheet import Cell

    proven = ", proven" if found.outcome != "unresolved" else ""
    return Cell(found.image, f"lead {found.lead:.3g}{proven}")
