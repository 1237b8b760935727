"""`closecall universal`: one perturbation that turns a handful of images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from closecall.cli import completion as c
from closecall.cli import options as o
from closecall.cli.answering import end_by, ending_early, save_and_show
from closecall.cli.application import app
from closecall.cli.asking import effort_of, read_model, read_shape
from closecall.cli.batch_options import read_indices
from closecall.cli.grouping import grouped
from closecall.question.names import NORM_NAMES

if TYPE_CHECKING:
    from closecall.ask.universal import Asked
    from closecall.data import Split
    from closecall.question.effort import Effort
    from closecall.verdict.universal import Universal


@dataclass(frozen=True)
class ImagesOptions:
    """Which images."""

    dataset: Annotated[
        str,
        typer.Option(
            help="digits, mnist, fashion, cifar10, or a path.",
            rich_help_panel=o.IMAGE,
            autocompletion=c.complete_dataset,
        ),
    ]
    indices: Annotated[
        str,
        typer.Option(
            help="Which images, counted from 0: 1 to 10, such as 1,5,9 or 0:5.", rich_help_panel=o.IMAGE
        ),
    ]
    split: o.SplitName = "test"


@dataclass(frozen=True)
class TogetherOptions:
    """What is asked about all of them."""

    norm: Annotated[
        str,
        typer.Option(
            help="l1, l2, linf or l0.", rich_help_panel=o.QUESTION, autocompletion=c.one_of(*NORM_NAMES)
        ),
    ] = "linf"
    target: Annotated[
        int | None,
        typer.Option(
            help="The class that all images must be turned into; by default any but their own.",
            rich_help_panel=o.QUESTION,
        ),
    ] = None
    most: Annotated[
        bool,
        typer.Option(
            "--most", help="Turn the most images within --radius instead of all.", rich_help_panel=o.QUESTION
        ),
    ] = False
    radius: Annotated[
        float | None,
        typer.Option(
            help="Look only within this size, such as 8/255.",
            rich_help_panel=o.QUESTION,
            parser=o.read_amount,
            metavar="NUMBER",
        ),
    ] = None
    margin: Annotated[
        float | None,
        typer.Option(
            help="By how much the new class must lead; 0.001 by default.",
            rich_help_panel=o.QUESTION,
            parser=o.read_amount,
            metavar="NUMBER",
        ),
    ] = None


@app.command()
@grouped(without=("verbose",))
def universal(
    *,
    model: o.Model,
    place: ImagesOptions,
    input_shape: o.InputShape = None,
    question: TogetherOptions,
    effort: o.EffortOptions,
    output: o.OutputOptions,
) -> None:
    """Find the smallest perturbation that turns all of a handful of images at once.

    It is added to each image, and the sum clipped to the pixel range. With --most, the one within --radius
    that turns the most of them. Exit code 0: answered (at least with a perturbation and a proven interval);
    3: unresolved.
    """
    from closecall.files import prepare_folder

    tried, indices = effort_of(effort), read_indices(place.indices) or []
    asked = cast("Asked", {name: value for name, value in vars(question).items() if value is not None})
    if output.out is not None:
        prepare_folder(output.out)
    found, names = search(model, read_shape(input_shape), (place.dataset, place.split), indices, asked, tried)
    tell(found, names, model, {"dataset": place.dataset, "split": place.split, "indices": indices}, output)


def search(
    model: str,
    shape: tuple[int, ...] | None,
    place: tuple[str, str],
    indices: list[int],
    asked: Asked,
    effort: Effort,
) -> tuple[Universal, tuple[str, ...]]:
    """Search with the interval on show."""
    from closecall.cli.progress import showing_interval, waiting

    with ending_early():
        with waiting("reading the model and the images"):
            import numpy as np

            from closecall import data
            from closecall.ask.universal import check_count
            from closecall.ask.universal import universal as find

            check_count(len(indices))
            images = data.load_dataset(place[0], cast("Split", place[1]))
            pixels = np.stack([images.image(number) for number in indices])
            labels = images.labels[indices]
            classifier = read_model(model, pixels.shape[1:] if shape is None else shape)
        with showing_interval("size") as report:
            found = find(
                classifier, pixels, labels, **asked, method=effort.method, solver=effort.solver,
                time_limit=effort.time_limit, threads=effort.threads, gap=effort.gap, on_progress=report,
            )  # fmt: skip
    return found, images.class_names


def tell(
    found: Universal, names: tuple[str, ...], model: str, origin: dict[str, object], output: o.OutputOptions
) -> None:
    """Print and save the answer, and end with its exit code."""
    record = {
        **found.to_json(),
        "delta": None if found.delta is None else found.delta.tolist(),
        "class_names": list(names),
        "model": model,
        "origin": origin,
    }

    def save(folder: Path) -> None:
        from closecall.verdict.saved import save_universal
        from closecall.verdict.universal_picture import universal_picture

        save_universal({**record, "delta": None}, found, universal_picture(found, names), folder)

    save_and_show(save, record, found.summary(names), output)
    end_by(found.outcome)
