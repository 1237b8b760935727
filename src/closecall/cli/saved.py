"""`closecall replay` and `closecall export-milp`: answers and questions as files."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.asking import costs_of, find_subject, meaning, read_model
from closecall.cli.completion import FORMS, complete_model, one_of
from closecall.cli.grouping import grouped
from closecall.cli.output import print_json

if TYPE_CHECKING:
    from closecall.encoding.encode import Form

REFUTED = 1


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(help="A folder that nearest or certify wrote with --out.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="The model, if it is no longer where it was when the answer was found.",
            autocompletion=complete_model,
        ),
    ] = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Check a saved verdict again, without any solver.

    Exit code 0: all that was claimed holds; 1: something does not.
    """
    from closecall.cli.progress import waiting

    with waiting("reading and running the model"):
        from closecall.verdict.checking import check_verdict
        from closecall.verdict.saved import load_verdict

        saved = load_verdict(folder)
        source = saved.model if model is None else model
        load_torch_for(source)
        checks = check_verdict(saved, read_model(source, saved.original.shape))
    holds = all(check.holds for check in checks)
    if as_json:
        listed = [{"holds": check.holds, "sentence": check.sentence} for check in checks]
        record = {"holds": holds, "outcome": saved.record["outcome"], "model": source, "checks": listed}
        print_json(record)
    else:
        for check in checks:
            typer.echo(f"{'holds' if check.holds else 'FAILS'}  {check.sentence}")
        said = "Everything holds" if holds else "The verdict does not hold"
        typer.echo(f"{said}; the lower bound was proven by the search and is not proven again here.")
    if not holds:
        raise typer.Exit(REFUTED)


def load_torch_for(source: str) -> None:
    """Let PyTorch run a model of ours beside ONNX Runtime: the search may have done without it."""
    if not source.lower().endswith(".onnx"):
        importlib.import_module("torch")


@app.command("export-milp")
@grouped()
def export_milp(
    *,
    model: o.Model,
    out: Annotated[Path, typer.Option(help="The file to write: .mps, .mps.gz or .lp.")],
    form: Annotated[
        str,
        typer.Option(
            help="tight: with linear bounds, for speed; paper: x − s with interval bounds.",
            autocompletion=one_of(*FORMS),
        ),
    ] = "tight",
    input_shape: o.InputShape = None,
    place: o.ImageOptions,
    question: o.QuestionOptions,
    costs: o.CostOptions,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Write the MILP of a question as an MPS or LP file, for any solver.

    Its optimum is the distance (for l2 its square) of the nearest image in the box that reaches the goal.
    """
    from closecall.cli.progress import waiting
    from closecall.files import explaining_failed_writes, prepare_file

    with waiting("starting"):
        from closecall.ask.export import export_milp as milp_of
        from closecall.milp.lp_format import check_suffix, write_milp

    check_suffix(out)
    asked, paid = meaning(question), costs_of(costs)
    subject = find_subject(model, input_shape, place)
    prepare_file(out)
    with waiting(f"writing {out}"), explaining_failed_writes(str(out)):
        milp = milp_of(
            subject.classifier, subject.image, subject.label, form=cast("Form", form), costs=paid, **asked
        )
        write_milp(milp, out)
    size = {"columns": milp.columns, "rows": milp.rows, "binaries": milp.binaries}
    if as_json:
        print_json({"file": str(out), "form": form, **size})
    else:
        said = ", ".join(f"{count:,} {name}" for name, count in size.items())
        typer.echo(f"{out}: {said}")
