"""`closecall ideal`: the image that a model finds the best example of a class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import options as o
from closecall.cli.answering import end_by, ending_early, save_and_show
from closecall.cli.application import app
from closecall.cli.asking import class_names_of, costs_of, effort_of, read_model, read_shape
from closecall.cli.grouping import grouped

if TYPE_CHECKING:
    from closecall.ask.ideal import Ideal
    from closecall.encoding.encode import Costs
    from closecall.question.effort import Effort


@app.command()
@grouped(without=("method", "verbose"))
def ideal(
    *,
    model: o.Model,
    target: Annotated[
        int, typer.Option(help="The class to find the best image of.", rich_help_panel=o.QUESTION)
    ],
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

    tried, shape = effort_of(effort), read_shape(input_shape)
    if output.out is not None:
        prepare_folder(output.out)
    found = find_best(model, shape, target, tried, costs_of(costs))
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

        save_ideal({**record, "image": None}, found.image, folder, title=f"the ideal {names[target]}")

    save_and_show(save, record, found.summary(names), output)
    end_by(found.outcome)


def find_best(
    model: str, shape: tuple[int, ...] | None, target: int, effort: Effort, costs: Costs | None
) -> Ideal:
    from closecall.cli.progress import showing_interval, waiting

    with ending_early():
        with waiting("reading the model"):
            from closecall.ask.ideal import ideal as find_ideal

            classifier = read_model(model, shape)
        with showing_interval("lead") as report:
            return find_ideal(
                classifier,
                target,
                costs=costs,
                solver=effort.solver,
                time_limit=effort.time_limit,
                threads=effort.threads,
                gap=effort.gap,
                on_progress=report,
            )
