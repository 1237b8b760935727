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
from closecall.errors import InputError

if TYPE_CHECKING:
    from closecall.encoding.encode import Form
    from closecall.readers import Classifier

REFUTED = 1


@app.command()
def replay(
    folder: Annotated[
        Path | None, typer.Argument(help="A folder that nearest or certify wrote with --out.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Instead of a folder: a store, all of whose witnesses are replayed.")
    ] = None,
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

    if (folder is None) == (store is None):
        said = "neither was" if folder is None else "both were"
        raise InputError(f"Give the folder of an answer, or a store by --store: {said} given.")
    if folder is None:
        replay_all(cast("Path", store), model, as_json)
        return
    with waiting("reading and running the model"):
        from closecall.proofs.beside import check_beside
        from closecall.verdict.checking import check_verdict
        from closecall.verdict.saved import load_verdict

        saved = load_verdict(folder)
        source = saved.model if model is None else model
        load_torch_for(source)
        classifier = read_model(source, saved.original.shape)
        checks = check_verdict(saved, classifier)
        proofs = check_beside(saved, classifier.network)
        checks += proofs
    holds = all(check.holds for check in checks)
    if as_json:
        listed = [{"holds": check.holds, "sentence": check.sentence} for check in checks]
        record = {"holds": holds, "outcome": saved.record["outcome"], "model": source, "checks": listed}
        print_json(record)
    else:
        for check in checks:
            typer.echo(f"{'holds' if check.holds else 'FAILS'}  {check.sentence}")
        said = "Everything holds" if holds else "The verdict does not hold"
        again = ", and so says its proof" if proofs and holds else " and is not proven again here"
        typer.echo(f"{said}; the lower bound was proven by the search{again}.")
    if not holds:
        raise typer.Exit(REFUTED)


def replay_all(store: Path, model: str | None, as_json: bool) -> None:
    """Every witness of a store; a line for each that does not hold."""
    from closecall.cli.progress import waiting

    def read_again(source: str, shape: tuple[int, ...]) -> Classifier:
        load_torch_for(source if model is None else model)
        return read_model(source if model is None else model, shape)

    with waiting("reading and running the models"):
        from closecall.batches.replaying import replay_store

        replayed = [*replay_store(store, read_again)]
    failed = [answer for answer in replayed if not answer.holds]
    if as_json:
        broken = [
            {
                "model": each.model,
                "index": each.index,
                "failed": [c.sentence for c in each.checks if not c.holds],
            }
            for each in failed
        ]
        print_json({"holds": not failed, "store": str(store), "witnesses": len(replayed), "failed": broken})
    else:
        for each in failed:
            for sentence in each.refuted:
                typer.echo(f"FAILS  {each.model}, image {each.index}: {sentence}")
        plural = "" if len(replayed) == 1 else "es"
        said = (
            f"{len(failed)} of {len(replayed)} witness{plural} do not hold"
            if failed
            else (f"{len(replayed)} witness{plural}: everything holds")
        )
        typer.echo(f"{said}; the lower bounds were proven by the searches and are not proven again here.")
    if failed:
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
