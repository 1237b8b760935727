"""`closecall vnncomp`: a network and a VNN-LIB property, answered as the competition asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from closecall.cli import options as o
from closecall.cli.application import app
from closecall.cli.asking import read_shape
from closecall.cli.output import print_json

if TYPE_CHECKING:
    from closecall.ask.vnncomp import Decision


@app.command("vnncomp")
def vnncomp(
    model: Annotated[Path, typer.Argument(help="An .onnx file.")],
    question: Annotated[Path, typer.Argument(metavar="PROPERTY", help="A .vnnlib file, plain or gzipped.")],
    input_shape: o.InputShape = None,
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for the whole search.")] = 120.0,
    threads: Annotated[int, typer.Option("--threads", help="Cores to use.")] = 1,
    result: Annotated[
        Path | None, typer.Option("--result", help="Write the answer to this file too.")
    ] = None,
    as_json: o.AsJson = False,
    _quiet: o.Quiet = False,
) -> None:
    """Print sat (with a counterexample that onnxruntime confirms), unsat, unknown or timeout."""
    from closecall.cli.progress import waiting
    from closecall.files import explaining_failed_writes, prepare_file

    with waiting("reading the model and the property"):
        from closecall.ask.vnncomp import decide
        from closecall.question.effort import Effort
        from closecall.readers import read
        from closecall.readers.vnnlib import read_property

        effort = Effort(time_limit=time_limit, threads=threads)
        classifier = read(model, read_shape(input_shape))
        asked = read_property(question, classifier.network.input_size, classifier.network.classes)
    if result is not None:
        prepare_file(result)
    with waiting("searching"):
        decision = decide(classifier, asked, seconds=effort.time_limit, threads=effort.threads)
    try:
        if result is not None:
            with explaining_failed_writes(str(result)):
                result.write_text(decision.text(), encoding="utf-8")
    finally:
        if as_json:
            print_json({"model": str(model), "property": str(question), **to_json(decision)})
        else:
            typer.echo(decision.text(), nl=False)


def to_json(decision: Decision) -> dict[str, Any]:
    """The answer and the counterexample, the inputs in the model's own shape."""
    inputs, outputs = decision.inputs, decision.outputs
    return {
        "answer": decision.answer,
        "inputs": None if inputs is None else inputs.tolist(),
        "outputs": None if outputs is None else outputs.tolist(),
    }
