"""`closecall curve`: the worst margin of one image as a function of the radius."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closecall.cli import options as o
from closecall.cli.answering import ending_early, save_and_show
from closecall.cli.application import app
from closecall.cli.asking import Subject, effort_of, find_subject, meaning
from closecall.cli.grouping import grouped

if TYPE_CHECKING:
    from closecall.ask.posing import Asked
    from closecall.question.effort import Effort
    from closecall.verdict.curve import Curve

NOT_ASKED = ("preset", "margin", "ratio", "confidence", "outputs", "patch", "pixels", "radius", "verbose")


@app.command()
@grouped(without=NOT_ASKED, norm="linf", gap=0.01)
def curve(
    *,
    model: o.Model,
    radius: Annotated[
        float | None,
        typer.Option(
            help="The largest radius; by default twice the distance at which an attack changes the verdict.",
            rich_help_panel=o.QUESTION,
            parser=o.read_amount,
            metavar="NUMBER",
        ),
    ] = None,
    radii: Annotated[
        str | None,
        typer.Option(help="Instead: all radii, such as 0.01,0.02,8/255.", rich_help_panel=o.QUESTION),
    ] = None,
    points: Annotated[
        int, typer.Option(help="How many radii up to the largest.", rich_help_panel=o.QUESTION)
    ] = 20,
    input_shape: o.InputShape = None,
    place: o.ImageOptions,
    question: o.QuestionOptions,
    effort: o.EffortOptions,
    output: o.OutputOptions,
) -> None:
    """Bound the worst margin of any image within each radius, and draw it.

    The margin is the label's lead over its best rival, or what --target lacks; below 0 the verdict has
    changed. Proven from below, found from above; --gap is the share of the largest margin at which an
    interval is narrow enough. Exit code 0: answered, with intervals that may still be open.
    """
    from closecall.files import prepare_folder

    asked, tried = meaning(question), effort_of(effort)
    given = None if radii is None else [o.read_amount(part) for part in radii.split(",")]
    subject = find_subject(model, input_shape, place)
    if output.out is not None:
        prepare_folder(output.out)
    found = draw(subject, asked, tried, radius, given, points)
    record = {
        **found.to_json(),
        "class_names": list(subject.class_names),
        "model": model,
        "origin": subject.origin,
    }

    def save(folder: Path) -> None:
        from closecall.verdict.saved import save_curve

        save_curve(found, record, folder, class_names=subject.class_names)

    save_and_show(save, record, found.summary(subject.class_names), output)


def draw(
    subject: Subject,
    asked: Asked,
    effort: Effort,
    radius: float | None,
    radii: list[float] | None,
    points: int,
) -> Curve:
    """Search with the number of points on show that are narrow enough."""
    from closecall.ask.curve import curve as curve_of
    from closecall.cli.progress import Wait, live

    shown = Wait("looking for a first answer")

    def tell(closed: int, points: int, widest: float, _seconds: float) -> None:
        shown.what = f"{closed} of {points} points are narrow enough, the widest gap is {widest:.4g}"

    options: dict[str, Any] = {**asked, **vars(effort), "radius": radius, "radii": radii, "points": points}
    with ending_early(), live(shown):
        return curve_of(subject.classifier, subject.image, subject.label, on_progress=tell, **options)
