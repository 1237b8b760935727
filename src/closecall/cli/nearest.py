"""`closecall nearest` and `closecall certify`: how close, and whether there is anything within a radius."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from closecall.cli import options as o
from closecall.cli.answering import end_by, ending_early, save_and_show
from closecall.cli.application import app
from closecall.cli.asking import Subject, costs_of, effort_of, find_subject, meaning
from closecall.cli.grouping import grouped

if TYPE_CHECKING:
    from closecall.ask.posing import Asked
    from closecall.encoding.encode import Costs
    from closecall.question.effort import Effort
    from closecall.verdict.verdict import Verdict


@app.command()
@grouped()
def nearest(
    *,
    model: o.Model,
    input_shape: o.InputShape = None,
    place: o.ImageOptions,
    question: o.QuestionOptions,
    costs: o.CostOptions,
    effort: o.EffortOptions,
    output: o.OutputOptions,
) -> None:
    """Find the nearest image that the model classifies otherwise, and prove that none is nearer.

    With --radius only images within that distance count; `robust` if there is none. Exit code 0: answered (at
    least with an adversarial image and a proven interval); 3: unresolved.
    """
    asked, tried = meaning(question), effort_of(effort)
    subject = find_subject(model, input_shape, place)
    verdict = ask(subject, asked, tried, output, nearest=True, costs=costs_of(costs))
    tell(verdict, model, subject, output)


@app.command()
@grouped(without=("preset", "radius", "gap"), norm="linf")
def certify(
    *,
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
    place: o.ImageOptions,
    question: o.QuestionOptions,
    effort: o.EffortOptions,
    output: o.OutputOptions,
) -> None:
    """Is there any image within the radius that the model classifies otherwise?

    Exit code 0: yes, with the image, or no, proven; 3: unresolved.
    """
    asked, tried = meaning(question), effort_of(effort)
    subject = find_subject(model, input_shape, place)
    verdict = ask(subject, {**asked, "radius": radius}, tried, output, nearest=False)
    tell(verdict, model, subject, output)


def ask(
    subject: Subject,
    asked: Asked,
    effort: Effort,
    output: o.OutputOptions,
    *,
    nearest: bool,
    costs: Costs | None = None,
) -> Verdict:
    """Search with the interval on show."""
    from closecall.ask.nearest import answer
    from closecall.ask.posing import pose
    from closecall.ask.proof import Proof
    from closecall.cli.progress import showing_interval, waiting
    from closecall.clock import Clock
    from closecall.files import prepare_folder

    if output.out is not None:
        prepare_folder(output.out)
    clock = Clock(effort.time_limit)
    with ending_early(), showing_interval(clock=clock) as report:
        classifier, question = pose(clock, subject.classifier, subject.image, subject.label, **asked)
        proof = Proof(output.proof, output.deployed)
        proof.check(question)
        verdict = answer(
            classifier, question, effort, clock, nearest=nearest, costs=costs, on_progress=report
        )
    with waiting("writing the proof"):
        return proof.of(verdict, classifier)


def explain(verdict: Verdict) -> None:
    """On stderr: what answered, why it was asked, how exact it is, and where the seconds went."""
    lines = [f"Answered by {verdict.engine or 'nobody yet'}.", *(f"Why: {reason}." for reason in verdict.why)]
    lines.append(
        "Exact to " + ", ".join(f"{name} {value:g}" for name, value in verdict.tolerances.items()) + "."
    )
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in verdict.seconds_by_stage.items())
    lines.append(f"Seconds by stage: {stages}.")
    for line in lines:
        typer.echo(line, err=True)


def tell(verdict: Verdict, model: str, subject: Subject, output: o.OutputOptions) -> None:
    """Print and save the verdict, and end with its exit code."""
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
    if output.out is not None and verdict.png is not None:
        summary = f"{summary}\n{verdict.png.sentence()}"
    save_and_show(save, record, summary, output)
    if output.verbose:
        explain(verdict)
    end_by(verdict.outcome)
