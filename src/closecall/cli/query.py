"""`closecall nearest`, `closecall certify` and `closecall ideal`: the questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closecall.cli import app
from closecall.cli import options as o
from closecall.cli.asking import Subject, class_names_of, find_subject, meaning, read_model, read_shape
from closecall.cli.ending import INTERRUPTED, say
from closecall.cli.output import print_json

if TYPE_CHECKING:
    from pathlib import Path

    from closecall.ask.ideal import Ideal
    from closecall.verdict.verdict import Verdict

UNRESOLVED = 3


@app.command()
def nearest(
    model: o.Model,
    input_shape: o.InputShape = None,
    dataset: o.DatasetName = None,
    index: o.Index = None,
    split: o.SplitName = "test",
    image: o.ImageFile = None,
    label: o.Label = None,
    preset: o.Preset = None,
    target: o.Target = None,
    norm: o.NormName = None,
    cap: o.Cap = None,
    margin: o.Margin = None,
    ratio: o.Ratio = None,
    outputs: o.OutputsName = None,
    radius: o.Radius = None,
    unit_cost: o.UnitCost = 0.0,
    inactive_penalty: o.InactivePenalty = 0.0,
    class_cost: o.ClassCost = 0.0,
    method: o.Method = "auto",
    solver: o.Solver = "highs",
    time_limit: o.TimeLimit = o.SECONDS,
    threads: o.Threads = 1,
    gap: o.Gap = o.GAP,
    out: o.Out = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Find the nearest image that the model classifies otherwise, and prove that none is nearer.

    With --radius only images within that distance count; `robust` if there is none. Exit code 0: answered (at
    least with an adversarial image and a proven interval); 3: unresolved.
    """
    asked = meaning(
        preset, norm=norm, target=target, cap=cap, margin=margin, ratio=ratio, outputs=outputs
    )  # fmt: skip
    how: dict[str, Any] = {
        "method": method,
        "solver": solver,
        "time_limit": time_limit,
        "threads": threads,
        "gap": gap,
    }
    check_how(how)
    subject = find_subject(model, dataset, index, split, image, label, input_shape)

    def search(report: Any) -> Verdict:
        from closecall.ask.nearest import nearest as find_nearest
        from closecall.encoding.encode import Costs

        costs = Costs(unit_cost, inactive_penalty, class_cost)
        return find_nearest(
            subject.classifier, subject.image, subject.label, radius=radius, **asked, **how,
            costs=costs if costs.any else None, on_progress=report,
        )  # fmt: skip

    answer(search, model, subject, out, as_json)


