"""`closecall batch`: the same question about many images and of several models."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from closecall.cli import completion as c
from closecall.cli import options as o
from closecall.cli.answering import UNRESOLVED
from closecall.cli.application import app
from closecall.cli.asking import effort_of, meaning, read_shape
from closecall.cli.batch_options import BatchOptions, read_indices, read_shard
from closecall.cli.ending import FAILED, INTERRUPTED, say
from closecall.cli.grouping import grouped
from closecall.errors import InputError

if TYPE_CHECKING:
    from closecall.batches.batch import Batch
    from closecall.cli.batch_progress import BatchProgress

batch = typer.Typer(
    help="Ask the same about many images, of several models, and keep every answer.",
    invoke_without_command=True,
)
app.add_typer(batch, name="batch")

ONE_PROCESS = 'Asked in one process; `pip install "closecall[scale]"` gives every core one.'


@batch.callback()
@grouped(without=("verbose", "out"))
def ask_all(
    *,
    context: typer.Context,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="As for nearest; may be given again.", autocompletion=c.complete_model),
    ] = None,
    input_shape: o.InputShape = None,
    batch: BatchOptions,
    question: o.QuestionOptions,
    effort: o.EffortOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each answer.")] = False,
    _quiet: o.Quiet = False,
) -> None:
    """Ask the same about many images, of several models, and keep every answer.

    Run it again to go on where it was cut off: what the store has is not asked again. Exit code 0: every
    question is answered; 3: some are unresolved; 1: some failed or crashed; 130: interrupted.
    """
    if context.invoked_subcommand is not None:
        return
    made = batch_of(model, input_shape, batch, question, effort)
    tell_processes(made)
    with_answers(made, as_json)


def batch_of(
    model: list[str] | None,
    input_shape: str | None,
    options: BatchOptions,
    question: o.QuestionOptions,
    effort: o.EffortOptions,
) -> Batch:
    """Read everything that is asked about, before the first second of a search is spent."""
    from closecall.cli.progress import waiting

    for name, value in (("model", model), ("dataset", options.dataset), ("store", options.store)):
        if not value:
            raise InputError(f"A batch needs --{name}; see `closecall batch --help`.")
    asked, tried = meaning(question), effort_of(effort)
    asked.setdefault("norm", "linf" if options.task == "certify" else "l1")
    shape, indices, shard = read_shape(input_shape), read_indices(options.indices), read_shard(options.shard)
    with waiting("reading the models and the images"):
        from closecall.batches.batch import Batch, contenders_of, pictures_of
        from closecall.batches.choosing import Where
        from closecall.batches.items import Plan, Task
        from closecall.batches.running import Rerun

        pictures = pictures_of(cast("str", options.dataset), None, indices, options.split)
        contenders = contenders_of(list(dict.fromkeys(cast("list[str]", model))), pictures, shape)
        plan = Plan(contenders, pictures, cast("Task", options.task), asked, tried, shard)
    scheduler = options.scheduler or (None if options.scheduler_file is None else str(options.scheduler_file))
    where = Where(options.workers, scheduler, options.memory_limit)
    return Batch(plan, cast("Path", options.store), cast("Rerun", options.rerun), where)


def tell_processes(made: Batch) -> None:
    """Say that one process does all the work, where more could."""
    from closecall.batches.choosing import has_dask
    from closecall.consoles import quiet

    where = made.where
    if not has_dask() and where.workers is None and where.scheduler is None and not quiet():
        typer.echo(ONE_PROCESS, err=True)


def with_answers(made: Batch, as_json: bool) -> None:
    """Ask, show, and end with the exit code of what is known."""
    from closecall.cli.batch_progress import showing_batch

    interrupted = False
    with showing_batch(made.plan.pictures.class_names, as_json) as shown:
        made.watch = shown
        try:
            for _ in made.replies():
                pass
        except KeyboardInterrupt:
            interrupted = True
    rows = made.table()
    if not as_json:
        typer.echo(summary(made, rows, shown))
    if interrupted:
        say(f"interrupted; what was proven is kept in {made.path}: run the same command again to go on.")
        raise typer.Exit(INTERRUPTED)
    end_by_all({row["outcome"] for row in rows})


def summary(made: Batch, rows: list[dict[str, Any]], shown: BatchProgress) -> str:
    """What the store has on this batch, what that took just now, and where it is."""
    import time

    from closecall.cli.batch_progress import counts_said

    counts = Counter(row["outcome"] for row in rows)
    plural = "question" if len(rows) == 1 else "questions"
    spent = f"{shown.done:,} asked now in {time.perf_counter() - shown.began:.1f} s"
    memory = f", with up to {shown.memory / 1e6:,.0f} MB in a process" if shown.memory else ""
    return f"{len(rows):,} {plural}: {counts_said(counts)}.\n{spent}{memory}; kept in {made.path}"


def end_by_all(outcomes: set[str]) -> None:
    if outcomes & {"failed", "crashed"}:
        raise typer.Exit(FAILED)
    if "unresolved" in outcomes:
        raise typer.Exit(UNRESOLVED)
