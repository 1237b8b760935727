"""`closecall nearest`, `closecall certify` and `closecall ideal`: the questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closecall.cli import app
from closecall.cli import options as o
from closecall.cli.asking import Subject, find_subject, meaning, read_model

if TYPE_CHECKING:
    from pathlib import Path

    from closecall.verdict import Verdict

UNRESOLVED = 3
INTERRUPTED = 130


@app.command()
def nearest(
    model: o.Model,
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
) -> None:
    """Find the nearest image that the model classifies otherwise, and prove that none is nearer.

    Exit code 0: answered (at least with an adversarial image and a proven interval); 3: unresolved.
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
    subject = find_subject(model, dataset, index, split, image, label)

    def search(report: Any) -> Verdict:
        from closecall.encode import Costs
        from closecall.search import nearest as find_nearest

        costs = Costs(unit_cost, inactive_penalty, class_cost)
        return find_nearest(
            subject.classifier, subject.image, subject.label, **asked, **how,
            costs=costs if costs.any else None, on_progress=report,
        )  # fmt: skip

    answer(search, model, subject, out, as_json)


@app.command()
def certify(
    model: o.Model,
    radius: Annotated[float, typer.Option(help="How far the image may move.", rich_help_panel=o.QUESTION)],
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
) -> None:
    """Is there any image within the radius that the model classifies otherwise?

    Exit code 0: yes, with the image, or no, proven; 3: unresolved.
    """
    asked = meaning(
        None, norm=norm, target=target, cap=cap, margin=margin, ratio=ratio, outputs=outputs
    )  # fmt: skip
    how: dict[str, Any] = {"method": method, "solver": solver, "time_limit": time_limit, "threads": threads}
    check_how(how)
    subject = find_subject(model, dataset, index, split, image, label)

    def search(report: Any) -> Verdict:
        from closecall.search import certify as find_any

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
    unit_cost: o.UnitCost = 0.0,
    inactive_penalty: o.InactivePenalty = 0.0,
    class_cost: o.ClassCost = 0.0,
    solver: o.Solver = "highs",
    time_limit: o.TimeLimit = o.SECONDS,
    threads: o.Threads = 1,
    gap: o.Gap = o.GAP,
    out: o.Out = None,
    as_json: o.AsJson = False,
) -> None:
    """Find the image that the model finds the best example of a class.

    The lead of that class's score over all others is maximised over the pixel box; with costs, the paper's
    objective is minimised instead. Exit code 0: proven best; 3: the interval is still open.
    """
    from closecall.cli.progress import showing_interval
    from closecall.files import prepare_folder
    from closecall.ideal_image import ideal as find_ideal
    from closecall.saved import IMAGE, save_ideal

    how: dict[str, Any] = {"solver": solver, "time_limit": time_limit, "threads": threads, "gap": gap}
    check_how(how)
    if out is not None:
        prepare_folder(out)
    try:
        with showing_interval("lead") as report:
            found = find_ideal(
                read_model(model), target, unit_cost=unit_cost, inactive_penalty=inactive_penalty,
                class_cost=class_cost, on_progress=report, **how,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise stopped() from None
    record = {**found.to_json(), "image": None, "model": model}
    if out is not None:
        save_ideal(record, found.image, out, title=f"the ideal {target}")
        record["image"] = str(out / IMAGE)
    show(record, found.summary(), found.notes, out, as_json)
    if found.outcome == "unresolved":
        raise typer.Exit(UNRESOLVED)


def check_how(how: Mapping[str, Any]) -> None:
    """Refuse a bad way to search before anything slow happens."""
    from closecall.errors import MissingExtraError
    from closecall.search import How
    from closecall.solvers import available

    How(**how)
    if how["solver"] not in available():
        raise MissingExtraError(f"The {how['solver']} solver", how["solver"])


def answer(search: Any, model: str, subject: Subject, out: Path | None, as_json: bool) -> None:
    """Search with the interval on show, save and print the verdict, and end with its exit code."""
    from closecall.cli.progress import showing_interval
    from closecall.files import prepare_folder
    from closecall.saved import WITNESS, save_verdict

    if out is not None:
        prepare_folder(out)
    try:
        with showing_interval() as report:
            verdict: Verdict = search(report)
    except KeyboardInterrupt:
        raise stopped() from None
    record = {**verdict.to_json(), "witness": None, "model": model, "origin": subject.origin}
    if out is not None:
        save_verdict(verdict, out, model=model, class_names=subject.class_names, origin=subject.origin)
        record["witness"] = None if verdict.witness is None else str(out / WITNESS)
    summary = verdict.summary()
    if out is not None and verdict.png is not None:
        summary = f"{summary}\n{verdict.png.sentence()}"
    show(record, summary, verdict.notes, out, as_json)
    if verdict.outcome == "unresolved":
        raise typer.Exit(UNRESOLVED)


def stopped() -> typer.Exit:
    typer.echo("closecall: interrupted before anything was proven.", err=True)
    return typer.Exit(INTERRUPTED)


def show(
    record: Mapping[str, Any], summary: str, notes: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    if as_json:
        typer.echo(json.dumps(record, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(summary)
    for note in notes:
        typer.echo(f"Note: {note}.")
    plural = "" if record["nodes"] == 1 else "s"
    spent = f"{record['seconds']:.1f} s, {record['nodes']:,} node{plural}"
    typer.echo(f"{spent}; saved in {out}" if out is not None else spent)