@app.command()
def certify(
    model: o.Model,
    radius: Annotated[
        float,
        typer.Option(
            help="How far the image may move, such as 0.03 or 8/255.",
            rich_help_panel=o.QUESTION,
            parser=o.read_amount,
            metavar="NUMBER",
        ),
    ],
    input_shape: o.InputShape = None,
    dataset: o.DatasetName = None,
    index: o.Index = None,
    split: o.SplitName = "test",
    image: o.ImageFile = None,
    label: o.Label = None,
    target: o.Target = None,
    norm: o.NormName = "linf",
    cap: o.Cap = None,
    margin: o.Margin = None,
    ratio: o.Ratio = None,
    outputs: o.OutputsName = None,
    method: o.Method = "auto",
    solver: o.Solver = "highs",
    time_limit: o.TimeLimit = o.SECONDS,
    threads: o.Threads = 1,
    out: o.Out = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Is there any image within the radius that the model classifies otherwise?

    Exit code 0: yes, with the image, or no, proven; 3: unresolved.
    """
    asked = meaning(
        None, norm=norm, target=target, cap=cap, margin=margin, ratio=ratio, outputs=outputs
    )  # fmt: skip
    how: dict[str, Any] = {"method": method, "solver": solver, "time_limit": time_limit, "threads": threads}
    check_how(how)
    subject = find_subject(model, dataset, index, split, image, label, input_shape)

    def search(report: Any) -> Verdict:
        from closecall.ask.nearest import certify as find_any

        return find_any(
            subject.classifier, subject.image, subject.label, radius=radius, **asked, **how,
            on_progress=report,
        )  # fmt: skip

    answer(search, model, subject, out, as_json)


@app.command()
def ideal(
    model: o.Model,
    target: Annotated[
        int, typer.Option(help="The class to find the best image of.", rich_help_panel=o.QUESTION)
    ],
    input_shape: o.InputShape = None,
    unit_cost: o.UnitCost = 0.0,
    inactive_penalty: o.InactivePenalty = 0.0,
    class_cost: o.ClassCost = 0.0,
    solver: o.Solver = "highs",
    time_limit: o.TimeLimit = o.SECONDS,
    threads: o.Threads = 1,
    gap: o.Gap = o.GAP,
    out: o.Out = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Find the image that the model finds the best example of a class.

    The lead of that class's score over all others is maximised over the pixel box; with costs, the paper's
    objective is minimised instead. Exit code 0: proven best; 3: the interval is still open.
    """
    from closecall.files import prepare_folder

    how: dict[str, Any] = {"solver": solver, "time_limit": time_limit, "threads": threads, "gap": gap}
    check_how(how)
    if out is not None:
        prepare_folder(out)
    costs = {"unit_cost": unit_cost, "inactive_penalty": inactive_penalty, "class_cost": class_cost}
    found = find_best(model, read_shape(input_shape), target, {**costs, **how})
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

    save_and_show(save, record, found.summary(names), out, as_json)
    if found.outcome == "unresolved":
        raise typer.Exit(UNRESOLVED)


def find_best(model: str, shape: tuple[int, ...] | None, target: int, wishes: Mapping[str, Any]) -> Ideal:
    from closecall.cli.progress import showing_interval, waiting

    try:
        with waiting("reading the model"):
            from closecall.ask.ideal import ideal as find_ideal

            classifier = read_model(model, shape)
        with showing_interval("lead") as report:
            return find_ideal(classifier, target, on_progress=report, **wishes)
    except KeyboardInterrupt:
        raise stopped() from None


def check_how(how: Mapping[str, Any]) -> None:
    """Refuse a bad way to search before anything slow happens."""
    from closecall.cli.progress import waiting
    from closecall.errors import MissingExtraError

    with waiting("starting"):
        from closecall.question.effort import Effort
        from closecall.solvers import available

        Effort(**how)
    if how["solver"] not in available():
        raise MissingExtraError(f"The {how['solver']} solver", how["solver"])


def answer(search: Any, model: str, subject: Subject, out: Path | None, as_json: bool) -> None:
    """Search with the interval on show, print and save the verdict, and end with its exit code."""
    from closecall.cli.progress import showing_interval
    from closecall.files import prepare_folder

    if out is not None:
        prepare_folder(out)
    try:
        with showing_interval() as report:
            verdict: Verdict = search(report)
    except KeyboardInterrupt:
        raise stopped() from None
    names = subject.class_names
    record = {
        **verdict.to_json(),
        "witness": None if verdict.witness is None else verdict.witness.tolist(),
        "scores_before": verdict.scores_before.tolist(),
        "scores_after": None if verdict.scores_after is None else verdict.scores_after.tolist(),
        "class_names": list(names),
        "model": model,
        "origin": subject.origin,
    }

    def save(folder: Path) -> None:
        from closecall.verdict.saved import save_verdict

        save_verdict(verdict, folder, model=model, class_names=names, origin=subject.origin)

    summary = verdict.summary(names)
    if out is not None and verdict.png is not None:
        summary = f"{summary}\n{verdict.png.sentence()}"
    save_and_show(save, record, summary, out, as_json)
    if verdict.outcome == "unresolved":
        raise typer.Exit(UNRESOLVED)


def stopped() -> typer.Exit:
    say("interrupted before anything was proven.")
    return typer.Exit(INTERRUPTED)


def save_and_show(
    save: Callable[[Path], None], record: Mapping[str, Any], summary: str, out: Path | None, as_json: bool
) -> None:
    """Print the answer whatever becomes of its files: hours may have gone into it."""
    from closecall.cli.progress import waiting

    saved = None
    try:
        if out is not None:
            with waiting(f"saving in {out}"):
                save(out)
            saved = str(out)
    finally:
        show({**record, "saved": saved}, summary, as_json)


def show(record: Mapping[str, Any], summary: str, as_json: bool) -> None:
    if as_json:
        print_json(record)
        return
    typer.echo(summary)
    for note in record["notes"]:
        typer.echo(f"Note: {note}.")
    plural = "" if record["nodes"] == 1 else "s"
    spent = f"{record['seconds']:.1f} s, {record['nodes']:,} node{plural}"
    typer.echo(spent if record["saved"] is None else f"{spent}; saved in {record['saved']}")
